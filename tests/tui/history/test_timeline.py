"""One case over time as rows and lines: without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tui.apps import SMART_HOME
from tests.tui.histories import Made, utc, well, write_history
from workbench.engine.plan import PlannedRun
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import Status
from workbench.history.records import RunRow, SuiteRef
from workbench.show.spans import plain
from workbench.trajectory.events import EventPayload, RunFinished
from workbench.tui.history import timeline
from workbench.tui.history.timeline import Timeline
from workbench.tui.run_book.stored_batches import read_case
from workbench.tui.run_book.stored_runs import read_recording, record_of
from workbench.tui.trajectory.headline import facts

__all__ = ["utc"]

SUITE = SuiteRef(1, "/somewhere", "suites/home.toml", "a", "Smart home", 3)


def over_time(folder: Path, *batches: Made, case: str = "movie-night") -> Timeline:
    suite = folder / "home.toml"
    suite.write_text(SMART_HOME, encoding="utf-8")
    write_history(folder / "history.sqlite3", suite, *batches)
    return Timeline("Movie night", *read_case(folder / "history.sqlite3", str(suite.resolve()), case))


def test_a_case_over_time_has_its_scores_by_model_the_oldest_first(tmp_path: Path) -> None:
    state = over_time(
        tmp_path, Made(well("Movie night")), Made(well(), models=("offline", "other")), Made(well("Movie night"))
    )
    assert [run.batch for run in state.rows] == [3, 2, 2, 1]
    assert state.trends() == {"offline": [0.0, 1.0, 0.0], "other": [1.0]}


def test_where_the_suite_changed_is_said_at_the_first_batch_of_the_new_text(tmp_path: Path) -> None:
    over_time(tmp_path, Made(well()), Made(well()))
    suite = tmp_path / "home.toml"
    suite.write_text(SMART_HOME.replace("Good night.", "Sleep well."), encoding="utf-8")
    write_history(tmp_path / "history.sqlite3", suite, Made(well()), Made(well()))
    state = Timeline("Movie night", *read_case(tmp_path / "history.sqlite3", str(suite.resolve()), "movie-night"))
    assert [run.batch for run in state.runs if state.changed(run)] == [3]


@pytest.mark.usefixtures("utc")
def test_what_tells_rows_apart_stays_where_there_is_little_room(tmp_path: Path) -> None:
    over = over_time(tmp_path, Made(well("Movie night"), models=("offline", "other")))
    rows = [plain(timeline.row_line(over, run, 38)) for run in over.rows]
    assert [model for row in rows for model in ("offline", "other") if model in row] == ["other", "offline"]
    assert all("0.00" in row for row in rows)


@pytest.mark.usefixtures("utc")
def test_the_runs_of_a_case_are_filtered_by_batch_date_model_and_status(tmp_path: Path) -> None:
    state = over_time(tmp_path, Made(well("Movie night")), Made(well(), models=("offline", "other")))
    for words, found in (("failed", [1]), ("other", [2]), ("#1", [1]), ("03-03 passed", [2, 2])):
        state.set_filter(words)
        assert [run.batch for run in state.rows] == found, words


@pytest.mark.parametrize("score", [float("-inf"), float("inf"), float("nan"), 7.5])
def test_scores_beyond_0_and_1_are_drawn_at_the_edge(score: float) -> None:
    figures = RunSummary(SUITE.key, "a", "A", "m", 0, Status.FAILED, score, None, 1.0, None, None, None, None, True)
    run = RunRow(1, 1, 0, SUITE, "a", "A", "m", True, 0, None, False, figures)
    state = Timeline("A", [run, replace(run, id=2)], {})
    assert timeline.head_lines(state, 60)


def test_a_run_in_error_that_no_model_answered_has_no_latency(tmp_path: Path) -> None:
    state = over_time(tmp_path, Made(well()))
    run = state.rows[0]
    assert run.figures is not None
    assert "713 ms" in plain(timeline.row_line(state, run, 80))
    for latency_ms, shown in ((0.0, False), (12.0, True)):
        figures = replace(run.figures, status=Status.ERROR, score=None, latency_ms=latency_ms)
        failed = replace(run, figures=figures)
        state = Timeline("Movie night", [failed], {})
        said = [plain(timeline.row_line(state, failed, 80)), *map(plain, timeline.detail_lines(state, failed, 80))]
        assert any(" ms" in line.replace("96 ms", "") for line in said) is shown
        assert (" ms |" in timeline.timeline_text(state)) is shown


def test_a_run_that_no_model_answered_says_no_latency_where_it_is_shown(tmp_path: Path) -> None:
    def breaks_off(planned: PlannedRun) -> Sequence[EventPayload]:
        started, asked, *_ = well()(planned)
        return [started, asked, RunFinished("error", "no connection")]

    state = over_time(tmp_path, Made(breaks_off), Made(well()))
    answered, failed = (record_of(read_recording(tmp_path / "history.sqlite3", run)) for run in state.rows)
    assert facts(answered)[0] == "713 ms"
    assert failed.figures is not None and failed.figures.asked
    assert facts(failed) == []


def test_a_case_over_time_says_that_its_grades_are_of_then_where_there_are_later_ones(tmp_path: Path) -> None:
    runs = over_time(tmp_path, Made(well()), Made(well())).runs
    said = ["\n".join(map(plain, timeline.head_lines(Timeline("x", runs, {}, known), 80))) for known in ({}, {2: 1})]
    assert "regraded" not in said[0]
    assert "Grades are those of when they ran; 1 batch was regraded since." in said[1]


def test_runs_that_never_finished_are_said_to_be_missing(tmp_path: Path) -> None:
    state = over_time(tmp_path, Made(well(), cut_after=0))
    run = state.rows[0]
    assert "missing" in plain(timeline.row_line(state, run, 80))
    assert "It never finished" in plain(timeline.detail_lines(state, run, 80)[1])
