"""An evaluation for asyncio: its events as they happen, a future for each run, and the report at the end."""

from __future__ import annotations

import asyncio
import math
import time
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from workbench.dataclasses import dataclass
from workbench.engine.events import BatchDone, BatchEvent, ClusterNotice, Inbox, RunDone, RunEvent, StartUp
from workbench.engine.recordings import Recordings
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import FinishedRun, Plan, PlannedRuns, broken_suites_of
from workbench.evaluation.report import Report, history_note
from workbench.evaluation.runtime import Runtime
from workbench.grading.deferred_result import plain_result
from workbench.grading.grade import RunResult
from workbench.grading.lazy_sequences import LazySequence, MappedSequence
from workbench.grading.run_summary import RunSummary, TimedRun, summary_of
from workbench.providers.model import DEFAULT_RETRIES, RetryPolicy
from workbench.show.views.timing import Timing, timing_of
from workbench.suite.suite_file import lines_of, suites_of
from workbench.threads import in_thread

if TYPE_CHECKING:
    from workbench.analysis.early_stop import EarlyStopping
    from workbench.evaluation.stored_runs import LiveColumns
    from workbench.grading.packed import SharedParts
    from workbench.history.writer import BatchHandle
    from workbench.show.views.baseline import AgainstBaseline

_Result = TypeVar("_Result")

MAX_UNPACKED_RUNS = 4_000
"""The number of finished runs of a batch that stay unpacked. Packing and unpacking take longer than grading."""

MAX_UNPACKED_CHARACTERS = 20_000_000
"""The most characters of texts, arguments and results in the unpacked runs of a batch."""

MAX_PACKED_RUNS = 5_000
"""The number of packed runs that stay in memory once the history has the other runs."""

_NEVER = float("nan")


def _characters_of(result: RunResult) -> int:
    characters = 0
    for each in result.trajectory.rounds:
        characters += len(each.text) + len(each.reasoning)
        if each.provider_state is not None:
            characters += len(repr(each.provider_state))
        for call in each.calls:
            characters += len(repr(call.arguments))
            if call.result is not None:
                characters += len(call.result.content) + sum(len(media.data) for media in call.result.media)
    return characters


class Results(LazySequence[RunResult]):
    """The results of a batch in the order in which its runs ended.

    Results after the first `MAX_UNPACKED_RUNS` are compressed. After `read_from`, memory holds at most
    `MAX_PACKED_RUNS` results, plus the results of runs that the history has not stored yet."""

    def __init__(self) -> None:
        self._kept: list[RunResult] = []
        self._left_whole = MAX_UNPACKED_CHARACTERS
        self._let_go: LiveColumns | None = None
        self._in_common: SharedParts | None = None

    def read_from(self, file: Path, handle: BatchHandle) -> None:
        """From now on, read results from the history as soon as it has stored their runs.

        Stored results are redacted."""
        # This import is lazy, because most batches have so few runs that all of them stay unpacked.
        from workbench.evaluation.stored_runs import LiveColumns

        self._let_go = LiveColumns(file, handle)

    def append(self, result: RunResult) -> None:
        if len(self._kept) < MAX_UNPACKED_RUNS and self._left_whole > 0:
            self._left_whole -= _characters_of(result)
            self._kept.append(result)
            return
        if self._in_common is None:
            # This import is lazy, because most batches have no run to pack.
            from workbench.grading.packed import SharedParts

            self._in_common = SharedParts()
        # Compressed results share equal values, so they take a fraction of the memory.
        packed = self._in_common.packed(result)
        if self._let_go is not None and len(self._kept) >= MAX_PACKED_RUNS:
            self._let_go.add_finished(packed)
        else:
            self._kept.append(packed)

    @property
    def are_in_memory(self) -> bool:
        return not self._let_go

    def __len__(self) -> int:
        return len(self._kept) + len(self._let_go or ())

    def at(self, index: int) -> RunResult:
        kept = len(self._kept)
        if index < kept or self._let_go is None:
            result = self._kept[index] = plain_result(self._kept[index])
            return result
        return self._let_go.result(index - kept)


@dataclass
class Outcome:
    """The results, times and interruptions of a batch so far, collected from its events."""

    results: Results = field(default_factory=Results)
    interrupted: bool = False
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    """The start of the batch, or its start in the history if recorded: ISO 8601, UTC."""
    batch: int | None = None
    """The number of the batch in the history, if recorded."""
    unrecorded: int = 0
    """The number of finished runs that the history lacks."""
    times_ms: tuple[array[float], array[float]] = field(default_factory=lambda: (array("d"), array("d")))
    """The start and end of each run in milliseconds since 1970, in the order of `results`."""
    left_out: tuple[str, ...] = ()
    """The reasons why earlier runs of a resumed batch are omitted from the report."""
    took_s: float = 0.0
    start_up_s: float = 0.0
    """The part of `took_s` during which servers or models were starting."""
    _began_s: float = field(default_factory=time.monotonic)
    _starting: set[int] = field(default_factory=set)
    _starting_since_s: float = 0.0

    def begin(self) -> None:
        self._began_s = time.monotonic()

    def end_clock(self) -> None:
        self.took_s = time.monotonic() - self._began_s

    def on_event(self, event: BatchEvent) -> None:
        match event:
            case RunDone(result=result, began_ms=began_ms, ended_ms=ended_ms):
                self.results.append(result)
                for column, time_ms in zip(self.times_ms, (began_ms, ended_ms), strict=True):
                    if time_ms is None:
                        time_ms = _NEVER
                    column.append(time_ms)
            case StartUp(number=number, took_ms=took_ms):
                # Time during which several servers or models start counts only once.
                now = time.monotonic()
                if self._starting:
                    self.start_up_s += now - self._starting_since_s
                self._starting_since_s = now
                if took_ms is None:
                    self._starting.add(number)
                else:
                    self._starting.discard(number)
            case ClusterNotice(ends_batch=True):
                self.interrupted = True
            case BatchDone():
                self.end_clock()
            case _:
                pass

    def end(self, runtime: Runtime, name: str) -> None:
        """Set the batch's number in the history and the number of runs that the history lacks.

        Call this method once the history is complete."""
        self.unrecorded = runtime.missing_in_history(name)
        self.batch, self.started_at = runtime.batch_number(name), runtime.began_at(name) or self.started_at

    @property
    def timing(self) -> Timing:
        runs: Sequence[TimedRun] = MappedSequence(range(len(self.results)), self._timed_at)
        if self.results.are_in_memory:
            runs = tuple(runs)  # they are read several times
        return timing_of(self.took_s * 1000, self.start_up_s * 1000, runs)

    def _timed_at(self, index: int) -> TimedRun:
        run = self.results[index]
        times_ms = (_known(column[index]) for column in self.times_ms)
        return TimedRun(run.suite, run.case_id, run.model, run.repeat, run.status, run.is_fork, *times_ms)

    @property
    def figures(self) -> Sequence[RunSummary]:
        return MappedSequence(range(len(self.results)), self._figures_at)

    def _figures_at(self, index: int) -> RunSummary:
        began_ms, ended_ms = (column[index] for column in self.times_ms)
        return summary_of(self.results[index], began_ms=_known(began_ms), ended_ms=_known(ended_ms))

    @property
    def figures_by_run(self) -> Iterator[tuple[str, RunSummary]]:
        for result, run in zip(self.results, self.figures, strict=True):
            yield result.run_id, run

    @property
    def recorded_as(self) -> str | None:
        """Where the batch is stored in the history, or how many of its runs are not stored.

        It is `None` if the batch is not stored at all."""
        return history_note(self.batch, self.unrecorded)

    def watch(self, plan: Plan) -> EarlyStopping | None:
        """Return the early-stopping state of the plan's batch; `None` if the batch runs every case."""
        if plan.until is None:
            return None
        # This import is lazy, because few plans stop early.
        from workbench.evaluation.early_stop import early_stopping_of_plan

        watch, places = early_stopping_of_plan(plan), plan.places
        for run_id, run in self.figures_by_run:
            if watch is not None:
                watch.add(places[run_id], run)
        return watch

    def report(self, plan: Plan, against: AgainstBaseline | None = None) -> Report:
        """Return the report on the plan's batch.

        Runs that a resumed batch finished earlier are read from the history, which takes seconds for thousands of runs.
        Afterwards, `left_out` has a message about each damaged run. Raises HistoryError."""
        resumed, damaged = plan.resumed, dict[str, None]()
        before: tuple[FinishedRun, ...] = ()
        if resumed is not None and resumed.in_full:
            read = resumed.before.read(lambda why: damaged.update({why: None}))
            before = tuple(FinishedRun(*each) for each in read)
        self.left_out = tuple(damaged)
        planned = PlannedRuns(plan, self.results, before)
        runs: tuple[FinishedRun, ...] | PlannedRuns = planned
        if self.results.are_in_memory:
            runs = tuple(planned)
        return Report(
            runs=runs,
            suites=suites_of(plan.files),
            started_at=self.started_at,
            min_score=plan.min_score,
            interrupted=self.interrupted,
            incomplete=bool(damaged or plan.broken) or (resumed is not None and resumed.left_out),
            broken=broken_suites_of(plan.broken),
            shard=plan.shard_ref,
            batch=self.batch,
            unrecorded=self.unrecorded,
            timing=self.timing,
            watch=self.watch(plan),
            against=against,
            line_of=lines_of(plan.files),
            secrets=plan.program.secrets,
        )


def _known(time_ms: float) -> float | None:
    if math.isnan(time_ms):
        return None
    return time_ms


class Evaluation:
    """A running plan: `async with Evaluation(plan, approval) as evaluation`.

    Iterate over the evaluation to receive events as they happen, or only await `report()`. Each run has a future in
    `runs`. Leaving the block or cancelling the waiting task stops the remaining runs. Suites and settings are not read
    again after the approval.

    Without a `runtime`, the evaluation creates a runtime and closes it at the end. Several evaluations may therefore
    run at the same time in one event loop. With a `runtime`, server starts are reported only to the runtime's listener.
    Without `receives_events`, runs in other processes send only their results."""

    def __init__(
        self,
        plan: Plan,
        approval: Approval,
        *,
        runtime: Runtime | None = None,
        record: Recordings | None = None,
        retries: RetryPolicy = DEFAULT_RETRIES,
        receives_events: bool = True,
    ) -> None:
        self.plan = plan
        self.runs: Mapping[str, asyncio.Future[RunResult]] = {}
        """The futures of the results, by the ids of the planned runs."""
        self._approval = approval
        self._shared = runtime
        self._record = record
        self._retries = retries
        self._receives_events = receives_events
        self._outcome = Outcome()
        self._inbox: Inbox[BatchEvent] = Inbox(self._wake)
        self._events: deque[BatchEvent] = deque()
        self._is_watched: bool | None = None
        """Whether a caller iterates; `None` until it is known."""
        self._closed = False

    async def __aenter__(self) -> Self:
        """Begin the runs.

        Raises HistoryError if the history of a resumed batch cannot be written."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._done = asyncio.Event()
        self.runs = {run.run_id: self._loop.create_future() for run in self.plan.runs}
        runtime = self._shared
        if runtime is None:
            plan = self.plan
            runtime = Runtime(
                self._put,
                plan.program,
                original_pace=plan.original_pace,
                renew_judgements=plan.renew_judgements,
                retries=self._retries,
                history=plan.history,
                receives_events=self._receives_events,
            )
        self._runtime = runtime
        try:
            self._outcome.begin()
            listener = None
            if self._shared is not None:
                listener = self._put
            start = partial(runtime.start, self.plan, self._approval, recordings=self._record, listener=listener)
            self._batch = await _run_blocking(start)
        except BaseException:
            # The runs did not start, so other programs may resume the batch.
            self.plan.release_claim()
            self._done.set()
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the remaining runs, wait until they end, and close the runtime if this evaluation created it."""
        self.stop()
        await self._close()

    async def __aiter__(self) -> AsyncIterator[BatchEvent]:
        """Yield the events of the batch from now on, until its end."""
        self._is_watched = True
        while True:
            while self._events:
                yield self._events.popleft()
            if self._done.is_set():
                return
            self._news.clear()
            await self._news.wait()

    def stop(self) -> None:
        """Stop all unfinished runs, which end as `stopped`. Returns at once."""
        if not self._done.is_set():
            self._outcome.interrupted = True
            self._runtime.stop_batch(self._batch)

    async def report(self) -> Report:
        """Wait until all runs end, and return the report."""
        if self._is_watched is None:
            # If the caller does not iterate, the events of a large batch would only fill the memory.
            self._is_watched = False
            self._events.clear()
        await self._done.wait()
        await self._close()
        outcome = self._outcome
        outcome.end(self._runtime, self._batch)
        return await _run_blocking(partial(outcome.report, self.plan))

    async def _close(self) -> None:
        """Close the runtime if this evaluation created it. Afterwards, the history is complete."""
        if self._closed:
            return
        self._closed = True
        if self._shared is None:
            await _run_blocking(self._runtime.close)
        else:
            await self._done.wait()
            await _run_blocking(self._runtime.flush_history)

    def _put(self, event: BatchEvent) -> None:
        # Waking the event loop for each event would delay the runs, so unread events are dropped.
        if self._is_watched is False and isinstance(event, RunEvent):
            return
        self._inbox.put(event)

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take_events)

    def _take_events(self) -> None:
        for event in self._inbox.take_all():
            self._outcome.on_event(event)
            if self._is_watched is not False:
                self._events.append(event)
            if isinstance(event, RunDone) and not (future := self.runs[event.result.run_id]).done():
                future.set_result(self._outcome.results[-1])
            elif isinstance(event, BatchDone):
                for future in self.runs.values():
                    # This cancels only the futures of runs that failed together with the batch. The futures of finished
                    # runs are done already.
                    future.cancel()
                self._done.set()
        self._news.set()


async def _run_blocking(function: Callable[[], _Result]) -> _Result:
    """Call a blocking function in a thread, and wait for its end even if the caller is cancelled.

    Without the wait, the function would continue in the background after its caller has ended."""
    # A thread cannot be cancelled, so a cancellation is kept until the thread has ended.
    work = asyncio.ensure_future(in_thread(function, name="evaluation"))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return work.result()
