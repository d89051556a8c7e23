"""A plan from options to report: events, futures, stopping, and refusals before any run."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.cli.suites import SLOW, WEATHER
from tests.programs import program_of
from workbench.config.program import Program
from workbench.engine.events import BatchDone, BatchStarted, RunDone
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.options import OptionsError, RunOptions
from workbench.evaluation.plan import Plan, PlanError
from workbench.evaluation.planner import plan
from workbench.evaluation.run import Evaluation
from workbench.evaluation.runtime import Runtime


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "weather.toml").write_text(WEATHER, encoding="utf-8")
    (tmp_path / "slow.toml").write_text(WEATHER[: WEATHER.index("[[cases]]")] + SLOW, encoding="utf-8")
    return program_of(tmp_path / "home")


def planned(folder: Path, program: Program, name: str = "weather.toml", **options: int) -> Plan:
    return plan(RunOptions(suites=(folder / name,), history=folder / "history.db", **options), program)  # type: ignore[arg-type]  # fields by name


async def test_events_futures_and_report_tell_the_same_and_two_go_on_at_once(tmp_path: Path, program: Program) -> None:
    first, second = planned(tmp_path, program, repeats=2), planned(tmp_path, program)
    async with (
        Evaluation(first, needs_of_plan(first).approved()) as going,
        Evaluation(second, needs_of_plan(second).approved()) as other,
    ):
        events = [event async for event in going]
        results = await asyncio.gather(*going.runs.values())
        report, of_other = await going.report(), await other.report()
    assert isinstance(events[0], BatchStarted) and isinstance(events[-1], BatchDone)
    finished = {event.result.run_id: event.result for event in events if isinstance(event, RunDone)}
    assert finished == dict(zip(going.runs, results, strict=True))
    assert report.results == tuple(results)
    assert (report.passed, report.exit_code, report.totals.passed, len(report.cases)) == (True, 0, 2, 1)
    assert {report.batch, of_other.batch} == {1, 2}
    assert report.totals_per_model["offline"].runs == 2
    assert "engine" not in {thread.name for thread in threading.enumerate()}


async def test_stopping_leaving_and_cancelling_end_the_runs_and_leave_nothing_behind(
    tmp_path: Path, program: Program
) -> None:
    slow = planned(tmp_path, program, "slow.toml")
    async with Evaluation(slow, needs_of_plan(slow).approved()) as going:
        going.stop()
        report = await going.report()
    assert [result.status for result in report.results] == ["stopped"]
    assert (report.interrupted, report.exit_code) == (True, 130)

    begun = asyncio.Event()

    async def wait() -> None:
        slow = planned(tmp_path, program, "slow.toml")
        async with Evaluation(slow, needs_of_plan(slow).approved()) as going:
            begun.set()
            await going.report()

    waiting = asyncio.create_task(wait())
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert "engine" not in {thread.name for thread in threading.enumerate()}


async def test_a_runtime_is_shared_and_stays_open(tmp_path: Path, program: Program) -> None:
    runtime = Runtime(lambda _event: None, program)
    try:
        for _ in range(2):
            once = planned(tmp_path, program)
            async with Evaluation(once, needs_of_plan(once).approved(), runtime=runtime) as going:
                assert (await going.report()).passed
    finally:
        await asyncio.to_thread(runtime.close)


def test_what_cannot_be_planned_is_said_before_anything_runs(tmp_path: Path, program: Program) -> None:
    with pytest.raises(OptionsError) as wrong:
        RunOptions(repeats=0, concurrency=0, min_score=2)
    assert len(wrong.value.problems) == 4
    with pytest.raises(PlanError, match="nowhere: error: there is no such file"):
        plan(RunOptions(suites=("nowhere",)), program)
    with pytest.raises(PlanError, match="there is no case 'sun'; there are"):
        plan(RunOptions(suites=(tmp_path / "weather.toml",), cases=("sun",)), program)
    (tmp_path / "broken.toml").write_text("format = 1\n[[cases]]\nusr = 1\n", encoding="utf-8")
    with pytest.raises(PlanError, match="correct these suites first"):
        plan(RunOptions(suites=(tmp_path / "broken.toml",)), program)
