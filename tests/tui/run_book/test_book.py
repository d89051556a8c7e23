"""The book of runs: the latest of each case, model and repeat, and how far the batches are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.results import result
from tests.trajectory.scripts import events_of
from workbench.engine.events import BatchDone, BatchStarted, PermissionRequested, RunDone, RunEvent
from workbench.engine.executor import PermissionQuestion
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Event, EventPayload, Paused, RequestStarted, Resumed, ToolCall, ToolDefinition
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.summaries import CaseSummary, Counts, deciding_run

PATH = Path("a.toml")
TEXT = """
format = 1
name = "S"
models = ["offline", "other"]
[[cases]]
name = "One"
user = "x"
[[cases]]
name = "Two"
user = "x"
"""
ONE, TWO = (PATH, "one"), (PATH, "two")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def planned() -> tuple[PlannedRun, ...]:
    return plan_runs([parse_suite(TEXT, PATH)])


def started(book: RunBook, name: str = "b1") -> tuple[PlannedRun, ...]:
    runs = planned()
    book.apply(BatchStarted(name, runs))
    return runs


def done(run: PlannedRun, status: Status, score: float | None = None) -> RunDone:
    made = result(status, score, case=run.case.id, model=run.model)
    return RunDone(
        RunResult(
            run.run_id,
            str(PATH),
            run.case.id,
            run.case.name,
            run.model,
            run.repeat,
            status,
            made.trajectory,
            made.grades,
            grading=run.settings.grading,
        )
    )


def test_a_planned_run_waits_then_runs_then_is_done() -> None:
    book = RunBook(Clock())
    run = started(book)[0]
    assert book.summary(ONE).stage == "waiting"
    assert book.apply(RunEvent(events_of([], run_id=run.run_id)[0])) == ONE
    assert book.summary(ONE).stage == "running"
    assert book.apply(done(run, Status.PASSED, 1.0)) == ONE
    assert book.runs_of(ONE)[0].stage == "done"


def test_a_case_shows_the_worst_of_its_models_and_the_lowest_score() -> None:
    book = RunBook(Clock())
    first, second, *_ = started(book)
    book.apply(done(first, Status.PASSED, 1.0))
    book.apply(done(second, Status.WARNED, 0.85))
    assert book.summary(ONE) == CaseSummary(Status.WARNED, 0.85, "done", graded=Status.WARNED)


@pytest.mark.parametrize(
    ("rule", "status", "first_seen"),
    [("last", Status.FAILED, 2), ("mean", Status.FAILED, 2), ("majority", Status.PASSED, 1)],
)
def test_the_rule_for_repeats_speaks_for_a_model(rule: str, status: Status, first_seen: int) -> None:
    book = RunBook(Clock())
    repeated = TEXT.replace('user = "x"', f'user = "x"\nrepeats = 3\ngrading.repeat_rule = "{rule}"', 1)
    runs = plan_runs([parse_suite(repeated, PATH)], models=["offline"])
    book.apply(BatchStarted("b1", runs))
    assert deciding_run(book.runs_of(ONE)) == 2
    for run, ended, score in (
        (runs[1], Status.PASSED, 1.0),
        (runs[2], Status.FAILED, 0.25),
        (runs[0], Status.PASSED, 1.0),
    ):
        book.apply(done(run, ended, score))
    assert book.summary(ONE) == CaseSummary(status, 0.75, "done", graded=status)
    assert deciding_run(book.runs_of(ONE)) == first_seen


def test_a_new_run_takes_the_place_of_the_one_before() -> None:
    book = RunBook(Clock())
    for run in started(book):
        book.apply(done(run, Status.FAILED, 0.0))
    book.apply(BatchDone("b1"))
    again = started(book, "b2")
    assert book.counts() == Counts(waiting=4)
    book.apply(done(again[0], Status.PASSED, 1.0))
    assert book.counts() == Counts({Status.PASSED: 1}, waiting=3)


def test_stopping_takes_no_verdict_away() -> None:
    book = RunBook(Clock())
    first = started(book)
    for run, status in zip(first, (Status.PASSED, Status.FAILED, Status.PASSED, Status.STOPPED), strict=True):
        book.apply(done(run, status, 1.0 if status == "passed" else 0.5))
    book.apply(BatchDone("b1"))
    before = book.summary(ONE), book.summary(TWO), book.counts(), book.spend(), book.endings
    assert book.summary(ONE) == CaseSummary(Status.FAILED, 0.5, "done", graded=Status.FAILED)
    again = started(book, "b2")
    assert book.counts() == Counts(waiting=4)
    for run in again:
        book.apply(done(run, Status.STOPPED))
    book.apply(BatchDone("b2"))
    assert (book.summary(ONE), book.summary(TWO), book.counts(), book.spend()) == before[:4]
    assert book.endings == before[4]
    assert book.tally(ONE[0], (ONE[1], TWO[1])) == (0, 1, 0)
    assert [run.run_id for run in book.counting_runs(ONE)] == [run.run_id for run in first[:2]]
    assert [run.run_id for run in book.runs_of(ONE)] == [run.run_id for run in (*again[:2], *first[:2])]
    assert deciding_run(book.runs_of(ONE)) == 2, "the one behind the verdict is looked at first"
    assert book.needs_rerun(ONE) and book.needs_rerun(TWO)
    last = started(book, "b3")
    book.apply(done(last[0], Status.PASSED, 1.0))
    for run in last[1:]:
        book.apply(done(run, Status.STOPPED))
    assert [run.run_id for run in book.counting_runs(ONE)] == [last[0].run_id, first[1].run_id]
    assert [run.run_id for run in book.runs_of(ONE)] == [last[0].run_id, last[1].run_id, first[1].run_id]


def test_errors_and_stopped_runs_are_counted_apart() -> None:
    book = RunBook(Clock())
    runs = started(book)
    for run, status in zip(runs, (Status.PASSED, Status.ERROR, Status.STOPPED, Status.SKIPPED), strict=True):
        book.apply(done(run, status))
    assert book.counts() == Counts({Status.PASSED: 1, Status.ERROR: 1, Status.STOPPED: 1, Status.SKIPPED: 1})
    assert book.tally(ONE[0], (ONE[1], TWO[1])) == (1, 1, 1)


def test_a_suite_tells_how_many_of_its_graded_cases_are_good() -> None:
    book = RunBook(Clock())
    for run in started(book):
        book.apply(done(run, Status.PASSED if run.case.id == "one" else Status.FAILED, 1.0))
    assert book.tally(ONE[0], (ONE[1], TWO[1])) == (1, 2, 0)


def test_progress_counts_from_the_beginning_of_the_batch_and_stops_with_it() -> None:
    clock = Clock()
    book = RunBook(clock)
    assert book.progress().total == 0
    runs = started(book)
    clock.now += 3
    book.apply(done(runs[0], Status.PASSED, 1.0))
    progress = book.progress()
    assert (progress.done, progress.total, progress.elapsed_s, progress.is_active) == (1, 4, 3.0, True)
    book.apply(BatchDone("b1"))
    clock.now += 100
    assert (book.progress().elapsed_s, book.progress().is_active) == (3.0, False)


def test_time_stands_while_all_that_runs_is_held_and_goes_on_with_it() -> None:
    clock = Clock()
    book = RunBook(clock)
    first, second, *_ = started(book)

    def say(run: PlannedRun, sequence: int, what: EventPayload) -> None:
        clock.now += 1
        book.apply(RunEvent(Event(run.run_id, sequence, 0.0, what)))

    say(first, 1, RequestStarted(1))
    say(second, 1, RequestStarted(1))
    say(first, 2, Paused("step by step", None, "request", 1))
    clock.now += 10  # the other one runs
    assert book.progress().elapsed_s == 13
    say(second, 2, Paused("step by step", None, "request", 1))
    clock.now += 100
    assert book.progress().elapsed_s == 14
    say(first, 3, Resumed(1.0))
    say(first, 4, RequestStarted(2))
    assert book.progress().elapsed_s == 15


def test_what_is_under_way_can_be_asked_for_one_case() -> None:
    book = RunBook(Clock())
    runs = started(book)
    assert len(book.active_runs()) == 4
    assert len(book.active_runs(ONE)) == 2
    book.apply(done(runs[0], Status.PASSED, 1.0))
    assert len(book.active_runs(ONE)) == 1


def test_events_of_unknown_runs_are_ignored() -> None:
    book = RunBook(Clock())
    assert book.apply(RunEvent(events_of([], run_id="ghost")[0])) is None
    assert book.apply(RunDone(result(Status.PASSED, 1.0))) is None
    assert book.apply(BatchDone("ghost")) is None


def test_a_question_is_open_until_it_is_answered_or_its_run_goes_on_or_ends() -> None:
    book = RunBook(Clock())
    runs = started(book)
    tool = ToolDefinition("send", server="office")
    for run in runs[:3]:
        for number, what in enumerate((events_of([])[0].payload, Paused("may it?"))):
            book.apply(RunEvent(Event(run.run_id, number, 0.0, what)))
        assert book.apply(PermissionRequested(PermissionQuestion(run.run_id, ToolCall("c", "send"), tool))) in (
            ONE,
            TWO,
        )
    assert [question.run.run_id for question in book.questions] == [run.run_id for run in runs[:3]]
    assert book.summary(ONE).asks
    assert (book.counts().asking, book.counts().running) == (3, 3)
    book.remove_question(book.questions[0])
    book.apply(RunEvent(Event(runs[1].run_id, 2, 0.0, Resumed(1.0))))
    book.apply(done(runs[2], Status.STOPPED))
    assert book.questions == ()
    assert book.counts().asking == 1


def test_a_run_that_is_stepped_through_is_held_and_asks_nothing() -> None:
    book = RunBook(Clock())
    runs = started(book)
    for number, what in enumerate((events_of([])[0].payload, Paused("step by step", None, "request", 1))):
        book.apply(RunEvent(Event(runs[0].run_id, number, 0.0, what)))
    assert [run.run_id for run in book.held_runs] == [runs[0].run_id]
    assert (book.counts().held, book.counts().asking) == (1, 0)
    assert (book.summary(ONE).is_held, book.summary(ONE).asks) == (True, False)
    book.apply(RunEvent(Event(runs[0].run_id, 2, 0.0, Resumed(1.0))))
    assert book.held_runs == [] and not book.summary(ONE).is_held


def test_a_recorded_run_stands_where_a_run_would_and_beside_a_later_one_that_counts() -> None:
    book = RunBook(Clock())
    run = planned()[0]
    events = [Event(run.run_id, event.sequence, event.time_ms, event.payload) for event in events_of([("Hi.", 0)])]
    book.recall(run, "2026-01-02T03:04:05Z", events, done(run, Status.FAILED, 0.0).result)
    assert book.summary(ONE) == CaseSummary(Status.FAILED, 0.0, "done", graded=Status.FAILED)
    (shown,) = book.runs_of(ONE)
    assert (shown.recorded, shown.events, shown.started_at) == (True, events, "2026-01-02T03:04:05Z")
    assert book.active_runs() == []
    again = started(book)[0]
    book.apply(done(again, Status.PASSED, 1.0))
    book.recall(run, "2026-01-02T03:04:05Z", events, done(run, Status.FAILED, 0.0).result)
    assert [run.recorded for run in book.runs_of(ONE)] == [False, False, True]
    assert book.summary(ONE) == CaseSummary(Status.PASSED, 1.0, "waiting", graded=Status.PASSED)
    assert book.counts() == Counts({Status.PASSED: 1}, waiting=3)
