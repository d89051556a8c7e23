"""Servers with `state = "run"`: each run has its own, and none is left when a batch has ended or was killed."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench
from tests.cli.program import Program
from tests.example_counts import examples
from tests.programs import grant_of
from tests.sampled_rows import first_rows
from tests.tools.conftest import SERVERS
from tests.tools.processes import becomes_true, servers_of
from tests.tools.web import Speaks, hosted
from workbench.config.folders import user_folders
from workbench.suite.model import Suite
from workbench.suite.server_model import Server
from workbench.tools.answer import ServerError
from workbench.tools.server_pool import ServerPool

SUITE = """format = 1
name = "Places"
execute = true

[[servers]]
name = "counting"
command = ["{python}", "{script}"]
{state}

[[cases]]
name = "Look"
user = "Look twice."
repeats = {repeats}
{more}
"""


def suite_in(folder: Path, state: str = 'state = "run"', repeats: int = 1, more: str = "") -> Path:
    path = folder / "places.toml"
    values = {"python": sys.executable, "script": SERVERS / "counting.py", "state": state, "repeats": repeats}
    path.write_text(SUITE.format(more=more, **values))
    return path


async def looker(request: Any) -> Any:
    """Look twice, and answer with the tool's text."""
    if not request.results:
        return [workbench.call("look", place="here"), workbench.call("look", place="there")]
    return " ".join(result.content for result in request.results)


def answers(path: Path, concurrency: int) -> list[str]:
    report = workbench.evaluate(path, model=looker, approve=workbench.ALL, concurrency=concurrency)
    return [result.trajectory.final_answer or str(result.error) for result in report.results]


@pytest.mark.slow
@given(repeats=st.integers(2, 8), concurrency=st.integers(1, 5))
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_runs_at_once_are_equal_when_each_has_its_own_server(tmp_path: Path, repeats: int, concurrency: int) -> None:
    assert set(answers(suite_in(tmp_path, repeats=repeats), concurrency)) == {"look 1: here look 2: there"}
    assert servers_of(os.getpid(), str(SERVERS / "counting.py")) == []


def test_runs_that_share_a_server_see_each_other(tmp_path: Path) -> None:
    found = answers(suite_in(tmp_path, state="", repeats=5), 5)
    assert len(found) == len(set(found)) == 5


def test_a_module_is_loaded_anew_for_each_run(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "mcp = MCPServer('counter')\n"
        "SEEN = []\n"
        "@mcp.tool()\n"
        "def look(place: str) -> str:\n"
        "    SEEN.append(place)\n"
        "    return f'look {len(SEEN)}: {place}'\n"
    )
    path = suite_in(tmp_path, repeats=3)
    command = next(line for line in path.read_text().splitlines() if line.startswith("command"))
    path.write_text(path.read_text().replace(command, 'module = "counter"'))
    report = workbench.evaluate(path, model=looker, approve=workbench.ALL, execute_all=True, concurrency=3)
    assert {result.trajectory.final_answer for result in report.results} == {"look 1: here look 2: there"}
    assert not [name for name in sys.modules if name.endswith(".counter") and not name.startswith("distributed")]


SET_UP = """
[[cases.setup]]
tool = "look"
args = { place = "before" }
[[cases.final.state]]
tool = "look"
args = { place = "after" }
result = "look 4: after"
"""


def test_setup_and_final_use_the_servers_of_the_run_and_are_in_the_log_of_executions(tmp_path: Path) -> None:
    path = suite_in(tmp_path, repeats=3, more=SET_UP)
    report = workbench.evaluate(path, model=looker, approve=workbench.ALL, concurrency=3)
    assert [str(result.status) for result in report.results] == ["passed"] * 3, [r.error for r in report.results]
    first = report.results[0].trajectory
    assert first.final_answer == "look 2: here look 3: there"
    assert [(call.stage, call.content, call.server) for call in first.own_calls] == [
        ("setup", "look 1: before", "counting"),
        ("final", "look 4: after", "counting"),
    ]
    log = user_folders().audit_log.read_text().splitlines()
    ours = [json.loads(line) for line in log if json.loads(line)["suite"] == str(path)]
    allowed = [line["allowed"] for line in ours if line["event"] == "started"]
    assert sorted(allowed) == ["read-only"] * 6 + ["suite"] * 6


def test_calls_of_the_suite_are_named_before_anything_is_trusted(tmp_path: Path) -> None:
    with pytest.raises(workbench.ApprovalError, match=r'call the tool: look \{"place": "after"\} \(for `setup` or'):
        workbench.evaluate(suite_in(tmp_path, more=SET_UP), model=looker)


async def test_a_killed_batch_leaves_no_server_behind(tmp_path: Path) -> None:
    (tmp_path / "calls.toml").write_text("")
    path = suite_in(tmp_path, repeats=30, more='[[mocks]]\ntool = "none"\nresult = ""\nunlisted = true\n')
    slow = "import asyncio, workbench.engine.own_calls as own\nasync def wait(self): await asyncio.Event().wait()\n"
    running = Program(tmp_path).start(
        "run", path.name, "--trust", "--execute", first=f"{slow}own.OwnCalls.run_final = wait\n"
    )
    with running:
        await becomes_true(lambda: len(servers_of(running.pid, "counting.py")) > 2)
        servers = servers_of(running.pid, "counting.py")
        running.send_signal(signal.SIGKILL)
        await becomes_true(lambda: not [pid for pid in servers if Path(f"/proc/{pid}/cmdline").exists()])


FAILING = "import sys; sys.exit(3)"
CHANGING = """
import pathlib, sys
sys.path.insert(0, {servers!r})
from plain import PlainServer
seen = pathlib.Path("seen")
seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
server = PlainServer("changing")
def look() -> str:
    "Look."
    return "seen"
look.__name__ = f"look_{{len(seen.read_text())}}"
server.tool(readOnlyHint=True)(look)
server.run()
"""


SOME_CASE = Suite.model_validate({"format": 1, "name": "x", "cases": [{"name": "c", "user": "u"}]})


async def take(pool: ServerPool, folder: Path, code: str) -> str:
    """Open the tools of one run and give them back; return the names of the tools, or the error."""
    (folder / "server.py").write_text(code)
    server = Server(name="bench", command=(sys.executable, "server.py"), state="run")
    suite = Suite(format=1, name="any", execute=True, servers=(server,))
    file = folder / "suite.toml"
    grant = grant_of(suite, file, pool._program.environment)
    try:
        tools = await pool.open_toolbox(suite, SOME_CASE.cases[0], file, execute=True, grant=grant)
    except ServerError as error:
        return str(error)
    tools.close()
    return " ".join(tool.name for tool in tools.definitions)


@pytest.mark.slow
async def test_a_server_that_never_starts_is_not_started_for_every_run(pool: ServerPool, tmp_path: Path) -> None:
    errors = [await take(pool, tmp_path, FAILING) for _ in range(5)]
    assert all("ended with exit code 3" in error for error in errors)
    assert ["failed to start 3 times in a row" in error for error in errors] == [False] * 3 + [True] * 2
    await pool.begin_batch()
    assert "in a row" not in await take(pool, tmp_path, FAILING)


async def test_a_server_that_lists_other_tools_for_a_later_run_is_refused(pool: ServerPool, tmp_path: Path) -> None:
    code = CHANGING.format(servers=str(SERVERS))
    assert await take(pool, tmp_path, code) == "look_1"
    error = await take(pool, tmp_path, code)
    assert "lists different tools than for the first run of this batch" in error
    assert "removed look_1" in error


@pytest.mark.parametrize(
    ("speaks", "protocol", "notices"), first_rows([("old", "auto", 0), ("http", "auto", 1), ("http", "legacy", 0)], 2)
)
async def test_a_url_gets_a_session_for_each_run_or_cannot_tell_runs_apart(
    pool: ServerPool, speaks: Speaks, protocol: str, notices: int
) -> None:
    with hosted("sdk_workshop", speaks) as host:
        suite = Suite(format=1, name="any", execute=True, servers=(host.definition(state="run", protocol=protocol),))
        file, (case,) = SERVERS / "suite.toml", SOME_CASE.cases
        grant = grant_of(suite, file, pool._program.environment)
        found = []
        for _ in range(2):
            tools = await pool.open_toolbox(suite, case, file, execute=True, grant=grant)
            found += [notice for notice in tools.notices if "without sessions" in notice]
            tools.close()
        assert len(found) == notices
        assert all('protocol = "legacy" in its [[servers]]' in notice for notice in found)
