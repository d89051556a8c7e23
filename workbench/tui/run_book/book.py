"""The run book: the runs since the app was opened, summaries by case, and the progress of batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.workspace import SuitesChanged
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.dataclasses import dataclass
from workbench.engine.events import (
    BatchDone,
    BatchEvent,
    BatchStarted,
    CostLimitReached,
    PermissionRequested,
    RequestDelayed,
    RequestHeld,
    RunDone,
    RunEvent,
    StartUp,
)
from workbench.engine.plan import PlannedRun
from workbench.engine.redaction import SuiteParts
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.show.views.progress import Progress as BatchProgress
from workbench.suite.variants import variant_name_of
from workbench.trajectory.events import Event
from workbench.tui.run_book.forks import origin_name, root_of, with_branches, with_replaced
from workbench.tui.run_book.record import (
    RERUN_STATUSES,
    Question,
    RecentRuns,
    RunIdentity,
    RunRecord,
    Spend,
    Stopwatch,
    Tally,
    distinct,
    total,
    without,
)
from workbench.tui.run_book.stored_runs import recalled
from workbench.tui.run_book.summaries import (
    NEVER_RUN,
    CaseSummary,
    CaseTally,
    Counts,
    RunsByModel,
    StepSummary,
    active_step_summary,
    counting,
    summarised,
    summarised_steps,
)

if TYPE_CHECKING:
    from workbench.engine.fork import PastHold


@dataclass(frozen=True)
class Progress:
    """The progress of all running batches together.

    `elapsed_s` is the time in seconds since the first batch began. It excludes the time in which all runs waited for
    the user."""

    done: int
    total: int
    elapsed_s: float
    is_active: bool
    running: int = 0
    left_s: float | None = None
    """The estimated seconds left, `None` without enough data."""
    statuses: Mapping[Status, int] = field(default_factory=dict)
    """The number of finished runs by status."""
    waiting: int = 0
    """The number of active runs that will retry a request."""
    starting: tuple[str, ...] = ()
    """The servers and models that are starting."""


@dataclass
class _Batch:
    started_s: float
    counted: BatchProgress = field(default_factory=BatchProgress)
    ended_s: float | None = None


class RunBook:
    """The latest run of each case, model and repeat.

    `clock` returns seconds. `now` returns the time of day with its zone."""

    def __init__(
        self,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        """Create an empty run book. `secrets` are removed from displayed runs."""
        self._parts = SuiteParts(secrets)
        self._clock = Stopwatch(clock)
        self._now = now
        self._recent = RecentRuns()
        self._runs: dict[str, RunRecord] = {}
        self._running: dict[str, RunRecord] = {}
        """The active runs with events."""
        self._latest: dict[CaseKey, dict[RunIdentity, RunRecord]] = {}
        self.by_model = RunsByModel()
        self._batches: dict[str, _Batch] = {}
        self._last_batch: str | None = None
        self._active_runs: dict[CaseKey, list[RunRecord]] = {}
        self._summaries: dict[CaseKey, CaseSummary] = {}
        self._steps: dict[CaseKey, tuple[StepSummary, ...]] = {}
        self._counted: Tally[CaseKey] = Tally()
        self._ended: Tally[CaseKey] = Tally()
        self._spend_by_case: dict[CaseKey, Spend] = {}
        self._uncounted: set[CaseKey] = set()
        """The cases whose counts are out of date."""
        self._revisions: dict[Path, int] = {}
        self._tallies: dict[Path, tuple[tuple[str, ...], int, CaseTally]] = {}
        self._questions: list[Question] = []
        self._limits_reached: dict[str, CostLimitReached] = {}
        """The reached cost limits that the user is asked about, by batch."""
        self._starting: dict[int, tuple[str, float]] = {}
        """The starting servers and models, each with the time of its start."""
        self._origins: dict[str, RunRecord] = {}
        """The origins of starting forks, by the id of the fork."""
        self._stepped_back: dict[str, tuple[RunRecord, tuple[PastHold, ...]]] = {}
        """By the id of a starting fork, the run that the fork will replace, and the holds before the fork's hold."""

    def apply(self, event: BatchEvent) -> CaseKey | None:
        """Apply one event of a batch. Return the case whose display changed, `None` if none did."""
        match event:
            case BatchStarted():
                self._start(event)
            case RunEvent(event=happened):
                record = self._runs.get(happened.run_id)
                if record is not None:
                    if not record.started_at:
                        record.started_at = self._now().isoformat(timespec="milliseconds")
                    # The case's summary only needs an update if its stage, its hold or its delay changed.
                    before = record.paused, record.delayed_until
                    record.add(happened)
                    if record.stage == "waiting" and record.batch in self._batches:
                        self._batches[record.batch].counted.add_run(record.run_id, record.model, self._clock())
                    if record.stage == "waiting" or (record.paused, record.delayed_until) != before:
                        record.stage = "running"
                        self._running[record.run_id] = record
                        self._clear_caches(record)
                        self._follow_clock()
                    # A question of a run that continues has been answered.
                    if record.paused is None:
                        self._withdraw_question(record.run_id)
                    return record.case_key
            case PermissionRequested(question=question):
                record = self._runs.get(question.run_id)
                if record is not None:
                    self._questions.append(Question(record, question))
                    return record.case_key
            case CostLimitReached():
                self._limits_reached[event.batch] = event
            case RequestDelayed(run_id=run_id, wait_s=wait_s):
                record = self._runs.get(run_id)
                if record is not None:
                    record.delay_until(self._now() + timedelta(seconds=wait_s))
                    self._clear_caches(record)
                    return record.case_key
            case RequestHeld(run_id=run_id, request=request):
                record = self._runs.get(run_id)
                if record is not None:
                    record.set_request(request)
                    return record.case_key
            case StartUp(number=number, took_ms=took_ms):
                if took_ms is None:
                    _, began_s = self._starting.get(number, ("", self._clock()))
                    self._starting[number] = event.words, began_s
                else:
                    self._starting.pop(number, None)
            case RunDone(result=result):
                record = self._runs.pop(result.run_id, None)
                if record is not None:
                    self._finish(record, event)
                    return record.case_key
            case BatchDone(batch=name):
                self._limits_reached.pop(name, None)
                if name in self._batches:
                    self._batches[name].ended_s = self._clock()
        return None

    def follow(self, change: SuitesChanged) -> None:
        """Add the runs of recordings if the suites were read from disk, as opposed to edited."""
        if change.how != "read":
            return
        for run in change.workspace.recorded:
            self.recall(run.planned, run.recording.header.started_at, run.recording.events, run.result)

    def recall(
        self,
        planned: PlannedRun,
        started_at: str,
        events: Sequence[Event],
        result: RunResult,
        *,
        is_unsaved: bool = False,
    ) -> None:
        """Add a run from a recording. It decides the case's result until the case is run again.

        `is_unsaved` is true if this program recorded the run and has not saved it yet."""
        latest = self._latest.setdefault((planned.file.path, planned.case.id), {})
        kind = RunIdentity(planned.model, planned.repeat, True)
        # Each reading of the workspace delivers all recordings again. A known recording keeps its record.
        if kind not in latest:
            latest[kind] = record = recalled(planned, started_at, events, result)
            record.recent = self._recent
            if is_unsaved:
                # The secrets of such a run have not been removed yet.
                record.is_unsaved, record.parts = True, self._parts
            self.by_model.recall(record)
            self._clear_caches(record)

    def branch(self, run_id: str, origin: RunRecord) -> None:
        """Register the origin of a fork before the fork starts. `run_id` is the id of the fork."""
        self._origins[run_id] = origin

    def step_back(self, run_id: str, run: RunRecord) -> None:
        """Register a fork that will replace a held run and start at the run's previous hold.

        `run_id` is the id of the fork."""
        self._stepped_back[run_id] = run, run.holds_before[:-1]

    def finished(self, case: CaseKey) -> list[RunRecord]:
        # `_latest` and `by_model` share most runs, so `distinct` removes repetitions.
        runs = (*self._latest.get(case, {}).values(), *chain.from_iterable(self.by_model.of(case).values()))
        return [run for run in distinct(runs) if run.figures is not None]

    def forget_case(self, case: CaseKey) -> None:
        """Remove the finished runs of a request of quick add that the user did not accept as a case.

        Totals still include their tokens and cost."""
        if self._active_runs.get(case):
            return
        for run in self._latest.pop(case, {}).values():
            self.by_model.drop(run)
            self._spend_by_case[case] = total((self._spend_by_case.get(case, Spend()), run.spent))
        self._forget(case)
        self._revisions[case[0]] = self._revisions.get(case[0], 0) + 1
        self._uncounted.discard(case)
        self._counted.put(case, ())
        self._ended.put(case, ())

    def regrade(self, run: RunRecord, planned: PlannedRun, result: RunResult) -> None:
        """Replace the grade of a finished run by the grade of the case in `planned`."""
        case = run.case_key
        before, status = self.summary(case), run.status
        run.regrade(planned, result)
        self.by_model.regrade(case)
        self._forget(case)
        # Each keystroke in a case regrades its runs, so only the caches that depend on the changed values are cleared.
        if result.status != status:
            self._uncounted.add(case)
        # An edit may regrade a whole suite. Results of the suite are counted again only if the summary of a case
        # changed.
        if self.summary(case) != before:
            self._revisions[run.path] = self._revisions.get(run.path, 0) + 1

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open questions, oldest first. A question is withdrawn when its run continues or ends."""
        return tuple(self._questions)

    @property
    def limits_reached(self) -> tuple[CostLimitReached, ...]:
        """The cost limits that batches have reached, oldest first. An answered limit is removed."""
        return tuple(self._limits_reached.values())

    def limit_answered(self, batch: str) -> None:
        """Remove the question about a batch's cost limit."""
        self._limits_reached.pop(batch, None)

    def has_ended(self, batch: str) -> bool:
        return self._batches[batch].ended_s is not None

    def waiting_in(self, batch: str) -> int:
        """Return the number of runs of a batch that have not begun."""
        return sum(run.batch == batch and run.stage == "waiting" for run in self._runs.values())

    def remove_question(self, question: Question) -> None:
        """Remove an answered question. The status of its run changes later, by an event of the run."""
        self._questions = [other for other in self._questions if other is not question]

    def runs_of(self, case: CaseKey) -> list[RunRecord]:
        """Return all displayed runs of a case, each followed by its forks.

        The latest runs come first, by model and repeat. If they were stopped early, the earlier runs that decide the
        case's result follow."""
        runs = (*self._latest.get(case, {}).values(), *self.counting_runs(case))
        return with_branches(distinct(runs))

    def counting_runs(self, case: CaseKey) -> list[RunRecord]:
        """Return the runs that decide the result of a case, without forks.

        Recorded runs are returned only if there are no other runs. If the runs of a model were stopped early, the
        model's earlier runs are returned instead."""
        runs = counting(self._latest.get(case, {}))
        spared = self.by_model.earlier_runs(case)
        if not spared:
            return runs
        others: list[RunRecord] = []
        earlier: dict[str, Sequence[RunRecord]] = {}
        for run in runs:
            if run.model in spared:
                earlier[run.model] = spared[run.model]
            else:
                others.append(run)
        return [*others, *chain.from_iterable(earlier.values())]

    def needs_rerun(self, case: CaseKey) -> bool:
        """Return whether the result of a case is a failure or an error, or any of its latest runs was stopped."""
        # If runs were stopped, the summary is about earlier runs, and may hide that the latest runs were stopped.
        stopped = any(run.status == Status.STOPPED for run in counting(self._latest.get(case, {})))
        return stopped or self.summary(case).status in RERUN_STATUSES

    def summary(self, case: CaseKey) -> CaseSummary:
        """Return the summary of a case for the tree."""
        if case not in self._latest:
            return NEVER_RUN
        if case not in self._summaries:
            counted = self.counting_runs(case)
            self._summaries[case] = summarised(counted, self._other_active(case, counted))
        return self._summaries[case]

    def _other_active(self, case: CaseKey, counted: Sequence[RunRecord]) -> list[RunRecord]:
        """Return the active runs of a case that are not in `counted`: forks, and runs of variants.

        `counted` are the runs that decide the result of the case."""
        known = set(map(id, counted))
        beside: list[RunRecord] = []
        for run in self.active_runs(case):
            is_other = run.is_fork or variant_name_of(run.model) is not None
            if is_other and id(run) not in known:
                beside.append(run)
        return beside

    def has_runs(self, case: CaseKey) -> bool:
        """Return whether the book has any run of a case, active or finished."""
        return case in self._latest

    def now(self) -> datetime:
        """Return the time of day, with its zone."""
        return self._now()

    def revision(self, suite: Path) -> int:
        """Return a number that changes whenever a result of the suite's cases changes."""
        return self._revisions.get(suite, 0)

    def step(self, case: CaseKey, number: int) -> StepSummary | None:
        """Return the summary of a step of a chain (from 1), `None` if it has no result."""
        if case not in self._latest:
            return None
        if active := self._active_runs.get(case):
            return active_step_summary(active, number)
        if case not in self._steps:
            self._steps[case] = summarised_steps(self.counting_runs(case))
        steps = self._steps[case]
        if number <= len(steps):
            return steps[number - 1]
        return None

    def tally(self, suite: Path, cases: tuple[str, ...]) -> CaseTally:
        """Count these cases by outcome.

        The result is cached until a case of the suite changes."""
        revision = self._revisions.get(suite)
        if revision is None:
            return CaseTally()
        known = self._tallies.get(suite)
        # Comparing by identity is enough, because the tree passes the same tuple until its rows change. A comparison by
        # value would take long for a suite with thousands of cases.
        if known is None or known[0] is not cases or known[1] != revision:
            counted = CaseTally.of(self.summary((suite, case)) for case in cases)
            known = self._tallies[suite] = (cases, revision, counted)
        return known[2]

    def counts(self) -> Counts:
        """Return how many of the latest runs of all cases have each status, and how many are active."""
        self._count()
        asking = sum(run.is_asking for run in self._running.values())
        totals = self._counted.totals
        ended = {status: totals[status] for status in Status if status in totals}
        return Counts(
            ended,
            running=totals.get("running", 0),
            waiting=totals.get("waiting", 0),
            asking=asking,
            held=len(self.held_runs),
        )

    @property
    def held_runs(self) -> list[RunRecord]:
        """The runs that are held until the user continues them, in the order in which they were started."""
        # The few running runs are checked first, because most batches have no held run.
        if not any(run.is_held for run in self._running.values()):
            return []
        return [run for run in self._runs.values() if run.is_held]

    @property
    def any_failed(self) -> bool:
        """Whether the latest run of any case failed, broke off or was stopped."""
        return not RERUN_STATUSES.isdisjoint(self.endings)

    @property
    def endings(self) -> frozenset[Status]:
        """The statuses of the latest runs of all cases."""
        self._count()
        return frozenset(status for status in Status if status in self._ended.totals)

    def spend(self) -> Spend:
        """Return the tokens and cost of the latest runs of all cases."""
        self._count()
        return total(self._spend_by_case.values())

    def _count(self) -> None:
        """Update the counts of the cases that changed since the last call."""
        for case in self._uncounted:
            counted = self.counting_runs(case)
            latest = distinct((*self._latest[case].values(), *counted))
            names: list[str] = []
            for run in (*counted, *self._other_active(case, counted)):
                name = run.status or run.stage
                if name != "done":
                    names.append(name)
            ended: list[str] = []
            for run in latest:
                if run.status and not run.is_fork:
                    ended.append(run.status)
            self._counted.put(case, tuple(names))
            self._ended.put(case, tuple(ended))
            self._spend_by_case[case] = total(run.spent for run in latest)
        self._uncounted.clear()

    def progress(self) -> Progress:
        """Return the progress of the active batches, or else of the last batch."""
        active = [batch for batch in self._batches.values() if batch.ended_s is None]
        if active:
            return self._progress_of(active)
        if self._last_batch is None:
            return Progress(0, 0, 0.0, False)
        last = self._batches[self._last_batch]
        took_s = (last.ended_s or last.started_s) - last.started_s
        return Progress(last.counted.done, last.counted.planned, took_s, False, statuses=last.counted.statuses)

    def _progress_of(self, batches: Sequence[_Batch]) -> Progress:
        now_s = self._clock()
        done = total = running = 0
        statuses: Counter[Status] = Counter()
        estimates: list[float | None] = []
        for batch in batches:
            counted = batch.counted
            done, total, running = done + counted.done, total + counted.planned, running + counted.running
            statuses += counted.statuses
            if counted.done < counted.planned:
                estimates.append(counted.left_s(now_s))
        # Batches run side by side, so the longest estimate counts. If any batch has no estimate, there is no estimate.
        known = [estimate for estimate in estimates if estimate is not None]
        left_s = None
        if known and len(known) == len(estimates):
            left_s = max(known)
        return Progress(
            done=done,
            total=total,
            elapsed_s=now_s - min(batch.started_s for batch in batches),
            is_active=True,
            running=running,
            left_s=left_s,
            statuses=statuses,
            waiting=self._retrying,
            starting=self.starting,
        )

    @property
    def _retrying(self) -> int:
        return sum(run.wait is not None for run in self._running.values())

    @property
    def starting(self) -> tuple[str, ...]:
        """The names of servers and models that are starting, each with the seconds since its start."""
        now_s = self._clock()
        return tuple(f"{name} … {int(now_s - began_s)} s" for name, began_s in self._starting.values())

    def active_runs(self, case: CaseKey | None = None) -> list[RunRecord]:
        """Return the waiting and running runs of one case or of all cases."""
        if case is None:
            return list(self._runs.values())
        return list(self._active_runs.get(case, ()))

    def any_active(self, cases: Iterable[CaseKey]) -> bool:
        return any(self._active_runs.get(case) for case in cases)

    def _follow_clock(self) -> None:
        """Stop the clock while every begun run waits for the user. Otherwise, let the clock run."""
        self._clock.stop(bool(self._running) and all(run.paused is not None for run in self._running.values()))

    def _start(self, event: BatchStarted) -> None:
        # `Runner.start` applies this event before the engine sends it, so it may arrive twice.
        if event.batch in self._batches:
            return
        batch = self._batches[event.batch] = _Batch(self._clock())
        batch.counted.plan(run.model for run in event.runs)
        self._last_batch = event.batch
        fresh: dict[CaseKey, dict[RunIdentity, RunRecord]] = {}
        for planned in event.runs:
            left, holds = self._stepped_back.pop(planned.run_id, (None, ()))
            origin = left.origin if left is not None else self._origins.pop(planned.run_id, None)
            record = RunRecord(
                planned, event.batch, origin=origin, past_holds=holds, recent=self._recent, parts=self._parts
            )
            self._runs[planned.run_id] = record
            case_key = record.case_key
            if (named := left or record.origin) is not None:
                of_several = any(kind.repeat for kind in self._latest.get(case_key, {}))
                record.origin_name = origin_name(named, of_several=of_several)
            self._active_runs.setdefault(case_key, []).append(record)
            if left is not None:
                self._latest[case_key] = with_replaced(left, record, self._latest.get(case_key, {}))
                self.by_model.drop(left)
            # A fork does not replace the runs of its case. A new run does.
            of_case = self._latest if record.is_fork else fresh
            of_case.setdefault(case_key, {})[record.identity] = record
            self._clear_caches(record)
        for case, runs in fresh.items():
            self.by_model.start(runs.values())
            # Recorded runs and their forks stay in the list, after the new runs.
            for kind, run in self._latest.get(case, {}).items():
                if root_of(run).recorded:
                    runs[kind] = run
            self._latest[case] = runs

    def _finish(self, record: RunRecord, event: RunDone) -> None:
        result = event.result
        record.finish(result, event.began_ms, event.ended_ms)
        self._withdraw_question(record.run_id)
        self._clear_caches(record)
        self._running.pop(record.run_id, None)
        self._follow_clock()
        case = record.case_key
        self._active_runs[case] = without(self._active_runs[case], record)
        batch = self._batches.get(record.batch)
        if batch is not None:
            batch.counted.count_run(record.run_id, record.model, result.status, result.cost_usd, result.user_cost_usd)

    def _clear_caches(self, record: RunRecord) -> None:
        case = record.case_key
        self._forget(case)
        self._uncounted.add(case)
        self._revisions[record.path] = self._revisions.get(record.path, 0) + 1

    def _forget(self, case: CaseKey) -> None:
        self._summaries.pop(case, None)
        self._steps.pop(case, None)

    def _withdraw_question(self, run_id: str) -> None:
        if self._questions:
            self._questions = [question for question in self._questions if question.run.run_id != run_id]
