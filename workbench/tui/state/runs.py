"""All runs since the app was opened: what each case's latest runs show, their counts, and how far the batches are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from workbench.batches.events import BatchDone, BatchEvent, BatchStarted, ExecutionAsked, RunDone, RunEvent
from workbench.batches.plan import PlannedRun
from workbench.engine.permission import ExecutionQuestion
from workbench.grading.grade import RunResult, Status, disagree
from workbench.grading.repeats import case_result, case_results
from workbench.trajectory.events import Event, Paused, Resumed
from workbench.tui.state.asked import graded_alike, read_now, same_question
from workbench.tui.state.document import CaseOutline
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.run_view import RunView
from workbench.tui.state.spend import Spend, spend_of, total
from workbench.tui.state.tally import Tally

CaseKey = tuple[Path, str]
"""A case: its suite's file and its id."""

_Kind = tuple[str, int, bool]
"""Model, repeat, and whether it is recorded: a case shows the latest run of each."""

Stage = Literal["waiting", "running", "done"]

RUN_AGAIN: frozenset[Status] = frozenset({"failed", "error", "stopped"})
"""How a run ended that somebody may want to see again."""

BROKEN_OFF: frozenset[Status] = frozenset({"error", "stopped", "skipped"})
"""How a run ended that did not come to its end."""

_WORST_FIRST: tuple[Status, ...] = ("error", "failed", "warned", "stopped", "skipped", "passed")


@dataclass
class RunRecord:
    """One run, from the moment it was planned. `recorded` says that it comes from a recording; `started_at` is the time
    of day, ISO 8601, of its first event. `planned` has the case by which `result` is graded, which may say something
    else than when the run was made."""

    planned: PlannedRun
    batch: str = ""
    recorded: bool = False
    started_at: str = ""
    events: list[Event] = field(default_factory=list)
    view: RunView = field(default_factory=RunView)
    stage: Stage = "waiting"
    result: RunResult | None = None
    spent: Spend = field(default_factory=Spend)
    """What it used, once it is over; nothing for a recorded one."""
    held: bool = False
    """Whether it waits for a person."""
    saved_in: Path | None = None
    original: tuple[PlannedRun, RunResult] | None = None
    """How it was planned and graded when it ran, where it was graded anew since."""

    @property
    def run_id(self) -> str:
        return self.planned.run_id

    @property
    def path(self) -> Path:
        return self.planned.file.path

    @property
    def case_id(self) -> str:
        return self.planned.case.id

    @property
    def case_name(self) -> str:
        return self.planned.case.name

    @property
    def model(self) -> str:
        return self.planned.model

    @property
    def repeat(self) -> int:
        return self.planned.repeat

    @property
    def made(self) -> PlannedRun:
        """The run as it was planned and made."""
        return self.original[0] if self.original is not None else self.planned

    def is_of(self, suite: OpenSuite, case: CaseOutline | None) -> bool:
        """Whether the model was asked what the case asks now, and the run is graded by what the case expects now."""
        now = read_now(suite, case) if case is not None else None
        if now is None:
            return suite.file.hash == self.planned.file.hash
        return same_question(self.made, now.suite, now.case) and graded_alike(self.planned, now.suite, now.case)

    @property
    def to_save(self) -> tuple[PlannedRun, RunResult | None]:
        """What a recording holds of it: what it comes to now. Where the case asks something else by now, it is what it
        came to when it ran."""
        if self.original is None or same_question(self.made, self.planned.suite, self.planned.case):
            return self.planned, self.result
        return self.original

    def add(self, event: Event) -> None:
        """Take one more event."""
        if not self.events and self.started_at:
            self.view.began = datetime.fromisoformat(self.started_at)
        self.events.append(event)
        self.view.add(event)

    def finish(self, result: RunResult) -> None:
        """Take the end."""
        self.stage, self.result, self.held = "done", result, False
        self.spent = Spend() if self.recorded else spend_of(self.model, result)
        self.view.grade(result, tuple(self.planned.case.placed_expected_calls()))

    def grade_anew(self, planned: PlannedRun, result: RunResult) -> None:
        """Take another grade: by the case in `planned`, which is that of now."""
        if self.result is not None and self.original is None:
            self.original = (self.planned, self.result)
        elif self.original is not None and planned is self.original[0]:
            self.original = None
        self.planned, self.result, self.saved_in = planned, result, None
        former = self.original[1] if self.original is not None else None
        self.view.grade(result, tuple(planned.case.placed_expected_calls()), former)


@dataclass(frozen=True)
class Question:
    """Whether a call of a run may really be executed."""

    run: RunRecord
    asked: ExecutionQuestion


@dataclass(frozen=True)
class CaseSummary:
    """A case at a glance: the worst status and the lowest score among its models, and how far its runs are.

    A model counts with what its repeats come to by the case's rule.
    """

    status: Status | None = None
    score: float | None = None
    stage: Stage | None = None
    held: bool = False
    disagree: bool = False
    """Whether one of those runs would fail under one grader, and not under another."""


_NEVER_RUN = CaseSummary()


@dataclass(frozen=True)
class Counts:
    """The latest runs by status, and those under way."""

    passed: int = 0
    warned: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0
    stopped: int = 0
    running: int = 0
    waiting: int = 0
    held: int = 0
    """Of those that run, those that wait for a person."""


@dataclass(frozen=True)
class Progress:
    """How far the batches under way are; `elapsed_s` counts since the first of them began."""

    done: int
    total: int
    elapsed_s: float
    under_way: bool


@dataclass
class _Batch:
    started_s: float
    total: int
    done: int = 0
    ended_s: float | None = None


class RunBook:
    """Keeps, for each case, the latest run of each model and repeat. `clock` counts seconds, `now` is the time of day
    with its zone."""

    def __init__(self, clock: Callable[[], float], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._now = now
        self._runs: dict[str, RunRecord] = {}
        self._latest: dict[CaseKey, dict[_Kind, RunRecord]] = {}
        self._batches: dict[str, _Batch] = {}
        self._last_batch: str | None = None
        self._going: dict[CaseKey, list[RunRecord]] = {}
        self._summaries: dict[CaseKey, CaseSummary] = {}
        self._totals: tuple[Spend, frozenset[Status]] | None = None
        """What the latest runs used, and how any of them ended; `None` when that is to be added up again."""
        self._counted: Tally[CaseKey] = Tally()
        self._uncounted: set[CaseKey] = set()
        self._revisions: dict[Path, int] = {}
        self._tallies: dict[Path, tuple[tuple[str, ...], int, tuple[int, int]]] = {}
        self._questions: list[Question] = []

    def apply(self, event: BatchEvent) -> CaseKey | None:
        """Take one event; the case whose picture it changes, if it is about one."""
        match event:
            case BatchStarted():
                self._start(event)
            case RunEvent(event=happened):
                record = self._runs.get(happened.run_id)
                if record is not None:
                    if not record.events:
                        record.started_at = self._now().isoformat(timespec="milliseconds")
                    record.add(happened)
                    held = isinstance(happened.what, Paused) or (record.held and not isinstance(happened.what, Resumed))
                    if record.stage == "waiting" or held != record.held:
                        record.stage, record.held = "running", held
                        self._touch(record)
                    if not held:
                        self._withdraw(record.run_id)
                    return record.path, record.case_id
            case ExecutionAsked(question=question):
                record = self._runs.get(question.run_id)
                if record is not None:
                    self._questions.append(Question(record, question))
                    return record.path, record.case_id
            case RunDone(result=result):
                record = self._runs.pop(result.run_id, None)
                if record is not None:
                    self._finish(record, result)
                    return record.path, record.case_id
            case BatchDone(batch=name):
                if name in self._batches:
                    self._batches[name].ended_s = self._clock()
        return None

    def recall(self, planned: PlannedRun, started_at: str, events: Sequence[Event], result: RunResult) -> None:
        """Take over a recorded run. It stays beside those that are made of the case, which count in its stead."""
        latest = self._latest.setdefault((planned.file.path, planned.case.id), {})
        kind = (planned.model, planned.repeat, True)
        if kind not in latest:
            record = RunRecord(planned, recorded=True, started_at=started_at)
            for event in events:
                record.add(event)
            record.finish(result)
            latest[kind] = record
            self._totals = None
            self._touch(record)

    def finished(self, case: CaseKey) -> list[RunRecord]:
        """The runs of a case that are over."""
        return [run for run in self._latest.get(case, {}).values() if run.result is not None]

    def grade_anew(self, run: RunRecord, planned: PlannedRun, result: RunResult) -> None:
        """Give a run that is over another grade: by the case in `planned`. What is known of other cases stays so, and
        what is known of this one as far as nothing in it is another."""
        case = (run.path, run.case_id)
        before, status = self.summary(case), run.result.status if run.result is not None else None
        run.grade_anew(planned, result)
        self._summaries.pop(case, None)
        if result.status != status:
            self._totals = None
            self._uncounted.add(case)
        if self.summary(case) != before:
            self._revisions[run.path] = self._revisions.get(run.path, 0) + 1

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is asked and not answered yet, the oldest first. A run that goes on or ends asks no more."""
        return tuple(self._questions)

    def answered(self, question: Question) -> None:
        """Take a question as answered, before the run says that it goes on."""
        self._questions = [other for other in self._questions if other is not question]

    def runs_of(self, case: CaseKey) -> list[RunRecord]:
        """The latest runs of a case, in the order of models and repeats, recorded ones last."""
        return list(self._latest.get(case, {}).values())

    def runs_that_count(self, case: CaseKey) -> list[RunRecord]:
        """Of the latest runs of a case, those that speak for it: recorded ones only where there are no others."""
        return _counting(self._latest.get(case, {}))

    def summary(self, case: CaseKey) -> CaseSummary:
        """What the tree shows of a case."""
        if case not in self._latest:
            return _NEVER_RUN
        if case not in self._summaries:
            self._summaries[case] = _summarised(_counting(self._latest[case]))
        return self._summaries[case]

    def tally(self, suite: Path, cases: tuple[str, ...]) -> tuple[int, int]:
        """Of some cases of a suite: how many passed or warned, and how many came to an end, a verdict or an error.

        Asking for the same ones again costs nothing until something happens to one of the suite.
        """
        revision = self._revisions.get(suite)
        if revision is None:
            return 0, 0
        known = self._tallies.get(suite)
        if known is None or known[0] is not cases or known[1] != revision:
            statuses = [self.summary((suite, case)).status for case in cases]
            good = statuses.count("passed") + statuses.count("warned")
            ended = good + statuses.count("failed") + statuses.count("error")
            known = self._tallies[suite] = (cases, revision, (good, ended))
        return known[2]

    def counts(self) -> Counts:
        """The latest runs of all cases."""
        for case in self._uncounted:
            runs = _counting(self._latest[case])
            names = (run.result.status if run.result is not None else run.stage for run in runs)
            self._counted.put(case, tuple(name for name in names if name != "done"))
        self._uncounted.clear()
        return Counts(**self._counted.totals, held=sum(run.held for run in self._runs.values()))

    @property
    def any_failed(self) -> bool:
        """Whether the latest run of any case failed, broke off or was stopped."""
        return not RUN_AGAIN.isdisjoint(self.endings)

    @property
    def endings(self) -> frozenset[Status]:
        """How the latest runs of all cases ended."""
        return self._added_up()[1]

    def spend(self) -> Spend:
        """What the latest runs of all cases used."""
        return self._added_up()[0]

    def _added_up(self) -> tuple[Spend, frozenset[Status]]:
        if self._totals is None:
            latest = [run for runs in self._latest.values() for run in runs.values()]
            endings = frozenset(run.result.status for run in latest if run.result is not None)
            self._totals = total(run.spent for run in latest), endings
        return self._totals

    def progress(self) -> Progress:
        """Of the batches under way; when there are none, of the last one."""
        going = [batch for batch in self._batches.values() if batch.ended_s is None]
        if going:
            elapsed = self._clock() - min(batch.started_s for batch in going)
            return Progress(sum(batch.done for batch in going), sum(batch.total for batch in going), elapsed, True)
        if self._last_batch is None:
            return Progress(0, 0, 0.0, False)
        last = self._batches[self._last_batch]
        return Progress(last.done, last.total, (last.ended_s or last.started_s) - last.started_s, False)

    def under_way(self, case: CaseKey | None = None) -> list[RunRecord]:
        """The runs that wait or run: of one case, or all."""
        return list(self._runs.values() if case is None else self._going.get(case, ()))

    def _start(self, event: BatchStarted) -> None:
        if event.batch in self._batches:  # whoever began it said so at once
            return
        self._batches[event.batch] = _Batch(self._clock(), len(event.runs))
        self._last_batch = event.batch
        self._totals = None
        fresh: dict[CaseKey, dict[_Kind, RunRecord]] = {}
        for planned in event.runs:
            record = RunRecord(planned, event.batch)
            self._runs[planned.run_id] = record
            case_key = (record.path, record.case_id)
            self._going.setdefault(case_key, []).append(record)
            fresh.setdefault(case_key, {})[record.model, record.repeat, False] = record
            self._touch(record)
        for case, runs in fresh.items():
            runs |= {kind: run for kind, run in self._latest.get(case, {}).items() if run.recorded}
            self._latest[case] = runs

    def _finish(self, record: RunRecord, result: RunResult) -> None:
        record.finish(result)
        self._totals = None
        self._withdraw(record.run_id)
        self._touch(record)
        case = (record.path, record.case_id)
        self._going[case] = [run for run in self._going[case] if run is not record]
        if (batch := self._batches.get(record.batch)) is not None:
            batch.done += 1

    def _touch(self, record: RunRecord) -> None:
        """What is known of the record's case is to be found out anew."""
        case = (record.path, record.case_id)
        self._summaries.pop(case, None)
        self._uncounted.add(case)
        self._revisions[record.path] = self._revisions.get(record.path, 0) + 1

    def _withdraw(self, run_id: str) -> None:
        if self._questions:
            self._questions = [question for question in self._questions if question.run.run_id != run_id]


def deciding_run(runs: Sequence[RunRecord]) -> int:
    """Which of a case's runs to look at first: of the first model the last repeat that ended as the case did by its
    rule; the last repeat while there is none."""
    of_model = [index for index, run in enumerate(runs) if _is_like(run, runs[0])]
    ended = [(index, result) for index in of_model if (result := runs[index].result) is not None]
    status = case_result([result for _, result in ended]).status if len(ended) == len(of_model) > 0 else None
    return max((index for index, result in ended if result.status == status), default=max(of_model, default=0))


def _is_like(run: RunRecord, other: RunRecord) -> bool:
    return (run.model, run.recorded) == (other.model, other.recorded)


def _counting(runs: Mapping[_Kind, RunRecord]) -> list[RunRecord]:
    """The runs that speak for a case: recorded ones only where there are no others."""
    made = [run for run in runs.values() if not run.recorded]
    return made or list(runs.values())


def _summarised(runs: list[RunRecord]) -> CaseSummary:
    stages = {run.stage for run in runs}
    stage: Stage = "running" if "running" in stages else "waiting" if "waiting" in stages else "done"
    results = [run.result for run in runs if run.result is not None]
    models = case_results(results)
    statuses = {model.status for model in models}
    worst = next((status for status in _WORST_FIRST if status in statuses), None)
    scores = [model.score for model in models if model.score is not None]
    at_odds = any(disagree(result.grades) for result in results)
    return CaseSummary(worst, min(scores, default=None), stage, any(run.held for run in runs), at_odds)
