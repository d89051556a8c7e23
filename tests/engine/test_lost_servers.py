"""Batches whose server dies or forgets its session: one run ends with an error that says so, and the others
continue."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.providers.server.server import Server as RawServer
from tests.tools.conftest import SERVERS
from tests.tools.forgetful import GONE, Forgetful
from tests.tools.processes import becomes_true, is_running, servers_of

HEAD = 'format = 1\nname = "lost"\nexecute = true\n\n[[servers]]\nname = "shop"\n'

WORKSHOP = f"command = {json.dumps(['python', str(SERVERS / 'workshop.py')])}\n"


def case(name: str, more: str = "") -> str:
    return f'\n[[cases]]\nname = "{name}"\nuser = "{name}"\n{more}'


async def caller(request: Any) -> Any:
    """Call the tool that the user names, as often as the user asks."""
    tool, _, times = request.messages[0].content.partition(" ")
    calls = {"add": {"a": 1, "b": 2}, "talk": {"number": 1}}
    if len(request.results) < int(times or "1"):
        return workbench.call(tool, **calls.get(tool, {}))
    return "done"


def evaluate(path: Path, **options: Any) -> list[Any]:
    options = {"model": caller, "approve": workbench.ALL, "concurrency": 1, **options}
    return list(workbench.evaluate(path, execute_all=True, **options).results)


def test_one_death_costs_the_run_that_sees_it_and_nothing_else(tmp_path: Path) -> None:
    suite = tmp_path / "lost.toml"
    suite.write_text(HEAD + WORKSHOP + "".join(map(case, ["add 1", "crash", "add 2", "add 3", "add 4"])))
    results = evaluate(suite)
    assert [str(result.status) for result in results] == ["passed", "error", "passed", "passed", "passed"]
    assert "server 'shop' ended with exit code 3" in str(results[1].error)
    assert results[1].trajectory.server_outputs
    notices = [result.trajectory.notices for result in results]
    assert [len(told) for told in notices] == [0, 0, 1, 0, 0]
    assert notices[2][0].startswith("started again: server 'shop' ended with exit code 3")


@pytest.mark.slow
def test_a_server_that_dies_in_every_run_is_started_four_times(tmp_path: Path) -> None:
    suite = tmp_path / "lost.toml"
    suite.write_text(HEAD + WORKSHOP + case("crash"))
    results = evaluate(suite, repeats=7)
    assert {str(result.status) for result in results} == {"error"}
    assert sum("stays down" in str(result.error) for result in results) == 3


@pytest.mark.parametrize(
    ("more", "lasts", "passed"),
    [
        ("", [1, 1, 1], [True, True, True]),
        ("", [2, 1], [True, True, True]),
        ('[[cases.setup]]\ntool = "talk"\nargs = { number = 0 }\n', [3], [True, False, True]),
    ],
)
def test_a_run_that_has_used_a_lost_session_ends_and_others_do_not_notice(
    tmp_path: Path, more: str, lasts: list[int], passed: list[bool]
) -> None:
    forgetful = Forgetful(GONE, lasts)
    with RawServer(forgetful) as raw:
        suite = tmp_path / "lost.toml"
        suite.write_text(f'{HEAD}url = "{raw.url}/mcp"\n' + case("talk", more))
        results = evaluate(suite, repeats=3)
    assert [str(result.status) != "error" for result in results] == passed
    for result in results:
        if str(result.status) == "error":
            assert "the state that this run had there may be lost, so the run ends; the next run gets a new" in str(
                result.error
            )


BATCH = """
import sys, workbench
async def caller(request):
    return workbench.call(request.messages[0].content)
workbench.evaluate(sys.argv[1], model=caller, approve=workbench.ALL, execute_all=True, concurrency=1)
"""


def begun(suite: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start a batch as a separate process with its own folders."""
    folders = {name: str(folder) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME")}
    return subprocess.Popen([sys.executable, "-c", BATCH, str(suite)], env={**os.environ, **folders})


@pytest.mark.slow
async def test_a_killed_batch_leaves_no_server_that_was_started_again(tmp_path: Path) -> None:
    suite = tmp_path / "lost.toml"
    suite.write_text(HEAD + WORKSHOP + case("crash") + case("hang"))
    batch = begun(suite, tmp_path / "own")
    try:

        def is_started_again() -> bool:
            logs = list((tmp_path / "own").rglob("lost-shop-*.log"))
            return bool(logs) and logs[0].read_text().count("== server 'shop'") == 2

        await becomes_true(is_started_again)
        await becomes_true(lambda: bool(servers_of(batch.pid, "workshop.py")))
        (server,) = servers_of(batch.pid, "workshop.py")
    finally:
        batch.kill()
        batch.wait()
    await becomes_true(lambda: not is_running(server))
