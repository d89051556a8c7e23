"""Servers that misbehave: each results in one sentence, and none leaves a process."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.conftest import QUICK, SERVERS, OpenServer
from tests.tools.processes import becomes_true, group_is_gone, is_running
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.connection import TimeLimits
from workbench.tools.mcp_server import McpServer
from workbench.trajectory.events import ServerOutput

IMPATIENT_TO_END = TimeLimits(polite_s=0.1, terminate_s=0.1)
IMPATIENT = TimeLimits(start_s=0.5, call_s=0.5, polite_s=0.2, terminate_s=0.2)
WAIT_FOREVER = "import threading; threading.Event().wait()"
ADD = {"a": 1, "b": 2}


async def start_error(server: McpServer) -> str:
    with pytest.raises(ServerError) as caught:
        await server.start()
    assert group_is_gone(server.pid)
    assert server.down_reason == str(caught.value)
    return str(caught.value)


async def test_a_missing_program_is_named_with_the_command_and_the_log(open_server: OpenServer, log_file: Path) -> None:
    assert await start_error(open_server("no-such-program", "--fast")) == (
        "server 'bench' cannot be started: there is no program 'no-such-program' "
        f"(command: no-such-program --fast; log: {log_file})"
    )


async def test_a_missing_folder_is_named(open_server: OpenServer, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert f"the folder {gone} does not exist" in await start_error(open_server("python", "x.py", folder=gone))


async def test_a_file_that_may_not_be_run_is_named(open_server: OpenServer, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hello")
    script.chmod(stat.S_IRUSR)
    error = await start_error(open_server("./script", folder=tmp_path))
    assert "cannot be started: Permission denied: ./script" in error


async def test_a_missing_variable_is_named_before_anything_starts(open_server: OpenServer, log_file: Path) -> None:
    server = open_server("python", "workshop.py", environment={}, env={"TOKEN": "Bearer $HOME_TOKEN"})
    assert "needs the environment variable HOME_TOKEN, which is not set" in await start_error(server)
    assert server.pid is None
    assert not log_file.exists()


async def test_a_server_that_exits_at_once_is_told_by_its_exit_code(open_server: OpenServer, log_file: Path) -> None:
    server = open_server("python", "-c", "import sys; sys.exit('no such database')")
    assert (await start_error(server)).startswith("server 'bench' ended with exit code 1 before it listed its tools")
    assert server.output == ServerOutput("bench", ("no such database",), 0, str(log_file))
    assert log_file.read_text().endswith("no such database\n[workbench] ended with exit code 1\n")


async def test_a_server_that_says_nothing_is_given_up_and_killed(open_server: OpenServer) -> None:
    error = await start_error(open_server("python", "-c", WAIT_FOREVER, limits=IMPATIENT))
    more = "start_timeout_s = 1 in its [[servers]] gives it more time"
    assert error.startswith(
        f"server 'bench' did not answer within 0.5 s; {more} (command: python -c 'import threading;"
    )


@pytest.mark.slow
async def test_a_server_that_prints_no_end_of_junk_is_given_up_with_a_hint(
    open_server: OpenServer, log_file: Path
) -> None:
    junk = f"yes {'x' * 100} | head -c 20000000; sleep 1000"
    error = await start_error(open_server("sh", "-c", junk, limits=replace(IMPATIENT, start_s=2)))
    assert "did not answer within 2 s; it writes to standard output something that is not an MCP message" in error
    assert "[stdout] xxx" in log_file.read_text()
    assert log_file.stat().st_size < 100_000


async def test_a_server_that_answers_nonsense_does_not_speak_mcp(open_server: OpenServer) -> None:
    error = await start_error(open_server("cat"))
    assert "server 'bench' does not speak MCP as expected: " in error


async def test_a_command_is_shown_on_one_line_of_moderate_length(open_server: OpenServer) -> None:
    command = ("python", "-c", "import sys\nsys.exit(2)\n" + "# padding\n" * 100)
    error = await start_error(open_server(*command, environment={}))
    assert "\n" not in error
    assert len(error) < 500


async def test_junk_on_standard_output_and_a_flood_on_standard_error_hurt_nobody(
    open_server: OpenServer, log_file: Path
) -> None:
    server = open_server("python", "workshop.py", "chatty", "loud")
    await server.start()
    assert await server.call("add", ADD) == ToolAnswer("3")
    log = log_file.read_text()
    assert log.count("complaint\n") > 50_000
    assert log_file.stat().st_size < 2_200_000


@pytest.mark.slow
async def test_a_message_longer_than_is_read_ends_the_server_at_once_with_the_reason(open_server: OpenServer) -> None:
    with pytest.raises(ServerError, match="sent more than 32 MiB as a message"):
        await open_server("python", "workshop.py", "endless").start()
    server = open_server("python", "workshop.py")
    await server.start()
    with pytest.raises(ServerError, match="sent more than 32 MiB as a message"):
        await server.call("flood", {"mebibytes": 33})


async def test_a_server_runs_without_a_log_where_none_can_be_written(open_server: OpenServer, log_file: Path) -> None:
    log_file.parent.write_text("a file in the way")
    server = open_server("python", "workshop.py")
    await server.start()
    assert await server.call("add", ADD) == ToolAnswer("3")
    with pytest.raises(ServerError, match=r"; no log: .*bench\.log cannot be written"):
        await server.call("crash", {})


async def test_of_an_old_log_that_has_grown_long_the_end_is_kept(open_server: OpenServer, log_file: Path) -> None:
    log_file.parent.mkdir()
    log_file.write_text("old\n" * 600_000)
    await start_error(open_server("python", "-c", ""))
    log = log_file.read_text()
    assert log.startswith("[workbench] ")
    assert log.endswith("[workbench] ended with exit code 0\n")
    assert "\nold\n== server 'bench': python -c '', started " in log
    assert len(log) < 1_100_000


async def test_a_server_that_dies_during_a_call_leaves_nothing(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    with pytest.raises(ServerError, match=r"ended with exit code 3 \(command: python workshop\.py; log: "):
        await server.call("crash", {})
    assert group_is_gone(server.pid)
    assert "ended with exit code 3" in (server.down_reason or "")


async def test_every_call_under_way_learns_of_the_end(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    calls = [server.call("hang", {}), server.call("hang", {}), server.call("crash", {})]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(outcome).partition(" (")[0] for outcome in outcomes] == ["server 'bench' ended with exit code 3"] * 3


async def test_a_call_that_takes_too_long_names_the_tool_and_the_seconds(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py", limits=replace(QUICK, call_s=1))
    await server.start()
    with pytest.raises(
        ServerError, match=r"a call of hang within 1 s; call_timeout_s = 2 in its \[\[servers\]\] gives it more"
    ):
        await server.call("hang", {})
    assert await server.call("add", ADD) == ToolAnswer("3")


@pytest.mark.slow
async def test_a_server_that_ignores_its_end_is_killed_with_its_children(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py", "stubborn")
    await server.start()
    child = int((await server.call("breed", {})).content)
    assert is_running(child)
    await server.close()
    assert group_is_gone(server.pid)
    await becomes_true(lambda: not is_running(child))


async def test_the_children_of_a_server_that_ends_politely_do_not_outlive_it(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    child = int((await server.call("breed", {})).content)
    await server.close()
    await becomes_true(lambda: not is_running(child))


async def test_closing_while_the_server_starts_ends_the_start(open_server: OpenServer) -> None:
    server = open_server("python", "-c", WAIT_FOREVER)
    starting = asyncio.create_task(server.start())
    await becomes_true(lambda: server.pid is not None)
    await server.close()
    with pytest.raises(ServerError, match="was closed"):
        await starting
    assert group_is_gone(server.pid)


async def test_a_start_that_is_cancelled_leaves_no_process(open_server: OpenServer) -> None:
    server = open_server("python", "-c", WAIT_FOREVER, limits=IMPATIENT)
    starting = asyncio.create_task(server.start())
    await becomes_true(lambda: server.pid is not None)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await becomes_true(lambda: group_is_gone(server.pid))


FORGETS_TO_CLOSE = """
import asyncio, os, sys
from pathlib import Path
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.suite.model import Suite
from workbench.suite.server_model import Server
from workbench.suite.trust import needs_trust
from workbench.tools.python_code import hash_code
from workbench.tools.grant import Grant
from workbench.tools.connection import TimeLimits
from workbench.tools.server_pool import ServerPool

async def main():
    definition = Server(name="bench", command=("python", "workshop.py", "chatty", *sys.argv[3:]))
    limits = TimeLimits(polite_s=0.3, terminate_s=0.3)
    folder, own = Path(sys.argv[1]), Path(sys.argv[2])
    pool = ServerPool(create_program(Folders(own, own, own, own), os.environ), limits)
    suite = Suite(format=1, name="s", cases=(), servers=(definition,))
    grant = Grant(needs_trust(suite, folder / "suite.toml"), os.environ, hash_code(folder, ()))
    server = await pool.running_server(folder / "suite.toml", definition, grant)
    call = asyncio.create_task(server.call("hang", {}))
    await server.call("add", {"a": 1, "b": 2})
    print(server.pid)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("habits", [(), ("stubborn",)])
def test_a_program_that_forgets_to_close_ends_without_a_hang_a_process_or_a_word(
    tmp_path: Path, habits: tuple[str, ...]
) -> None:
    program = [sys.executable, "-c", FORGETS_TO_CLOSE, str(SERVERS), str(tmp_path / "log"), *habits]
    done = subprocess.run(program, capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    assert group_is_gone(int(done.stdout))


async def test_a_call_while_the_server_goes_down_waits_for_the_next(open_server: OpenServer, tmp_path: Path) -> None:
    script = tmp_path / "brief.py"
    script.write_text(
        f"import os, sys, time\nsys.path.insert(0, {str(SERVERS)!r})\n"
        "from plain import PlainServer\n"
        "server = PlainServer('brief')\n"
        "@server.tool()\n"
        "def leave() -> str:\n"
        "    'Closes its output, and ends a little later.'\n"
        "    os.close(1)\n"
        "    print('the disk is full', file=sys.stderr, flush=True)\n"
        "    time.sleep(0.05)\n"
        "    os._exit(5)\n"
        "@server.tool()\n"
        "def stay() -> str:\n"
        "    'Stays.'\n"
        "    return 'here'\n"
        "server.run()\ntime.sleep(5)\n"
    )
    server = open_server("python", str(script))
    await server.start()
    first = asyncio.create_task(server.call("leave", {}))
    while server._session._client is not None:  # noqa: ASYNC110 (the moment between the end of the connection and of the process)
        await asyncio.sleep(0)
    # A run that calls now has lost no call, and waits for the next process.
    assert not (await server.call("stay", {})).is_error
    with pytest.raises(ServerError, match=r"^server 'bench' ended with exit code 5") as caught:
        await first
    assert caught.value.output is not None
    assert caught.value.output.lines == ("the disk is full",)


NPX = """#!{python}
import signal, sys, time

def return_lease(*_):
    time.sleep(1)
    open("taken back", "w").close()
    sys.exit(1)

signal.signal(signal.SIGTERM, return_lease)
open("downloading", "w").close()
signal.pause()
"""


async def test_npm_has_the_time_to_take_back_a_download(open_server: OpenServer, tmp_path: Path) -> None:
    npx = tmp_path / "npx"
    npx.write_text(NPX.replace("{python}", sys.executable))
    npx.chmod(0o755)
    os.mkfifo(tmp_path / "downloading")
    server = open_server(str(npx), "-y", "x", folder=tmp_path, limits=IMPATIENT_TO_END)
    start = asyncio.create_task(server.start())
    await asyncio.to_thread((tmp_path / "downloading").read_bytes)
    await server.close()
    assert (tmp_path / "taken back").exists()
    with pytest.raises(ServerError):
        await start
