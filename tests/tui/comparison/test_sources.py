"""The sources of the comparison's cells: the runs of this program, or a batch of the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.history.batches import run_kept
from tests.tui.run_book.test_book import ONE, PATH, TEXT, Clock, done, started
from workbench.authoring.open_suite import OpenSuite
from workbench.engine.events import BatchStarted, RequestDelayed, RunEvent
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.grading.status import Status
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Event, EventPayload, Paused, RequestFailed, RequestStarted, RetryScheduled
from workbench.tui.comparison.sources import CellState, ComparedCase, LiveRuns, batch_source
from workbench.tui.comparison.state import CompareState
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.stored_batches import read_cases


def live(book: RunBook, *chosen: str) -> CompareState:
    suite = OpenSuite(parse_suite(TEXT, PATH))
    return CompareState(LiveRuns(book, lambda: [suite], lambda: chosen))


def stages(state: CompareState) -> dict[tuple[str, str], str]:
    found = {key: state.at(key) for case in state.cases for key in map(case.on, state.models)}
    return {key[1:]: one.cell.status if one.cell is not None else one.stage for key, one in found.items()}


def run_on(book: RunBook, model: str, status: Status, repeats: int = 1) -> tuple[PlannedRun, ...]:
    runs = plan_runs([parse_suite(TEXT, PATH)], models=[model], case_ids=["one"], repeats=repeats)
    book.apply(BatchStarted(f"batch {model} {status}", runs))
    for run in runs:
        book.apply(done(run, status, float(status == "passed")))
    return runs


def test_cells_fill_in_as_runs_go_on() -> None:
    book = RunBook(Clock())
    state = live(book)
    assert state.models == ("offline", "other")
    assert set(stages(state).values()) == {"not run"}
    runs = started(book)
    state.update_runs([])
    assert set(stages(state).values()) == {"waiting"}
    book.apply(RunEvent(Event(runs[0].run_id, 0, 0.0, RequestStarted(1))))
    book.apply(done(runs[1], Status.FAILED, 0.5))
    state.update_runs([ONE])
    assert stages(state) == {
        ("one", "offline"): "running",
        ("one", "other"): "failed",
        ("two", "offline"): "waiting",
        ("two", "other"): "waiting",
    }


def test_a_batch_that_begins_has_its_own_cases_looked_at_and_no_others() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.PASSED)
    started(book)
    source = live(book).source
    assert source.begun() == []
    run_on(book, "b", Status.FAILED)
    assert source.begun() == [ONE]
    assert source.begun() == []


def test_of_several_runs_it_says_how_many_are_over() -> None:
    book = RunBook(Clock())
    runs = plan_runs([parse_suite(TEXT, PATH)], models=["a"], case_ids=["one"], repeats=3)
    book.apply(BatchStarted("b", runs))
    book.apply(done(runs[1], Status.PASSED, 1.0))
    standing = live(book).at((str(PATH), "one", "a"))
    assert (standing.stage, standing.done, standing.planned) == ("running", 1, 3)


def test_a_cell_says_that_its_run_waits_for_a_person() -> None:
    book = RunBook(Clock())
    runs = started(book)
    book.apply(RunEvent(Event(runs[0].run_id, 0, 0.0, RequestStarted(1))))
    book.apply(RunEvent(Event(runs[0].run_id, 1, 0.0, Paused("may it?", "c0"))))
    assert live(book).at((str(PATH), "one", "offline")).wait_kind == "asks"


def test_a_cell_whose_run_waits_for_its_endpoint_does_not_say_that_it_runs() -> None:
    book = RunBook(Clock())
    runs = started(book)
    state = live(book)
    happenings: list[EventPayload] = [RequestStarted(1), RequestFailed(1, "busy"), RequestStarted(1)]
    for number, event in enumerate(happenings):
        book.apply(RunEvent(Event(runs[0].run_id, number, 0.0, event)))
        state.update_runs([ONE])
        assert stages(state)["one", "offline"] == book.summary(ONE).stage == "running"
        assert book.apply(RequestDelayed(runs[0].run_id, 8.0)) == ONE
        state.update_runs([ONE])
        assert stages(state)["one", "offline"] == book.summary(ONE).stage == "waiting"
    book.apply(done(runs[0], Status.STOPPED))
    assert book.apply(RequestDelayed(runs[0].run_id, 8.0)) is None
    state.update_runs([ONE])
    assert stages(state)["one", "offline"] == "stopped"


def test_a_cell_says_until_when_the_first_of_its_runs_waits() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    book = RunBook(Clock(), lambda: now)
    first, second = plan_runs([parse_suite(TEXT, PATH)], models=["a"], case_ids=["one"], repeats=2)
    book.apply(BatchStarted("b", (first, second)))
    state = live(book)

    def wait_reason() -> str | None:
        state.update_runs([ONE])
        return state.at((str(PATH), "one", "a")).wait_reason

    def say(run: PlannedRun, *happenings: EventPayload) -> None:
        for number, what in enumerate(happenings):
            book.apply(RunEvent(Event(run.run_id, number, 500.0, what)))

    def at(seconds: float) -> str:
        return f"{(now + timedelta(seconds=seconds)).astimezone():%H:%M:%S}"

    say(first, RequestStarted(1), RequestFailed(1, "429"), RetryScheduled(1, 2, 8_000.0, "429: too many"))
    assert (wait_reason(), book.progress().waiting) == (f"retry 2 at {at(8.5)}: 429: too many", 1)
    say(second, RequestStarted(1))
    book.apply(RequestDelayed(second.run_id, 7.0))
    said = f"waits until {at(7)} at least: the endpoint asked another run to wait"
    assert (wait_reason(), book.progress().waiting) == (said, 2)
    say(second, RequestStarted(1))
    assert (wait_reason(), book.progress().waiting) == (f"retry 2 at {at(8.5)}: 429: too many", 1)
    say(first, RequestStarted(1))
    assert (wait_reason(), book.progress().waiting) == (None, 0)
    say(first, RequestFailed(1, "429"), RetryScheduled(1, 3, 8_000.0, "429: too many"))
    book.apply(done(first, Status.STOPPED))
    assert (wait_reason(), book.progress().waiting) == (None, 0)


def test_what_a_case_came_to_stays_when_it_is_run_on_another_model() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.PASSED, repeats=2)
    run_on(book, "b", Status.FAILED)
    state = live(book)
    assert state.models == ("offline", "other", "a", "b")
    assert stages(state)["one", "a"] == "passed"
    run_on(book, "a", Status.FAILED)
    state.update_runs([ONE])
    standing = state.at((str(PATH), "one", "a"))
    assert (standing.planned, stages(state)["one", "a"]) == (1, "failed")


def test_a_model_that_is_not_chosen_any_more_is_no_column() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.PASSED)
    run_on(book, "b", Status.FAILED)
    chosen = ["a", "b"]
    suite = OpenSuite(parse_suite(TEXT, PATH))
    state = CompareState(LiveRuns(book, lambda: [suite], lambda: chosen))
    chosen.remove("a")
    state.follow()
    assert state.models == ("b",)


def test_runs_that_were_stopped_are_missing_and_take_no_verdict_away() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.STOPPED, repeats=2)
    state = live(book, "a")
    key = (str(PATH), "one", "a")
    assert (state.at(key).is_missing, state.repeats(key)) == (True, 2)
    run_on(book, "a", Status.FAILED, repeats=2)
    state.update_runs([ONE])
    assert (state.at(key).is_missing, stages(state)["one", "a"]) == (False, "failed")
    run_on(book, "a", Status.STOPPED)
    state.update_runs([ONE])
    assert (state.at(key).is_missing, stages(state)["one", "a"], state.at(key).planned) == (False, "failed", 2)


def test_the_repeats_that_were_graded_before_the_rest_was_stopped_stay_until_as_many_others_are() -> None:
    book = RunBook(Clock())
    key = (str(PATH), "one", "a")

    def batch(name: str) -> tuple[PlannedRun, ...]:
        runs = plan_runs([parse_suite(TEXT, PATH)], models=["a"], case_ids=["one"], repeats=2)
        book.apply(BatchStarted(name, runs))
        return runs

    first, second = batch("half")
    book.apply(done(first, Status.PASSED, 1.0))
    book.apply(done(second, Status.STOPPED))
    state = live(book, "a")
    half = state.at(key)
    assert (half.is_missing, half.cell is not None and half.cell.graded) == (True, 1)
    for name in ("none", "none again"):
        stopped = batch(name)
        state.update_runs([ONE])
        going = state.at(key)
        assert (going.stage, going.cell, going.done) == ("waiting", half.cell, 0)
        assert list(state.cells("a")) == [half.cell]
        for run in stopped:
            book.apply(done(run, Status.STOPPED))
            state.update_runs([ONE])
            assert state.at(key).cell == half.cell
        assert state.at(key) == half
    first, second = batch("another half")
    book.apply(done(first, Status.FAILED, 0.0))
    state.update_runs([ONE])
    assert (state.at(key).done, stages(state)["one", "a"]) == (1, "failed")
    book.apply(done(second, Status.STOPPED))
    state.update_runs([ONE])
    assert (state.at(key).is_missing, stages(state)["one", "a"]) == (True, "failed")
    run_on(book, "a", Status.PASSED, repeats=2)
    for run, status in zip(batch("half of what there was"), (Status.FAILED, Status.STOPPED), strict=True):
        book.apply(done(run, status))
    state.update_runs([ONE])
    assert (state.at(key).is_missing, stages(state)["one", "a"]) == (False, "passed")


async def test_what_goes_on_is_opened_where_the_cell_is_still_of_the_runs_before() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.PASSED)
    (again,) = plan_runs([parse_suite(TEXT, PATH)], models=["a"], case_ids=["one"])
    book.apply(BatchStarted("again", (again,)))
    state = live(book, "a")
    assert state.at((str(PATH), "one", "a")).before
    assert (await state.source.open_run((str(PATH), "one", "a"))).planned is again


def test_a_case_is_repeated_on_a_new_model_as_often_as_on_the_others() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.PASSED, repeats=2)
    state = live(book, "a", "b")
    assert state.repeats((str(PATH), "one", "b")) == 2
    assert state.repeats((str(PATH), "two", "b")) is None


def test_runs_of_other_models_are_graded_anew_with_the_rest() -> None:
    book = RunBook(Clock())
    (first,) = run_on(book, "a", Status.PASSED)
    run_on(book, "b", Status.FAILED)
    state = live(book)
    record = next(run for run in book.finished(ONE) if run.model == "a")
    book.regrade(record, first, done(first, Status.FAILED, 0.0).result)
    state.follow()
    assert stages(state)["one", "a"] == "failed"


def test_of_runs_that_are_graded_anew_only_their_cases_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    book = RunBook(Clock())
    (first,) = run_on(book, "a", Status.PASSED)
    state = live(book)
    looked_at: list[str] = []
    standings = LiveRuns.cell_states

    def counted(runs: LiveRuns, case: ComparedCase) -> Mapping[str, CellState]:
        looked_at.append(case.case_id)
        return standings(runs, case)

    monkeypatch.setattr(LiveRuns, "cell_states", counted)
    state.update_runs([])
    assert looked_at == []
    (record,) = book.finished(ONE)
    book.regrade(record, first, done(first, Status.FAILED, 0.0).result)
    state.update_runs([])
    assert looked_at == ["one"]
    state.follow()
    assert looked_at == ["one"]


def test_only_models_that_were_chosen_or_that_a_case_names_are_planned() -> None:
    book = RunBook(Clock())
    run_on(book, "a", Status.PASSED)
    assert {key[2] for key in live(book).planned()} == {"offline", "other"}
    assert {key[2] for key in live(book, "b").planned()} == {"b"}


async def test_of_several_runs_the_one_that_ended_like_the_cell_is_opened_first() -> None:
    book = RunBook(Clock())
    runs = plan_runs([parse_suite(TEXT.replace('user = "x"', 'user = "x"\ngrading.repeat_rule = "majority"'), PATH)])
    runs = tuple(run for run in plan_runs([runs[0].file], models=["a"], case_ids=["one"], repeats=3))
    book.apply(BatchStarted("b", runs))
    for run, status in zip(runs, (Status.FAILED, Status.FAILED, Status.PASSED), strict=True):
        book.apply(done(run, status, 0.5))
    source = live(book).source
    assert (await source.open_run((str(PATH), "one", "a"))).repeat == 1
    assert (await source.open_run((str(PATH), "one", "a"), 2)).repeat == 2
    with pytest.raises(LookupError, match="has not run"):
        await source.open_run((str(PATH), "two", "a"))


async def test_of_a_cell_that_is_not_over_the_run_that_goes_on_is_opened() -> None:
    book = RunBook(Clock())
    runs = plan_runs([parse_suite(TEXT, PATH)], models=["a"], case_ids=["one"], repeats=3)
    book.apply(BatchStarted("b", runs))
    book.apply(done(runs[0], Status.PASSED, 1.0))
    book.apply(RunEvent(Event(runs[2].run_id, 0, 0.0, RequestStarted(1))))
    source, key = live(book).source, (str(PATH), "one", "a")
    assert (await source.open_run(key)).run_id == runs[2].run_id
    assert source.active(key) == [2]


async def test_a_batch_of_the_history_has_its_cells_and_opens_its_runs(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    results, _ = run_kept(tmp_path, history, repeats=2)
    state = CompareState(batch_source(history, read_cases(history, 1)))
    assert not state.source.live
    assert [case.name for case in state.cases] == ["Paris", "Nowhere"]
    assert stages(state) == {("paris", "offline"): "passed", ("nowhere", "offline"): "failed"}
    key = state.cases[1].on("offline")
    assert state.at(key).planned == 2
    record = await state.source.open_run(key)
    assert (record.case_name, record.repeat, record.figures and record.figures.status) == ("Nowhere", 1, "failed")
    assert len(record.events) > 2
    assert len(results) == 4
    assert state.planned() == []


def test_a_batch_over_two_projects_has_a_row_for_each_case_of_both(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite3"
    for project in ("a", "b"):
        (tmp_path / project).mkdir()
        run_kept(tmp_path / project, history)
    one, other = read_cases(history, 1), read_cases(history, 2)
    state = CompareState(batch_source(history, replace(one, runs=(*one.runs, *other.runs))))
    assert [case.case_id for case in state.cases] == ["paris", "nowhere"] * 2
    assert [state.at(case.on("offline")).done for case in state.cases] == [1] * 4
