"""Finished runs that are not displayed are packed, and are unchanged when they are displayed again."""

from __future__ import annotations

import gc
import queue
import shutil
import weakref
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.programs import begin, program_of
from tests.tools.conftest import SERVERS
from workbench.analysis.failures import failures_of
from workbench.engine.events import BatchDone, BatchEvent, RunDone, RunEvent
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.show.views.run_view import RunView
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import Event
from workbench.tui.failures.state import FailureList
from workbench.tui.run_book.record import RecentRuns, RunContent, RunRecord, pack_content, unpack_content

SAMPLES = Path(__file__).parents[3] / "sample_suites"

Made = tuple[PlannedRun, tuple[Event, ...], RunResult]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Made]:
    """Runs of the offline model with all their events."""
    folder = tmp_path_factory.mktemp("suites")
    for name in ("weather.toml", "office_chains.toml", "office_chains.py"):
        shutil.copy(SAMPLES / name, folder)
    # The sample's own server imports the SDK, which takes longer than the runs.
    shutil.copy(SERVERS / "plain.py", folder)
    shutil.copy(SERVERS / "office.py", folder / "office_server.py")
    runs = plan_runs([load_suite(folder / "weather.toml"), load_suite(folder / "office_chains.toml")])
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    with closing(Runtime(said.put, program_of(tmp_path_factory.mktemp("home")))) as session:
        begin(session, runs)
        events = [said.get(timeout=20)]
        while not isinstance(events[-1], BatchDone):
            events.append(said.get(timeout=20))
    of_run = {
        run.run_id: tuple(
            each.event for each in events if isinstance(each, RunEvent) and each.event.run_id == run.run_id
        )
        for run in runs
    }
    results = {each.result.run_id: each.result for each in events if isinstance(each, RunDone)}
    return [(run, of_run[run.run_id], results[run.run_id]) for run in runs]


def recorded(made: Made, recent: RecentRuns | None = None) -> RunRecord:
    planned, events, result = made
    record = RunRecord(planned, started_at="2030-01-01T00:00:00+00:00", recent=recent)
    for event in events:
        record.add(event)
    record.finish(result)
    return record


def is_packed(record: RunRecord) -> bool:
    """Return whether reading the run would unpack it."""
    return record._content is None


def said_in(view: RunView) -> Sequence[str]:
    return [repr(item) for item in view.items]


@pytest.mark.slow
def test_what_is_unpacked_equals_what_was_packed(made: list[Made]) -> None:
    for _, events, result in made:
        data = pack_content(RunContent(list(events), result))
        assert unpack_content(data) == RunContent(list(events), result)
        assert len(data) < 8_000


@pytest.mark.slow
def test_a_run_that_was_packed_is_shown_as_before(made: list[Made]) -> None:
    recent = RecentRuns(1)
    whole = [recorded(each) for each in made]
    small = [recorded(each, recent) for each in made]
    for record, other in zip(small, whole, strict=True):
        assert (record.figures, record.status, record.graders_disagree) == (
            other.figures,
            other.status,
            other.graders_disagree,
        )
        assert (list(record.events), record.result) == (list(other.events), other.result)
        assert len(said_in(record.view)) == len(said_in(other.view))
        assert record.view.graded


@pytest.mark.slow
def test_a_run_that_is_looked_at_stays_whole_while_others_end(made: list[Made]) -> None:
    recent = RecentRuns(2)
    first = recorded(made[0], recent)
    view = first.view
    for each in made[1:]:
        recorded(each, recent)
        assert first.view is view


def test_a_run_that_is_on_a_screen_is_shown_by_the_same_view_after_it_was_packed(made: list[Made]) -> None:
    recent = RecentRuns(1)
    first = recorded(made[0], recent)
    view, planned, result = first.view, first.planned, made[0][2]
    recorded(made[1], recent)
    assert is_packed(first)
    assert first.view is view
    recorded(made[1], recent)
    assert is_packed(first)
    graded = said_in(view)
    first.regrade(planned, replace(result, grades=()))
    assert first.view is view
    assert said_in(view) != graded, "what is seen is graded anew, too"


@pytest.mark.slow
def test_no_view_is_kept_for_a_packed_run_that_nobody_looks_at(made: list[Made]) -> None:
    recent = RecentRuns(1)
    first = recorded(made[0], recent)
    view = weakref.ref(first.view)
    recorded(made[1], recent)
    gc.collect()
    assert view() is None
    assert first.view.graded


def test_only_so_many_finished_runs_stay_whole(made: list[Made]) -> None:
    recent = RecentRuns(3)
    records = [recorded(each, recent) for each in made]
    assert [is_packed(record) for record in records] == [True] * (len(made) - 3) + [False] * 3


def test_looking_for_failures_leaves_packed_runs_packed_and_keeps_no_rounds(made: list[Made]) -> None:
    recent = RecentRuns(1)
    failed = [(planned, events, replace(result, status=Status.FAILED)) for planned, events, result in made]
    records = [recorded(each, recent) for each in failed]
    state = FailureList(records, {})
    state.set_failures(failures_of(state.results()))
    assert [run.result.run_id for run in state.failures.runs] == [planned.run_id for planned, _, _ in made]
    assert not any(run.result.trajectory.rounds for run in state.failures.runs)
    assert [is_packed(record) for record in records] == [True] * (len(made) - 1) + [False]


def test_a_run_that_is_packed_can_be_graded_anew(made: list[Made]) -> None:
    recent = RecentRuns(1)
    first, second = recorded(made[0], recent), recorded(made[1], recent)
    planned, _, result = made[0]
    assert is_packed(first)
    first.regrade(planned, result)
    assert is_packed(second)
    assert first.result is result
    assert second.result == made[1][2]
    assert first.result == result
    assert first.original is not None and first.original[1] == result
