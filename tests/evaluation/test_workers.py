"""Runs spread over worker processes come to what one process comes to, and outlive a worker that dies."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cli.program import Program as CommandLine
from tests.cli.suites import SLOW, WEATHER, WRONG
from tests.evaluation.test_one_door import apart_from_times, shown
from tests.history.unpacking import texts_in
from tests.programs import program_of
from tests.providers.server import Answer, Request, Server, Signal, base_url_of, document, error_document, said
from workbench.engine.events import BatchDone, BatchEvent, RequestPutOff, RunDone, RunEvent, StartUp
from workbench.engine.history_recorder import done_run
from workbench.engine.planned_run import RunContext
from workbench.evaluation.approval import needs
from workbench.evaluation.options import OptionsError, RunOptions
from workbench.evaluation.planner import plan
from workbench.evaluation.report import Report
from workbench.evaluation.run import Evaluation
from workbench.evaluation.runtime import Runtime
from workbench.evaluation.worker_pool import Made, Setup, WorkerPool, _Worker
from workbench.grading.grade import RunResult
from workbench.grading.packed import InCommon, PackedResult
from workbench.history.history import History
from workbench.history.packing import RunPacker
from workbench.providers.model import DEFAULT_RETRIES
from workbench.trajectory.events import EventPayload

SECRET = "tok-9f8e7d6c5b4a3210"
CHECKED = """
[[cases]]
name = "Checked"
user = "What is the weather in Oslo?"
ordered = [{ tool = "get_weather", args = { city = { python = "checks:check" } } }]
"""


async def evaluated(folder: Path, processes: int, suite: str = "weather.toml", **options: Any) -> Report:
    """The report on a suite, of which everything is approved."""
    program = program_of(folder / "home", {"OPENAI_API_KEY": "sk-0123456789abcdef"})
    history = folder / f"history-{processes}.db"
    options = {"suites": (folder / suite,), "history": history, "processes": processes, **options}
    planned = plan(RunOptions(**options), program)
    async with Evaluation(planned, needs(planned).approved()) as going:
        return await going.report()


def stored(history: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(history)) as database:
        return database.execute("SELECT place, status FROM runs ORDER BY place").fetchall()


async def test_two_processes_come_to_the_same_report_and_history_as_one(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def check(value): print('noise'); return value == 'Oslo'\n", encoding="utf-8")
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG + CHECKED, encoding="utf-8")
    one, two = [await evaluated(tmp_path, processes, repeats=3) for processes in (1, 2)]
    assert shown(two) == shown(one) and two.totals.passed == 6
    assert stored(tmp_path / "history-2.db") == stored(tmp_path / "history-1.db")


@pytest.mark.slow
async def test_the_history_of_two_processes_tells_what_that_of_one_does_and_no_secret(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"CITY_TOKEN={SECRET}\n", encoding="utf-8")
    (tmp_path / "weather.toml").write_text(WEATHER.replace("{city}", f"{{city}} {SECRET}") + WRONG, encoding="utf-8")
    one, two = [await evaluated(tmp_path, processes, repeats=3) for processes in (1, 2)]
    assert shown(two) == shown(one) and SECRET not in two.json() and SECRET not in two.text(amount="much")
    assert all(isinstance(run, PackedResult) for run in two.results)
    assert [run.trajectory.final_answer for run in two.results] == [run.trajectory.final_answer for run in one.results]
    told = [told_in(tmp_path / f"history-{processes}.db") for processes in (1, 2)]
    assert told[0] == told[1] and "$CITY_TOKEN" in str(told[1])
    assert not [text for text in texts_in(tmp_path / "history-2.db") if SECRET in text]


def told_in(history: Path) -> list[Any]:
    """What a history tells of each run, apart from times."""
    with History(history) as opened:
        runs = opened.runs(1)
        recordings = [opened.recording(run) for run in runs]
    return [
        (
            *(run.place, run.figures and run.figures.status, apart_from_times(dict(recording.result or {}))),
            [_untimed(event.payload) for event in recording.events],
        )
        for run, recording in zip(runs, recordings, strict=True)
    ]


def _untimed(payload: EventPayload) -> Any:
    names = [field.name for field in fields(payload) if not field.name.endswith("_ms")]
    return type(payload).__name__, [getattr(payload, name) for name in names]


async def test_a_run_passes_the_door_again_when_more_is_secret_than_its_worker_knew(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER.replace("{city}", f"{{city}} {SECRET}"), encoding="utf-8")
    program = program_of(tmp_path / "home")
    planned = plan(RunOptions(suites=(tmp_path / "weather.toml",), history=tmp_path / "history.db"), program)
    # What a worker sends that knows no secret.
    async with Evaluation(replace(planned, history=None), needs(planned).approved()) as going:
        happened = [event async for event in going]
    events = tuple(event.event for event in happened if isinstance(event, RunEvent))
    (done,) = [event for event in happened if isinstance(event, RunDone)]
    row = RunPacker().packed(done_run(done, events))
    assert row is not None
    in_common = InCommon()
    packed = in_common.packed(done.result)
    assert isinstance(packed, PackedResult) and row.unpacked_events() == events

    heard: list[BatchEvent] = []
    context = cast("RunContext", SimpleNamespace(listener=heard.append))
    setup = Setup(planned, needs(planned).approved(), 2, DEFAULT_RETRIES, history=True, events=False)
    pool = WorkerPool(setup, 2, heard.append, program.secrets)
    worker = _Worker(cast("Any", None), cast("Any", None), in_common=in_common)
    made = Made(done.result.run_id, packed.parcel, None, done.began_ms, done.ended_ms, row, known=0)
    pool._tell(made, worker, planned.runs[0], context)
    assert heard == [RunDone(done.result, done.began_ms, done.ended_ms, row)]
    heard.clear()
    program.secrets.add("CITY_TOKEN", SECRET)
    pool._tell(made, worker, planned.runs[0], context)
    assert heard == [*map(RunEvent, events), RunDone(done.result, done.began_ms, done.ended_ms)]


@pytest.mark.slow
async def test_all_events_of_a_run_come_when_it_is_over_with_its_times(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER, encoding="utf-8")
    options = RunOptions(suites=(tmp_path / "weather.toml",), repeats=2, processes=2)
    planned = plan(options, program_of(tmp_path / "home"))
    async with Evaluation(planned, needs(planned).approved()) as going:
        events = [event async for event in going]
    runs = [event.event.run_id if isinstance(event, RunEvent) else "" for event in events]
    for place, done in enumerate(events):
        if isinstance(done, RunDone):
            of_run = runs.count(done.result.run_id)
            assert runs[place - of_run : place] == [done.result.run_id] * of_run and of_run > 5
            assert done.began_ms is not None and done.ended_ms is not None and done.began_ms < done.ended_ms


@pytest.mark.slow
async def test_a_run_whose_worker_dies_is_made_again_and_one_that_kills_each_worker_is_an_error(tmp_path: Path) -> None:
    kills = "import os\nfrom pathlib import Path\ndef check(value):\n    {unless}os.kill(os.getpid(), 9)\n"
    once = (
        "if Path(__file__).with_name('died').exists(): return True\n    Path(__file__).with_name('died').touch()\n    "
    )
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG + CHECKED, encoding="utf-8")
    (tmp_path / "checks.py").write_text(kills.format(unless=once), encoding="utf-8")
    report = await evaluated(tmp_path, 2, repeats=2)
    assert [result.status for result in report.results] == ["passed", "passed", "failed", "failed", "passed", "passed"]
    assert [place for place, _ in stored(tmp_path / "history-2.db")] == [0, 1, 2, 3, 4, 5], "each run once"

    (tmp_path / "checks.py").write_text(kills.format(unless=""), encoding="utf-8")
    report = await evaluated(tmp_path, 3, cases=["checked"], repeats=2)
    assert {result.status for result in report.results} == {"error"}
    assert report.results[0].error == (
        "the worker process that made it ended (signal SIGKILL), and so did a second one for this run alone: "
        "check what the suite imports"
    )


@pytest.mark.slow
def test_a_listener_that_raises_costs_runs_and_not_the_end_of_the_batch(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER, encoding="utf-8")
    ended = Signal()
    errors = []

    def listen(event: BatchEvent) -> None:
        if isinstance(event, StartUp):
            raise RuntimeError("the screen broke")
        if isinstance(event, RunDone):
            errors.append(event.result.error)
        elif isinstance(event, BatchDone):
            ended.set()

    with Server([]) as server:
        model = f"openai:test@{base_url_of(server, 'openai')}"
        options = RunOptions(suites=(tmp_path / "weather.toml",), models=(model,), repeats=2, processes=2)
        program = program_of(tmp_path, {"OPENAI_API_KEY": "sk-0123456789abcdef"})
        planned = plan(options, program)
        with closing(Runtime(listen, program)) as runtime:
            runtime.start(planned, needs(planned).approved())
            ended.wait(60)
    assert len(errors) == 2 and all("and so did a second one for this run alone" in str(error) for error in errors)


async def test_stopping_stops_the_runs_of_all_workers_and_ends_them(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER[: WEATHER.index("[[cases]]")] + SLOW, encoding="utf-8")
    planned = plan(
        RunOptions(suites=(tmp_path / "weather.toml",), repeats=4, processes=2, concurrency=3), program_of(tmp_path)
    )
    async with Evaluation(planned, needs(planned).approved()) as going:
        going.stop()
        report = await going.report()
    assert [result.status for result in report.results] == ["stopped"] * 4


@pytest.mark.slow
def test_a_run_that_is_stopped_twice_tells_what_happened_in_it_and_no_other_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + "[limits]\nmax_rounds = 1\n", encoding="utf-8")
    asked, go_on, stopped, ended = Signal(), Signal(), Signal(), Signal()
    results: dict[str, RunResult] = {}

    def answer_to(_request: Request) -> Answer:
        if len(server.requests) == 3:
            asked.set()
        return replace(said("openai", "Rain."), before=(go_on,))

    def listen(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            results[event.result.run_id] = event.result
            stopped.set()
        elif isinstance(event, BatchDone):
            ended.set()

    with Server(answer_to) as server:
        model = f"openai:test@{base_url_of(server, 'openai')}"
        options = RunOptions(suites=(tmp_path / "weather.toml",), models=(model,), repeats=3, processes=2)
        program = program_of(tmp_path, {"OPENAI_API_KEY": "sk-0123456789abcdef"})
        planned = plan(options, program)
        first = planned.runs[0].run_id
        with closing(Runtime(listen, program)) as runtime:
            runtime.start(planned, needs(planned).approved())
            asked.wait(60)
            runtime.stop(first)
            for _ in range(3):  # turns of the loop, in which the first of both reaches the run
                runtime._engine.submit(asyncio.sleep(0)).result(60)
            runtime.stop(first)
            stopped.wait(60)
            go_on.set()
            ended.wait(60)
    assert [results[run.run_id].status for run in planned.runs] == ["stopped", "failed", "failed"]
    assert len(results[first].trajectory.rounds) == 1 and len(server.requests) == 3


@pytest.mark.slow
async def test_workers_share_the_limits_of_an_endpoint_and_the_pauses_it_asks_for(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + "[limits]\nmax_rounds = 1\n", encoding="utf-8")
    both = Signal()

    def answer_to(_request: Request) -> Answer:
        if len(server.requests) == 1:  # waits for the other worker to be there, then asks for a pause
            refusal = document(error_document("openai", "slow down"), 429, {"retry-after": "2"})
            return replace(refusal, before=(both,))
        both.set()
        return said("openai", "Rain.")

    put_off = []
    with Server(answer_to) as server:
        model = f"openai:test@{base_url_of(server, 'openai')}"
        options = RunOptions(
            suites=(tmp_path / "weather.toml",), models=(model,), repeats=8, processes=2, concurrency=2
        )
        planned = plan(options, program_of(tmp_path, {"OPENAI_API_KEY": "sk-0123456789abcdef"}))
        async with Evaluation(planned, needs(planned).approved()) as going:
            async for event in going:
                if isinstance(event, RequestPutOff):
                    put_off.append(event.run_id)
            report = await going.report()
    assert report.totals.errors == 0 and len(server.requests) == 9
    assert server.most_at_once == 2
    # The first run waits by itself; the other worker can only have heard of the pause.
    assert put_off and report.results[0].run_id not in put_off


@pytest.mark.slow
def test_the_command_line_takes_a_number_or_auto_and_prints_the_same(tmp_path: Path) -> None:
    (tmp_path / "weather.toml").write_text(WEATHER + WRONG, encoding="utf-8")
    program = CommandLine(tmp_path)
    spread = program.run("run", "weather.toml", "--processes", "2", "--no-history")
    assert spread.returncode == 1 and "2 runs: 1 passed, 1 failed" in spread.stdout, spread.stderr
    for wrong in ("0", "many"):
        refused = program.run("run", "weather.toml", "--processes", wrong)
        assert refused.returncode == 2 and f"must be a whole number of at least 1, not '{wrong}'" in refused.stderr
    with pytest.raises(OptionsError, match="several processes need models by name"):
        RunOptions(suites=("weather.toml",), models=(Own(),), processes=2)


class Own:
    name = "mine"

    def open(self, planned: object) -> Any:
        raise AssertionError
