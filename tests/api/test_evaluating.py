"""Suites evaluated from Python: on endpoints, on agents, in event loops, stopped half-way, with real servers."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.providers.server import Call, Usage, base_url_of, said, serve
from tests.tools.processes import servers_of
from workbench.api.option_types import check_types
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent
from workbench.evaluation.options import RunOptions
from workbench.history.history import History
from workbench.providers.offline.model import OfflineModel
from workbench.trajectory.events import ExecutionStarted

SERVED = """format = 1
name = "Served"
models = ["openai:paid"]

[[servers]]
name = "counter"
command = ["PYTHON", "server.py"]

[[mocks]]
tool = "ask"
python = "answers:answer"

[[cases]]
name = "Count"
user = "Count to two."
[[cases.ordered]]
tool = "count"
args = { to = 2 }
[[cases.ordered]]
tool = "ask"

[[cases]]
name = "Wait"
user = "Wait."
[[cases.ordered]]
tool = "wait"
"""

SERVER = """
import asyncio, os
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

open("started", "a").write(f"{os.getpid()}\\n")
server = MCPServer("counter")
reads = ToolAnnotations(readOnlyHint=True)

@server.tool(annotations=reads)
def count(to: int) -> str:
    return ", ".join(map(str, range(1, to + 1)))

@server.tool(annotations=reads)
async def wait() -> str:
    await asyncio.sleep(600)
    return "never"

@server.tool()
def ask() -> str:
    return "from the server"

server.run("stdio")
"""


@pytest.fixture
def served(folder: Path) -> Path:
    """A suite with its own server, a Python mock and a model with a price."""
    (folder / "server.py").write_text(SERVER)
    (folder / "answers.py").write_text('open("imported", "w").close()\ndef answer(arguments): return "mocked"\n')
    (folder / "served.toml").write_text(SERVED.replace("PYTHON", sys.executable))
    return folder / "served.toml"


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail if a thread or a server outlives the block."""
    before = set(threading.enumerate())
    yield
    assert servers_of(os.getpid(), "server.py") == []
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(10)  # one that imports something ends when it has
    assert [thread.name for thread in left if thread.is_alive()] == []


async def clock_agent(request: workbench.AgentRequest) -> workbench.AgentReply:
    """Gets both cases of the clock right."""
    if request.results:
        return request.results[0].content
    return workbench.call("get_time", timezone="Europe/Oslo") if "time" in request.prompt else "Fine."


async def counting_agent(request: workbench.AgentRequest) -> workbench.AgentReply:
    """Call both tools of the server in turn."""
    match request.round:
        case 1:
            return workbench.call("count", to=2)
        case 2:
            return workbench.AgentAnswer("Let me ask.", [workbench.call("ask")], usage=workbench.Usage(3, 4))
        case _:
            return " and ".join(message.content for message in request.messages if message.role == "tool")


def test_both_functions_take_each_option_as_a_keyword(folder: Path) -> None:
    keywords = {field.name for field in fields(workbench.RunOptions)}
    for function in (workbench.evaluate, workbench.evaluate_async):
        assert list(inspect.signature(function).parameters)[:2] == ["suites", "options"]
        assert set(inspect.signature(function).parameters) == {"suites", "options", *keywords}
    assert {field.name for field in fields(RunOptions)} - keywords == {
        "suites",
        "compares",
        "added_variants",  # by `variants`
        "shard",
        "until",
        "history_named",  # of the command line's exit code
    }
    with pytest.raises(TypeError, match="evaluate has no option 'repeat': did you mean `repeats`"):
        workbench.evaluate("clock.toml", repeat=2)  # type: ignore[call-arg]
    options = workbench.RunOptions(model=clock_agent, cases=["small-talk"], repeats=2)
    assert len(workbench.evaluate("clock.toml", options).runs) == 2
    assert len(workbench.evaluate("clock.toml", options, repeats=3).runs) == 3
    with pytest.raises(TypeError, match=r"must be a workbench\.RunOptions, not a str: a model is given as model=…"):
        workbench.evaluate("clock.toml", "offline")  # type: ignore[arg-type]
    # Each annotation has a check, and each default fits.
    check_types(workbench.RunOptions())


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("repeats", "3", "repeats must be a whole number, not '3'"),
        ("repeats", True, "repeats must be a whole number, not True"),
        ("min_score", "0.8", "min_score must be a number, not '0.8'"),
        ("cases", "small-talk", "cases must be a list of strings, not 'small-talk': write cases=['small-talk']"),
        ("tags", [5], "tags must be a list of strings, not [5]"),
        ("models", "offline", "models must be a list of models, not 'offline': write models=['offline']"),
        ("cells", [5], "cells must be a list of cells, as suite.cells() returns, not [5]"),
        ("variants", "terse", "variants must be True, False or a list of names, paths and tables, not 'terse': "),
        ("by", "critic", "by must be one of 'critics', 'decision', "),
        ("system", 5, "system must be a string, not 5"),
        ("history", "", "history must be True, False or a path, not ''"),
        ("record", 5, "record must be a path, not 5"),
        ("resume", 1.5, "resume must be True, False, or the number or name of a batch, not 1.5"),
        ("fail_on", "regressions", "fail_on must be one of 'regression', not 'regressions'"),
        ("fail_on", "regression", "fail_on needs a batch to compare with: give baseline=… too"),
        ("execute", "yes", "execute must be True or False, not 'yes'"),
        ("params", ["seed"], "params must be a mapping of names to values, not ['seed']"),
        ("judge", 5, "judge must be a string, not 5"),
        ("approve", True, "approve must be a function, such as workbench.ALL, not True"),
        ("on_event", 5, "on_event must be a function, not 5"),
    ],
)
def test_an_option_of_another_type_is_refused_with_its_name(folder: Path, option: str, value: object, why: str) -> None:
    with pytest.raises(workbench.UsageError, match=f"^{re.escape(why)}"):
        workbench.evaluate("clock.toml", **{"model": clock_agent, option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, 5, b"clock.toml", [None], clock_agent])
def test_what_is_no_suite_is_refused(folder: Path, given: Any) -> None:
    with pytest.raises(workbench.UsageError, match=r"^a suite is a path, a workbench\.Suite, or one"):
        workbench.evaluate(given, model=clock_agent)


def test_a_model_behind_an_endpoint_is_evaluated(folder: Path) -> None:
    suite = workbench.load("clock.toml")
    call = said("openai", calls=[Call("get_time", {"timezone": "Europe/Oslo"})], usage=Usage(10, 5))
    with nothing_left_behind(), serve(call, said("openai", text="Noon."), call, said("openai", text="Noon.")) as server:
        name = f"openai:tiny@{base_url_of(server, 'openai')}"
        report = workbench.evaluate(
            suite, model=name, cases=["time-in-bergen"], repeats=2, concurrency=1, params={"temperature": 0}
        )
        assert server.requests[0].json["temperature"] == 0
    case = report.cases["time-in-bergen"]
    assert (report.passed, report.score, report.exit_code, case.passed, len(case.runs)) == (True, 1.0, 0, True, 2)
    assert case.runs[1].trajectory.calls[0].arguments == {"timezone": "Europe/Oslo"}
    assert report.totals.usage is not None
    assert json.loads(report.json())["totals"]["passed"] == 2
    report.assert_passed()


@pytest.mark.slow
def test_an_agent_is_asked_again_with_what_servers_and_mocks_answer(served: Path) -> None:
    with nothing_left_behind():
        report = workbench.evaluate(
            served, model=counting_agent, cases=["count"], approve=workbench.ALL, execute=True, repeats=2
        )
    assert (report.passed, len(report.runs)) == (True, 2)
    for result in report.results:
        assert (result.model, result.cost_usd) == ("counting_agent", None)
        first, second = result.trajectory.calls
        assert (first.server, second.result and second.result.source) == ("counter", "suite mock")
        assert (first.call.id, second.call.id, second.round) == ("call-1", "call-2", 2)
        assert result.trajectory.final_answer == "1, 2 and mocked"
        assert result.trajectory.rounds[1].text == "Let me ask."
        assert result.trajectory.usage == workbench.Usage(3, 4)
    assert len((served.parent / "started").read_text().splitlines()) == 1


def test_what_is_not_approved_is_refused_before_anything_starts(served: Path) -> None:
    def only_commands(needs: workbench.SuiteNeeds) -> bool:
        return not needs.python

    for evaluated in (
        partial(workbench.evaluate, [served, "clock.toml"]),
        partial(workbench.evaluate, [served, "clock.toml"], approve=only_commands),
    ):
        with pytest.raises(workbench.ApprovalError) as refused:
            evaluated()
        (needs,) = refused.value.needs
        assert (len(needs.commands), needs.python) == (1, ("answers:answer",))
        for line in (
            "run the command: ",
            "call the Python function: answers:answer",
            "ask the model paid at",
            "workbench.ALL",
        ):
            assert line in str(refused.value)
    assert not (served.parent / "started").exists()
    assert not (served.parent / "imported").exists()


def test_what_cannot_be_meant_is_said_before_any_run(folder: Path) -> None:
    empty = folder / "empty"
    empty.mkdir()
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"cases": ["time-in-bergan"]}, "there is no case 'time-in-bergan'; did you mean time-in-bergen"),
        ({"tags": ["tim"]}, "there is no tag 'tim'"),
        ({"model": "gpt-4o-mini"}, "there is no model 'gpt-4o-mini'"),
        ({"repeats": 0}, "repeats must be a whole number from 1"),
        ({"model": clock_agent, "models": [workbench.Agent(counting_agent, "clock_agent")]}, "'clock_agent'"),
        (
            {"model": 7},
            "a model is a name, a workbench.Model, a workbench.Agent or a function, not a value",
        ),
    )
    for arguments, why in wrong:
        with pytest.raises(workbench.UsageError, match=why):
            workbench.evaluate("clock.toml", **arguments)
    with pytest.raises(workbench.SuiteError, match="unknown key `expect_no_cals`"):
        workbench.evaluate(["clock.toml", "broken.toml"])
    with pytest.raises(workbench.UsageError, match="there is no suite in"):
        workbench.evaluate(empty)


def test_what_an_agent_raises_is_an_error_of_its_run_and_not_a_failure(folder: Path) -> None:
    async def broken(request: workbench.AgentRequest) -> workbench.AgentReply:
        raise ValueError(f"cannot do {request.case}")

    report = workbench.evaluate("clock.toml", models=[broken, clock_agent], tags=["time"])
    assert [result.status for result in report.results] == ["error", "passed"]
    assert (report.passed, report.exit_code, report.cases.of("time-in-bergen", model="clock_agent").passed) == (
        False,
        3,
        True,
    )
    with pytest.raises(LookupError, match="several"):
        _ = report.cases["time-in-bergen"]
    with pytest.raises(KeyError, match="did you mean"):
        _ = report.cases["time-in-berg"]
    with pytest.raises(AssertionError) as raised:
        report.assert_passed()
    assert "the agent broken raised ValueError: cannot do time-in-bergen" in str(raised.value)
    assert "clock_agent" not in str(raised.value).partition("\n\n")[0]


def test_a_model_object_and_several_suites_make_one_report(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "again.toml").write_text((folder / "clock.toml").read_text().replace("Clock", "Again"))

    class Baseline(OfflineModel):
        name = "baseline"

    report = workbench.evaluate([workbench.load("clock.toml"), "more"], model=Baseline(), by="accuracy")
    assert [result.status for result in report.results] == ["failed", "passed"] * 2
    assert {result.grades[0].grader for result in report.results} == {"accuracy"}
    assert report.cases.of("small-talk", suite="more/again.toml").passed
    text = report.text()
    assert "Again › Time in Bergen" in text
    assert "Clock › Time in Bergen" in text


@pytest.mark.slow
def test_runs_are_recorded_only_where_that_is_wanted(folder: Path, tmp_path: Path) -> None:
    workbench.evaluate("clock.toml", model=clock_agent)
    assert not [*tmp_path.rglob("*.sqlite3")]
    file = tmp_path / "batches.sqlite3"
    report = workbench.evaluate("clock.toml", model=clock_agent, history=file)
    assert (report.batch, report.unrecorded) == (1, 0)
    with History(file) as history:
        assert [run.figures and run.figures.status for run in history.runs(1)] == ["passed", "passed"]
    (folder / ".workbench").mkdir()
    assert workbench.evaluate("clock.toml", model=clock_agent, history=True).batch == 1
    assert (folder / ".workbench" / "history.sqlite3").exists()

    workbench.evaluate("clock.toml", model=clock_agent, tags=["time"], record="recorded").assert_passed()
    replayed = workbench.evaluate("clock.toml", model="replay:recorded", tags=["time"])
    assert replayed.cases["time-in-bergen"].runs[0].trajectory.final_answer == "It is 12:00 in Europe/Oslo."
    (folder / "file").write_text("no history" * 100)
    with pytest.warns(RuntimeWarning, match="file"):
        assert workbench.evaluate("clock.toml", model=clock_agent, history="file").passed
    with pytest.raises(workbench.UsageError, match="cannot be recorded in file"):
        workbench.evaluate("clock.toml", model=clock_agent, record="file")
    assert not workbench.evaluate("clock.toml", model="offline", record_failed="failed").passed
    assert [file.name.split(".")[1] for file in Path("failed").iterdir()] == ["time-in-bergen"]


def test_what_broke_since_a_baseline_decides_where_that_is_wanted(folder: Path) -> None:
    history = folder / "batches.sqlite3"
    workbench.evaluate("clock.toml", model=clock_agent, history=history).assert_passed()

    async def worse(request: workbench.AgentRequest) -> workbench.AgentReply:
        return "I do not know."

    agent = workbench.Agent(worse, "clock_agent")
    report = workbench.evaluate(
        "clock.toml", model=agent, history=history, baseline=1, fail_on="regression", min_score=0.1
    )
    assert (report.passed, report.batch) == (False, 2)
    assert report.against is not None
    assert report.against.verdict in report.text()
    with pytest.raises(workbench.UsageError, match="no batch"):
        workbench.evaluate("clock.toml", model=agent, history=history, baseline="last week's")


@pytest.mark.parametrize(("fails", "outcome"), [(5, "confirmed"), (2, "recovered")])
def test_an_agent_is_asked_again_about_what_broke(folder: Path, fails: int, outcome: str) -> None:
    history, asked = folder / "batches.sqlite3", list[str]()
    workbench.evaluate("clock.toml", model=clock_agent, history=history, repeats=2).assert_passed()

    async def agent(request: workbench.AgentRequest) -> workbench.AgentReply:
        asked.append(request.run)
        if request.case == "time-in-bergen" and len(set(asked)) <= fails + 2:
            return "I do not know."
        return await clock_agent(request)

    options: dict[str, Any] = {"baseline": 1, "fail_on": "regression", "history": history, "concurrency": 1}
    report = workbench.evaluate(
        "clock.toml",
        model=workbench.Agent(agent, "clock_agent"),
        repeats=2,
        cases=["small-talk", "time-in-bergen"],
        **options,
    )
    assert report.against is not None and report.against.confirmed is not None
    (case,) = report.against.confirmed.cases
    assert (case.outcome, report.passed, len(report.runs)) == (outcome, outcome == "recovered", 4)
    assert report.against.confirmed.batch == 3
    none = workbench.evaluate(
        "clock.toml", model=workbench.Agent(clock_agent, "clock_agent"), repeats=2, confirm="none", **options
    )
    assert none.passed and none.against is not None and none.against.confirmed is None


def test_an_interrupted_batch_goes_on_with_an_agent_that_is_given_again(folder: Path) -> None:
    history, asked, may_end = folder / "batches.sqlite3", list[str](), False

    async def agent(request: workbench.AgentRequest) -> workbench.AgentReply:
        asked.append(request.case)
        if request.case == "small-talk" and not may_end:
            await asyncio.Event().wait()
        return await clock_agent(request)

    def interrupt(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workbench.evaluate("clock.toml", model=agent, concurrency=1, history=history, on_event=interrupt)
    may_end = True
    assert asked.count("time-in-bergen") == 2
    for wrong, why in (({"model": "offline"}, "model of batch 1, which has agent"), ({}, "'agent' of batch 1 can")):
        with pytest.raises(workbench.UsageError, match=why):
            workbench.evaluate("clock.toml", history=history, resume=True, **wrong)  # type: ignore[arg-type]
    report = workbench.evaluate("clock.toml", model=agent, history=history, resume=True)
    assert (asked.count("time-in-bergen"), asked[-1]) == (2, "small-talk")
    assert (report.batch, report.passed, len(report.runs)) == (1, True, 2)
    with pytest.raises(workbench.UsageError, match="nothing to resume"):
        workbench.evaluate("clock.toml", model=agent, history=history, resume=True)


async def test_two_evaluations_share_a_loop_and_agents_run_in_it(folder: Path) -> None:
    seen: list[BatchEvent] = []
    home = threading.current_thread()
    both = asyncio.Barrier(2)

    async def agent(request: workbench.AgentRequest) -> workbench.AgentReply:
        assert threading.current_thread() is home
        if request.case == "time-in-bergen" and not request.results:
            await both.wait()  # both evaluations are under way
        return await clock_agent(request)

    with nothing_left_behind():
        reports = await asyncio.gather(
            workbench.evaluate_async("clock.toml", model=agent, on_event=seen.append),
            workbench.evaluate_async("clock.toml", model=agent),
        )
    assert [report.passed for report in reports] == [True, True]
    assert {result.run_id for result in reports[0].results} == {
        event.result.run_id for event in seen if isinstance(event, RunDone)
    }
    assert isinstance(seen[-1], BatchDone)


async def test_evaluate_works_inside_a_running_loop(folder: Path) -> None:
    with nothing_left_behind():
        assert workbench.evaluate("clock.toml", model=clock_agent).passed


def test_an_interrupt_stops_the_runs_and_is_passed_on(folder: Path) -> None:
    async def interrupting(request: workbench.AgentRequest) -> workbench.AgentReply:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return ""

    with nothing_left_behind(), pytest.raises(KeyboardInterrupt):
        workbench.evaluate("clock.toml", model=interrupting, concurrency=1)


@pytest.mark.slow
async def test_cancelling_stops_runs_agents_and_servers(served: Path) -> None:
    ended: list[str] = []
    thinks, executes = asyncio.Event(), asyncio.Event()

    async def waiting(request: workbench.AgentRequest) -> workbench.AgentReply:
        if request.case == "wait":
            return workbench.call("wait")
        thinks.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(request.case)
        return ""

    def on_event(event: BatchEvent) -> None:
        if isinstance(event, RunEvent) and isinstance(event.event.payload, ExecutionStarted):
            executes.set()

    with nothing_left_behind():
        going = asyncio.create_task(
            workbench.evaluate_async(served, model=waiting, approve=workbench.ALL, execute=True, on_event=on_event)
        )
        await asyncio.gather(thinks.wait(), executes.wait())
        assert len(servers_of(os.getpid(), "server.py")) == 1
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
    assert ended == ["count"]


async def test_a_listener_that_raises_ends_the_evaluation(folder: Path) -> None:
    def on_event(event: BatchEvent) -> None:
        raise RuntimeError("the listener broke")

    with nothing_left_behind(), pytest.raises(RuntimeError, match="the listener broke"):
        await workbench.evaluate_async("clock.toml", model=clock_agent, on_event=on_event)


def test_the_details_of_a_failed_test_hold_no_secret(folder: Path) -> None:
    (folder / ".env").write_text("CLOCK_TOKEN=planted-horse-battery\n")

    async def leaking(request: workbench.AgentRequest) -> workbench.AgentReply:
        return (
            "planted-horse-battery" if request.results else workbench.call("get_time", timezone="planted-horse-battery")
        )

    report = workbench.evaluate("clock.toml", model=leaking)
    with pytest.raises(AssertionError) as raised:
        report.assert_passed()
    for text in (str(raised.value), report.text(amount="much"), report.json()):
        assert "$CLOCK_TOKEN" in text
        assert "planted" not in text
    assert report.cases["time-in-bergen"].runs[0].trajectory.calls[0].arguments == {"timezone": "planted-horse-battery"}


def test_cells_are_reported_as_soon_as_their_runs_are_over(folder: Path) -> None:
    suite = workbench.load("clock.toml")
    cells = suite.cells(["offline"])
    assert [(cell.case.id, cell.model, cell.case.line) for cell in cells] == [
        ("time-in-bergen", "offline", 13),
        ("small-talk", "offline", 21),
    ]
    done: list[workbench.CellDone] = []
    report = workbench.evaluate(suite, model="offline", cells=cells[:1], repeats=3, on_cell=done.append)
    assert [(each.case, each.model, len(each.report.runs)) for each in done] == [("time-in-bergen", "offline", 3)]
    assert done[0].report.failure_text().startswith("quantity: 1 call expected, 0 made\n")
    assert len(report.runs) == 3


def test_a_mean_is_of_what_an_aggregate_can_measure(folder: Path) -> None:
    report = workbench.evaluate("clock.toml", model="offline")
    assert report.mean("trajectory.all_pass") == report.mean("score") == 0.5
    with pytest.raises(KeyError, match=r"did you mean `trajectory\.all_pass`"):
        report.mean("trajectory.all_passed")


def test_variants_come_from_files_too(folder: Path) -> None:
    (folder / "terse.toml").write_text('name = "terse"\nsystem = "Be terse."\n', encoding="utf-8")
    report = workbench.evaluate("clock.toml", model="offline", variants=[folder / "terse.toml"])
    assert {run.model for run in report.results} == {"offline × terse"}
    with pytest.raises(workbench.UsageError, match=r"gone\.toml cannot be read"):
        workbench.evaluate("clock.toml", model="offline", variants=["gone.toml"])
