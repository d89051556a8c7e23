"""Servers that die or forget their session: the affected run ends, and the next one gets a new session."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.programs import program_of, started
from tests.providers.server.script import Answer, document, page
from tests.providers.server.server import Server as RawServer
from tests.sampled_rows import first_rows
from tests.tools.conftest import QUICK, SERVERS, OpenServer
from tests.tools.forgetful import GONE, Forgetful, json_error
from tests.tools.processes import becomes_true, group_is_gone
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.mcp_server import McpServer, RunServer
from workbench.tools.server_pool import ServerPool

ADD = {"a": 1, "b": 2}

DIED = r"server 'bench' ended with exit code 3 \(command: python workshop.py; log: .*\)"


async def crash(server: McpServer) -> None:
    with pytest.raises(ServerError, match="ended with exit code 3"):
        await RunServer(server).call("crash", {})


def notices(server: McpServer) -> list[str]:
    return [news.notice for news in server.pop_start_notices()]


async def test_after_a_death_the_next_run_has_a_new_process_and_a_notice(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    sees_it, uses_it_too, has_not_called = RunServer(server), RunServer(server), RunServer(server)
    before = await uses_it_too.call("process_id", {})
    under_way = asyncio.create_task(uses_it_too.call("hang", {}))
    with pytest.raises(ServerError, match=DIED):
        await sees_it.call("crash", {})
    with pytest.raises(ServerError, match=DIED):
        await under_way
    assert server.down_reason is not None
    for lost in (sees_it, uses_it_too):
        with pytest.raises(ServerError, match=DIED):
            await lost.call("add", ADD)
    after = await has_not_called.call("process_id", {})
    assert after != before
    assert await RunServer(server).call("process_id", {}) == after
    (news,) = server.pop_start_notices()
    assert news.notice.startswith("started again: server 'bench' ended with exit code 3 (command: ")
    assert news.output is None, "two runs have shown it"
    assert server.pop_start_notices() == []


async def test_the_output_of_a_server_that_dies_between_runs_is_shown_by_the_next_one(
    open_server: OpenServer, tmp_path: Path
) -> None:
    script = tmp_path / "brief.py"
    script.write_text(
        f"import os, sys, threading\nsys.path.insert(0, {str(SERVERS)!r})\n"
        "from workshop import server\n"
        "def leave():\n"
        "    open('go').read()\n"
        "    print('the disk is full', file=sys.stderr, flush=True)\n"
        "    os._exit(5)\n"
        "if not os.path.exists('gone'):\n"
        "    open('gone', 'w').close()\n"
        "    threading.Thread(target=leave, daemon=True).start()\n"
        "server.run()\n"
    )
    os.mkfifo(tmp_path / "go")
    server = open_server("python", str(script), folder=tmp_path)
    await server.start()
    (tmp_path / "go").write_text("now")
    await becomes_true(lambda: server.down_reason is not None)
    assert await RunServer(server).call("add", ADD) == ToolAnswer("3")
    (news,) = server.pop_start_notices()
    assert "ended with exit code 5" in news.notice
    assert news.output is not None
    assert news.output.lines == ("the disk is full",)


async def test_many_runs_at_once_share_one_restart(open_server: OpenServer, log_file: Path) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    await crash(server)
    stopped = asyncio.create_task(RunServer(server).call("process_id", {}))
    others = [asyncio.create_task(RunServer(server).call("process_id", {})) for _ in range(4)]
    await asyncio.sleep(0)
    stopped.cancel()
    assert len({answer.content for answer in await asyncio.gather(*others)}) == 1
    assert log_file.read_text().count("== server 'bench'") == 2


@pytest.mark.slow
async def test_a_server_that_dies_again_and_again_stays_down_until_the_next_batch(
    open_server: OpenServer, log_file: Path
) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    for _ in range(4):
        await crash(server)
    stays = DIED + "; it has failed 4 times in this batch, and stays down"
    for _ in range(2):
        with pytest.raises(ServerError, match=stays) as caught:
            await RunServer(server).call("add", ADD)
        assert caught.value.output is not None
    assert log_file.read_text().count("== server 'bench'") == 4
    server.begin_batch()
    assert await RunServer(server).call("add", ADD) == ToolAnswer("3")


@pytest.mark.slow
async def test_a_death_after_many_answers_is_no_habit(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    for _ in range(6):
        for _ in range(10):
            assert await RunServer(server).call("add", ADD) == ToolAnswer("3")
        await crash(server)
    assert await RunServer(server).call("add", ADD) == ToolAnswer("3")


async def test_a_server_that_never_started_is_not_started_again(open_server: OpenServer, log_file: Path) -> None:
    server = open_server("python", "-c", "raise SystemExit(3)", protocol="legacy")
    for _ in range(2):
        with pytest.raises(ServerError, match="ended with exit code 3 before it listed its tools"):
            await server.start() if server.down_reason is None else await RunServer(server).call("add", ADD)
    assert log_file.read_text().count("== server 'bench'") == 1


async def test_a_restart_that_fails_counts_and_closing_ends_one_that_hangs(
    open_server: OpenServer, tmp_path: Path
) -> None:
    script = tmp_path / "once.py"
    script.write_text(
        f"import os, sys, time\nsys.path.insert(0, {str(SERVERS)!r})\n"
        "from workshop import server\n"
        "starts = len(os.listdir('starts'))\n"
        "open(f'starts/{starts}', 'w').close()\n"
        "if starts == 1: sys.exit('no licence is left')\n"
        "if starts == 2: sys.stdin.read()\n"
        "server.run()\n"
    )
    (tmp_path / "starts").mkdir()
    limits = replace(QUICK, probe_s=60, greeting_s=60)
    server = open_server("python", str(script), folder=tmp_path, protocol="auto", limits=limits)
    await server.start()
    await crash(server)
    # The one that ends is asked once more in the old way, and hangs.
    waiting = asyncio.create_task(RunServer(server).call("add", ADD))
    await becomes_true(lambda: len(list((tmp_path / "starts").iterdir())) == 3)
    assert server.renewal is not None
    await server.close()
    with pytest.raises(ServerError, match="was closed"):
        await waiting
    assert group_is_gone(server.pid)


async def test_the_runs_of_a_batch_are_offered_the_same_tools_after_a_restart(
    open_server: OpenServer, tmp_path: Path
) -> None:
    script = tmp_path / "moody.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(SERVERS)!r})\n"
        "from workshop import server\n"
        "if os.path.exists('other'):\n"
        "    server._tools.pop('refuse')\n"
        "    server._tools['shout'] = server._tools['echo']\n"
        "    server._tools['shout'][0]['name'] = 'shout'\n"
        "server.run()\n"
    )
    server = open_server("python", str(script), folder=tmp_path, prefix="b_")
    await server.start()
    offered = server.tools
    (tmp_path / "other").touch()
    with pytest.raises(ServerError):
        await RunServer(server).call("b_crash", {})
    assert await RunServer(server).call("b_add", ADD) == ToolAnswer("3")
    assert server.tools == offered
    assert "b_shout" in {tool.name for tool in server.listed}
    for started_again in (True, False):
        told = notices(server)
        assert len(told) == 1 + started_again
        assert told[-1] == (
            "server 'bench' has other tools (added b_shout; removed b_echo, b_refuse) since it was started again, "
            "but the runs of this batch still get the earlier ones"
        )
    server.begin_batch()
    assert server.tools == server.listed
    assert notices(server) == []


async def test_a_server_that_is_closed_before_its_restart_begins_is_not_started(
    open_server: OpenServer, log_file: Path
) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    await crash(server)
    # The call requests the restart, and the server is closed before the restart begins.
    wanted = asyncio.create_task(RunServer(server).call("add", ADD))
    closed = asyncio.create_task(server.close())
    with pytest.raises(ServerError, match="was closed"):
        await wanted
    await closed
    assert log_file.read_text().count("== server 'bench'") == 1


REFUSALS = [
    pytest.param(GONE, True, id="404 with an error of JSON-RPC"),
    pytest.param(page("<h1>Not Found</h1>", 404), True, id="404 of a gateway"),
    pytest.param(document(json_error(-32000, "Bad Request: No valid session ID provided", None), 400), True, id="400"),
    pytest.param(document(json_error(-32000, "Bad Request: Server not initialized", None), 400), True, id="400 after"),
    pytest.param(page("Gone", 410), True, id="410"),
    pytest.param(document(json_error(-32602, "the number is odd", 1), 400), False, id="400 about something else"),
    pytest.param(document(json_error(-32601, "Method not found", 1), 404), False, id="404 for an unknown method"),
]


@pytest.mark.parametrize(("refusal", "expired"), first_rows(REFUSALS, 4))
async def test_a_session_that_expired_is_replaced_and_the_call_repeated(
    pool: ServerPool, refusal: Answer, expired: bool
) -> None:
    forgetful = Forgetful(refusal)
    with RawServer(forgetful) as raw:
        server = await started(pool, SERVERS / "suite.toml", Server(name="hosted", url=f"{raw.url}/mcp"))
        had_called, calls_now = RunServer(server), RunServer(server)
        assert await had_called.call("talk", {"number": 1}) == ToolAnswer("s1")
        forgetful.forget()
        if not expired:
            assert (await calls_now.call("talk", {"number": 2})).is_error
            assert forgetful.opened == 1
            return
        assert await calls_now.call("talk", {"number": 2}) == ToolAnswer("s2")
        for _ in range(2):
            with pytest.raises(
                ServerError, match=r"server 'hosted' has forgotten the session.*the next run gets a new"
            ):
                await had_called.call("talk", {"number": 3})
        assert await calls_now.call("talk", {"number": 4}) == ToolAnswer("s2")
        assert notices(server) == ["server 'hosted' had forgotten the session, and got a new one"]
    assert forgetful.called == [("s1", 1), ("s2", 2), ("s2", 4)]
    assert forgetful.opened == 2


async def test_a_server_that_forgets_each_session_at_once_is_asked_twice_and_no_more(pool: ServerPool) -> None:
    forgetful = Forgetful(GONE, [0] * 9)
    with RawServer(forgetful) as raw:
        server = await started(pool, SERVERS / "suite.toml", Server(name="hosted", url=f"{raw.url}/mcp"))
        with pytest.raises(ServerError, match="server 'hosted' has forgotten the session"):
            await RunServer(server).call("talk", {"number": 1})
    assert forgetful.opened == 2
    assert forgetful.called == []


@given(
    lasts=st.lists(st.integers(1, 6), max_size=4),
    calls=st.lists(st.integers(1, 3), min_size=1, max_size=8),
)
@settings(max_examples=examples(36), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_runs_at_once_never_share_a_lost_session_nor_repeat_a_call(
    tmp_path: Path, lasts: list[int], calls: list[int]
) -> None:
    forgetful = Forgetful(GONE, lasts)

    async def run(server: RunServer, numbers: Sequence[int]) -> list[str]:
        sessions = []
        for number in numbers:
            try:
                sessions.append((await server.call("talk", {"number": number})).content)
            except ServerError as error:
                assert "has forgotten the session" in str(error)
                break
        return sessions

    async def batch() -> list[list[str]]:
        pool = ServerPool(program_of(tmp_path), QUICK)
        try:
            server = await started(pool, tmp_path / "suite.toml", Server(name="hosted", url=f"{raw.url}/mcp"))
            runs = []
            for index, count in enumerate(calls):
                runs.append(run(RunServer(server), range(10 * index, 10 * index + count)))
            return await asyncio.gather(*runs)
        finally:
            await pool.close()

    with RawServer(forgetful) as raw:
        answers = asyncio.run(batch())
    assert all(len(set(sessions)) <= 1 for sessions in answers), "a run has one session"
    executed = [number for _, number in forgetful.called]
    assert len(executed) == len(set(executed)), "no call was executed twice"
    assert len(executed) == sum(map(len, answers))
    assert forgetful.opened <= 1 + len(lasts)
    if not lasts:
        assert [len(sessions) for sessions in answers] == calls


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_server_that_was_killed_is_started_again(open_server: OpenServer, how: signal.Signals) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    assert server.pid is not None
    os.kill(server.pid, how)
    await becomes_true(lambda: server.down_reason is not None)
    assert await server.call("add", ADD) == ToolAnswer("3")
    assert notices(server)[0].startswith(f"started again: server 'bench' was ended by {how.name} ")


async def test_a_watcher_sees_a_server_die_and_come_back(pool: ServerPool) -> None:
    definition = Server(name="bench", command=("python", "workshop.py"))
    file = SERVERS / "suite.toml"
    server = await started(pool, file, definition)
    seen = pool.status(file, definition)
    assert seen.state == "running"
    dies = asyncio.create_task(pool.wait_for_change(file, definition, seen.tools))
    await crash(server)
    await dies
    assert pool.status(file, definition).state == "down"
    comes_back = asyncio.create_task(pool.wait_for_change(file, definition))
    used = asyncio.create_task(RunServer(server).call("add", ADD))
    await comes_back
    assert pool.status(file, definition).state == "starting"
    await pool.wait_for_change(file, definition)
    assert pool.status(file, definition).state == "running"
    assert await used == ToolAnswer("3")
