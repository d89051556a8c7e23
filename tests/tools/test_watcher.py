"""When Workbench is killed, its servers end with all that they started, and the watchers that see to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.conftest import OpenServer
from tests.tools.processes import becomes_true, group_is_gone, is_running, members_of
from workbench.engine.subject import run_program
from workbench.tools import watched_start
from workbench.tools.answer import ServerError

WORKBENCH = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.programs import program_of, started
from workbench.suite.server_model import Server
from workbench.tools.server_pool import ServerPool

async def main():
    folder, servers = Path(sys.argv[1]), int(sys.argv[2])
    pool = ServerPool(program_of(folder, os.environ))
    definitions = [Server(name=f"s{number}", command=("python", "stubborn.py")) for number in range(servers)]
    begun = await asyncio.gather(*(started(pool, folder / "suite.toml", definition) for definition in definitions))
    if "fork" in sys.argv and os.fork() == 0:  # as a server in this process might: it holds all that is open here
        os.setsid()
        os.write(1, b"child %d\\n" % os.getpid())
        signal.pause()
    os.write(1, (" ".join(str(server.pid) for server in begun) + "\\n").encode())  # in one piece
    await asyncio.Event().wait()

asyncio.run(main())
"""

STUBBORN = """
import json, os, signal, sys, threading

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:  # a child that ignores everything, and so does its own
    os.fork()
    while True:
        signal.pause()
if os.fork() == 0:  # a child that leaves the group, and so does its own
    os.setsid()
    if os.fork() == 0:
        os.setsid()
    open(f"escaped-{os.getpid()}", "w").close()
    while True:
        signal.pause()
for line in sys.stdin:
    asked = json.loads(line)
    result = {"tools": []} if asked["method"] == "tools/list" else {
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}
    }
    if "id" in asked:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\\n")
        sys.stdout.flush()
while True:
    signal.pause()
"""


ROOT = Path(__file__).parents[2]


def escaped(folder: Path) -> list[int]:
    """The processes that left the groups of servers in a folder."""
    return [int(file.name.partition("-")[2]) for file in folder.glob("escaped-*")]


def workbench_with(folder: Path, servers: int, *words: str) -> subprocess.Popen[str]:
    (folder / "stubborn.py").write_text(STUBBORN)
    command = [sys.executable, "-c", WORKBENCH, str(folder), str(servers), *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


async def next_line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    line = await asyncio.to_thread(running.stdout.readline)
    assert line, "it ended before it had started its servers"
    return line


@pytest.mark.slow
async def test_servers_that_ignore_everything_end_with_workbench(tmp_path: Path) -> None:
    running = workbench_with(tmp_path, 6)
    groups = list(map(int, (await next_line(running)).split()))
    assert len(groups) == 6
    for group in groups:
        members = members_of(group)
        # The server, its child and grandchild, and the watcher, which is no process's child.
        assert len(members) == 4
        [watcher] = [pid for pid in members if "watched_start" in members[pid]]
        assert "stubborn.py" not in members[watcher]
        assert Path(f"/proc/{watcher}/cwd").readlink() == Path("/")
    await becomes_true(lambda: len(escaped(tmp_path)) == 2 * len(groups))
    running.kill()
    running.wait()
    await becomes_true(lambda: all(map(group_is_gone, groups)) and not any(map(is_running, escaped(tmp_path))))


@pytest.mark.slow
async def test_a_process_that_inherited_everything_from_workbench_keeps_no_server_alive(tmp_path: Path) -> None:
    running = workbench_with(tmp_path, 1, "fork")
    said = [await next_line(running), await next_line(running)]
    [child] = [int(line.split()[1]) for line in said if line.startswith("child")]
    [group] = [int(line) for line in said if not line.startswith("child")]
    running.kill()
    running.wait()
    await becomes_true(lambda: group_is_gone(group))
    assert is_running(child)
    os.kill(child, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
async def test_what_a_server_started_in_sessions_of_their_own_ends_with_it_and_is_named(
    open_server: OpenServer, tmp_path: Path, log_file: Path, killed: bool
) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    # A process of this program in its own session, such as a detached batch or a clipboard's owner.
    own = await asyncio.create_subprocess_exec("sleep", "4242", start_new_session=True)
    try:
        server = open_server("python", "stubborn.py", folder=tmp_path)
        await server.start()
        group = server.pid
        assert group is not None
        await becomes_true(lambda: len(escaped(tmp_path)) == 2)
        if killed:
            os.kill(group, signal.SIGKILL)
        await server.close()
        await becomes_true(lambda: group_is_gone(group) and not any(map(is_running, escaped(tmp_path))))
        log = log_file.read_text()
        assert all(f"process {pid} was left behind" in log for pid in escaped(tmp_path))
        assert log.count("was left behind") == 2 == log.count("stubborn.py\n")
        assert own.returncode is None and is_running(own.pid)
    finally:
        own.kill()
        await own.wait()


async def test_what_a_program_left_behind_in_a_session_of_its_own_ends_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = "setsid sh -c 'echo $$ > escaped-1; exec sleep 4242' & until [ -s escaped-1 ]; do :; done"
    await run_program(("sh", "-c", script), "", folder=tmp_path, environment={"PATH": os.environ["PATH"]})
    [pid] = [int((tmp_path / "escaped-1").read_text())]
    await becomes_true(lambda: not is_running(pid))
    assert f"process {pid} was left behind by sh" in caplog.text


CUT_OFF = """
import os, socket, subprocess, sys
from workbench.tools.watched_start import packed

ours, theirs = socket.socketpair()
failed, told = os.pipe()
command = [sys.executable, "-I", "-S", sys.argv[1], str(theirs.fileno()), str(told)]
started = subprocess.Popen(
    command, stdin=subprocess.PIPE, pass_fds=(theirs.fileno(), told), start_new_session=True
)
if sys.argv[2] == "before the command":
    started.stdin.write(packed([b"sleep", b"1000"]) + packed([b"PATH=" + os.environb[b"PATH"]]))
    started.stdin.flush()
print(started.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("moment", ["before the watcher", "before the command"])
async def test_a_start_that_is_cut_off_leaves_nothing(moment: str) -> None:
    """Workbench ends before it has named the command to start, or while the command is started."""
    program = [sys.executable, "-c", CUT_OFF, watched_start.__file__, moment]
    done = await asyncio.to_thread(subprocess.run, program, stdout=subprocess.PIPE, text=True, timeout=30)
    await becomes_true(lambda: group_is_gone(int(done.stdout)))


REPORT = """
import json, os, signal
as_usual = [signal.getsignal(number) == signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGHUP)]
blocked = list(signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(json.dumps([dict(os.environ), os.listdir("/proc/self/fd"), as_usual, blocked]))
"""


@pytest.mark.parametrize(
    ("word", "env", "why"),
    [
        ("two\0words", {}, "embedded null byte"),
        ("-", {"A": "b\0c"}, "embedded null byte"),
        ("-", {"A=B": "c"}, "illegal environment variable name"),
    ],
)
async def test_what_no_process_can_be_given_starts_nothing(
    open_server: OpenServer, word: str, env: dict[str, str], why: str
) -> None:
    with pytest.raises(ServerError, match=why):
        await open_server("python", "workshop.py", word, env=env).start()


async def test_a_server_is_given_its_own_environment_and_no_open_file_of_workbench(
    open_server: OpenServer, tmp_path: Path
) -> None:
    seen = tmp_path / "seen.json"
    command = ("sh", "-c", f'{sys.executable} -I -c "$REPORT" > {seen}; exit 3')
    environment = {"PATH": os.environ["PATH"], "OTHER": "not for it"}
    with pytest.raises(ServerError, match="ended with exit code 3"):
        await open_server(*command, environment=environment, env={"REPORT": REPORT}).start()
    variables, files, as_usual, blocked = json.loads(seen.read_text())
    assert (variables["PATH"], variables["REPORT"]) == (os.environ["PATH"], REPORT)
    assert "OTHER" not in variables
    assert len(files) == 4  # its input, output and errors, and the list of these
    has_hangups = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN  # under `nohup`, servers outlive a terminal too
    assert (as_usual, blocked) == ([True, has_hangups], [])
