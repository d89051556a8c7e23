"""Forks in the app's state: branches that do not count for their case, and the fork that is being prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.trajectory.scripts import events_of
from workbench.analysis import alignment
from workbench.analysis.alignment import Difference, first_difference
from workbench.authoring.case_list import CurrentCase
from workbench.engine.checkpoint import EditResult
from workbench.engine.events import BatchStarted, RunDone, RunEvent
from workbench.engine.fork import Fork, ForkPoint
from workbench.engine.plan import PlannedRun, plan_fork, plan_runs
from workbench.grading.grade import RunResult, StepGrade
from workbench.grading.status import Status
from workbench.show.views.run_view import RunPlace
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Event, Paused, StepStarted
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.models.choices import ModelChoice
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.forks import branch_number, branch_text, place_text
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.summaries import CaseSummary, Counts, deciding_run
from workbench.tui.runs.fork_draft import ForkDraft, fork_draft

PATH = Path("a.toml")
FILE = parse_suite('format = 1\nname = "S"\nsystem = "Be kind."\n[[cases]]\nname = "One"\nuser = "x"\n', PATH)
ONE = (PATH, "one")
MESSAGE_ROUNDS = [("", 2), ("Done.", 0)]


def current_case(**changes: object) -> CurrentCase:
    assert FILE.suite is not None
    return CurrentCase(FILE, FILE.suite, FILE.suite.cases[0].model_copy(update=changes))


class Book:
    """A book with runs of one case."""

    def __init__(self) -> None:
        self.book = RunBook(lambda: 0.0)
        self._batches = 0

    def begin(self, planned: PlannedRun) -> RunRecord:
        self._batches += 1
        self.book.apply(BatchStarted(f"b{self._batches}", (planned,)))
        (record,) = [run for run in self.book.runs_of(ONE) if run.run_id == planned.run_id]
        return record

    def end(self, record: RunRecord, status: Status = Status.PASSED, answer: str = "Done.") -> RunRecord:
        events = events_of([("", 2), (answer, 0)], run_id=record.run_id)
        for event in events:
            self.book.apply(RunEvent(event))
        self.book.apply(RunDone(result_of(record.planned, status, events)))
        return record

    def run(self) -> RunRecord:
        (planned,) = plan_runs([FILE])
        return self.begin(planned)

    def fork(self, origin: RunRecord, model: str = "offline") -> RunRecord:
        planned = plan_fork(FILE, origin.planned.case, model, Fork(origin.trajectory, ForkPoint(2)))
        self.book.branch(planned.run_id, origin)
        return self.begin(planned)


def result_of(planned: PlannedRun, status: Status, events: Sequence[Event]) -> RunResult:
    return RunResult(planned.run_id, str(PATH), "one", "One", planned.model, planned.repeat, status, fold(events), ())


# Forks next to runs


def test_forks_follow_their_origin_and_never_take_its_place() -> None:
    made = Book()
    run = made.end(made.run())
    first, second = made.fork(run), made.fork(run)
    third = made.fork(made.end(first))
    assert made.book.runs_of(ONE) == [run, first, third, second]
    numbers = [branch_number(fork, made.book.runs_of(ONE)) for fork in (first, third, second)]
    assert numbers == ["1", "1.1", "2"]


def test_a_fork_names_the_run_that_it_was_forked_from_by_what_tells_that_one_from_others() -> None:
    made = Book()
    run = made.end(made.run())
    assert made.fork(run).view.origin == "the run on offline (baseline)"
    assert made.fork(made.end(made.fork(run))).view.origin == "the fork on offline (baseline)"
    made.book.apply(BatchStarted("twice", plan_runs([FILE], repeats=2)))
    second = next(run for run in made.book.runs_of(ONE) if run.repeat)
    assert made.fork(made.end(second)).view.origin == "run #2 on offline (baseline)"


def test_forks_do_not_speak_for_their_case_but_what_they_used_counts() -> None:
    made = Book()
    run = made.end(made.run(), Status.FAILED)
    used = made.book.spend().tokens
    fork = made.fork(run)
    assert made.book.summary(ONE) == CaseSummary(Status.FAILED, None, "waiting", graded=Status.FAILED)
    assert made.book.counts() == Counts({Status.FAILED: 1}, waiting=1)
    made.end(fork, Status.ERROR)
    assert made.book.summary(ONE) == CaseSummary(Status.FAILED, None, "done", graded=Status.FAILED)
    assert made.book.counts() == Counts({Status.FAILED: 1})
    assert made.book.counting_runs(ONE) == [run]
    assert made.book.endings == frozenset({"failed"})
    assert deciding_run(made.book.runs_of(ONE)) == 0
    assert made.book.spend().tokens == 2 * used > 0


def test_a_fork_that_is_held_is_seen_at_its_case() -> None:
    made = Book()
    fork = made.fork(made.end(made.run()))
    event = events_of([], run_id=fork.run_id)[0]
    for happened in (event, replace(event, sequence=1, payload=Paused("step by step", None, "request", 2))):
        made.book.apply(RunEvent(happened))
    assert (made.book.summary(ONE).is_held, made.book.counts().held) == (True, 1)


def test_a_run_that_is_made_anew_takes_its_forks_with_it_and_a_recorded_one_keeps_them() -> None:
    made = Book()
    (planned,) = plan_runs([FILE])
    events = events_of(MESSAGE_ROUNDS, run_id=planned.run_id)
    made.book.recall(planned, "2026-01-02T03:04:05Z", events, result_of(planned, Status.PASSED, events))
    (recorded,) = made.book.runs_of(ONE)
    kept = made.end(made.fork(recorded))
    run = made.end(made.run())
    made.end(made.fork(run))
    again = made.end(made.run())
    assert made.book.runs_of(ONE) == [again, recorded, kept]
    assert made.book.counting_runs(ONE) == [again]


def test_the_first_difference_is_told_once_a_fork_is_over() -> None:
    made = Book()
    run = made.end(made.run())
    fork = made.fork(run, model="other")
    assert branch_text(fork) == "other · from round 2"
    made.end(fork, answer="Gone.")
    assert branch_text(fork) == 'other · round 2: says "Gone." instead of "Done." · from round 2'
    assert branch_text(made.end(made.fork(run))) == "no difference · from round 2 · offline (baseline)"
    assert branch_text(run) == ""


def test_a_fork_is_compared_once_while_its_origin_goes_on_and_again_when_that_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, compared = Book(), []

    def counted(origin: Trajectory, fork: Trajectory) -> Difference | None:
        compared.append(origin)
        return first_difference(origin, fork)

    events = events_of(MESSAGE_ROUNDS)
    run = made.run()
    for event in events[:-3]:
        run.add(event)
    fork = made.fork(run)
    monkeypatch.setattr(alignment, "first_difference", counted)
    made.end(fork, answer="Gone.")
    for event in events[-3:]:
        run.add(event)
        branch_text(fork)
    assert len(compared) == 1
    run.finish(result_of(run.planned, Status.PASSED, events))
    assert 'round 2: says "Gone." instead of "Done."' in branch_text(fork)
    branch_text(fork)
    assert len(compared) == 2


# Preparing a fork


def draft_at(place: RunPlace | None, run: RunRecord | None = None, **changes: object) -> tuple[ForkDraft, CurrentCase]:
    made = Book()
    now = current_case(**changes)
    models = [ModelChoice("offline", "", ""), ModelChoice("other", "", "")]
    return fork_draft(run or made.end(made.run()), place, now, models), now


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (RunPlace(1), "round 1"),
        (RunPlace(2), "round 2"),
        (RunPlace(1, "c1-0", 0, 0), "the call to t (round 1)"),
        (RunPlace(1, "c1-0", 0, 1, True), "the result of t (call 1 of round 1)"),
        (RunPlace(1, "c1-1", 1, 2, True), "the result of t (call 2 of round 1)"),
    ],
)
def test_the_place_is_said_in_words(place: RunPlace, said: str) -> None:
    draft, now = draft_at(place)
    assert place_text(draft.fork) == said
    assert draft.why_not(now) is None


def test_the_end_of_a_run_is_where_it_would_go_on() -> None:
    draft, now = draft_at(None)
    assert draft.at == ForkPoint(3)
    assert draft.why_not(now) == "the model answered in round 2, so there is nothing left to ask"
    made = Book()
    ended = made.end(made.run())
    run = RunRecord(ended.planned)
    for event in ended.events[:-5]:
        run.add(event)
    assert len(run.trajectory.rounds) == 1
    assert draft_at(None, run)[0].at == ForkPoint(1, 1)


def test_only_what_was_changed_is_another_one() -> None:
    draft, now = draft_at(RunPlace(1, "c1-0", 0, 1, True))
    assert (draft.fork.system, draft.fork.result) == (None, None)
    draft.type("system", "Be brief.")
    draft.type("result", "sun")
    assert (draft.fork.system, draft.fork.result) == ("Be brief.", EditResult("sun"))
    draft.choose(-1)
    planned = draft.planned(now, [])
    assert (planned.model, planned.fork, planned.repeat) == ("other", draft.fork, 0)
    draft.reset("system")
    assert draft.fork.system is None


def test_a_result_becomes_an_error_or_none_with_or_without_another_text() -> None:
    draft, _ = draft_at(RunPlace(1, "c1-0", 0, 1, True))
    text = draft.text("result")
    draft.is_error = True
    assert draft.fork.result == EditResult(text, is_error=True)
    before = draft
    draft, _ = draft_at(RunPlace(1, "c1-0", 0, 1, True), before.run)
    draft.resume(before)
    assert draft.is_error
    draft.reset("result")
    assert draft.fork.result is None


def test_what_was_typed_stands_there_the_next_time() -> None:
    made = Book()
    run = made.end(made.run())
    before, _ = draft_at(RunPlace(1, "c1-0", 0, 1, True), run)
    before.type("result", "sun")
    before.choose(1)
    again, _ = draft_at(RunPlace(1, "c1-0", 0, 1, True), run)
    assert again.key == before.key
    again.resume(before)
    assert (again.result, again.model, again.system) == ("sun", 1, again.system_was)


def test_a_fork_keeps_the_system_prompt_that_its_origin_was_given() -> None:
    made = Book()
    run = made.end(made.run())
    planned = plan_fork(FILE, run.planned.case, "offline", Fork(run.trajectory, ForkPoint(2), system="Be brief."))
    made.book.branch(planned.run_id, run)
    draft, _ = draft_at(RunPlace(2), made.end(made.begin(planned)))
    assert (draft.system, draft.fork.system) == ("Be brief.", "Be brief.")


def test_a_case_that_is_skipped_and_a_chain_that_stopped_are_not_gone_on_with() -> None:
    draft, now = draft_at(RunPlace(2), skip="too slow")
    assert draft.why_not(now) == "the case of this run is skipped: too slow"
    steps = parse_suite(
        'format = 1\nname = "S"\n[[cases]]\nname = "One"\nstop_on_failure = true\n'
        '[[cases.steps]]\nuser = "x"\ntool = "t"\n[[cases.steps]]\ntool = "t"\nsystem = "Now."\n',
        PATH,
    )
    assert steps.suite is not None
    chain = CurrentCase(steps, steps.suite, steps.suite.cases[0])
    made = Book()
    run = made.end(made.run())
    assert run.result is not None
    first = replace(run.result.trajectory.rounds[0], step=StepStarted(1))
    run.finish(
        replace(
            run.result,
            trajectory=replace(run.result.trajectory, rounds=(first,)),
            steps=(StepGrade(1, Status.FAILED, 0.0, ""),),
        )
    )
    draft = fork_draft(run, RunPlace(2), chain, [])
    assert draft.system == "Now."
    assert draft.why_not(chain) == "step 1 failed, and the chain stops there (stop_on_failure)"


def test_the_run_s_own_model_is_asked_about_where_a_suite_or_a_recording_names_it() -> None:
    draft, now = draft_at(RunPlace(2))
    assert draft.planned(now, []).model_of_suite
    assert not draft.planned(now, ["offline"]).model_of_suite
    draft.choose(1)
    assert not draft.planned(now, []).model_of_suite


def test_where_the_run_s_own_model_is_not_known_the_first_likely_one_is_chosen() -> None:
    made = Book()
    models = [ModelChoice("offline", "", ""), ModelChoice("other", "", "")]
    draft = fork_draft(made.end(made.run()), RunPlace(1), current_case(), models, likely=("gone", "other"))
    assert draft.models[draft.model].name == "other"
