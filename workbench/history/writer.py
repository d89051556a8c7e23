"""Writes running batches into a history. The writer has its own thread, so that a slow disk does not delay runs.

Runs that end at nearly the same time are committed together."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import islice, takewhile
from pathlib import Path

from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.history.claims import Claim, claim, claim_if_free
from workbench.history.database import ReportProblem, as_history_errors, open_for_writing, transaction, yielding_step
from workbench.history.packing import PackedRun, RunPacker, RunRedaction
from workbench.history.records import DamagedError, HistoryError, NewBatch, ResumedBy, RunWithEvents, resumed_by
from workbench.history.rows import (
    NewPlan,
    SharedTexts,
    end_batch,
    is_batch,
    plan_runs,
    planned_runs,
    reopen_batch,
    start_batch,
    write_run,
)
from workbench.numerals import count_text

# Other programs cannot write during a step, so steps must be short.
MAX_PLANNED_PER_STEP = 5_000
"""The number of planned runs that one step writes."""


@dataclass(eq=False)
class BatchHandle:
    """A batch that is being recorded.

    `number` is the batch's number in the history, `None` until the batch is written. `places` maps run ids to positions
    in the plan. `started_at` is the ISO 8601 time when the batch first began. `claim` keeps other programs from
    resuming the batch. `resumed_by` is the command that resumes it."""

    number: int | None = None
    places: dict[str, int] = field(default_factory=dict)
    started_at: str | None = None
    claim: Claim | None = field(default=None, repr=False)
    resumed_by: ResumedBy = "run"
    _written: bytearray = field(default_factory=bytearray, repr=False)
    """One byte per place in the plan, 1 if the place's run was written. The array ends at the last written place."""

    def is_written(self, run_id: str) -> bool:
        place = self.places[run_id]
        return place < len(self._written) and bool(self._written[place])

    def mark_written(self, run_id: str) -> None:
        place = self.places[run_id]
        self._written.extend(bytes(max(place + 1 - len(self._written), 0)))
        self._written[place] = 1

    def mark_all_lost(self) -> None:
        """Mark all runs as not stored, because the file with them was removed."""
        self._written.clear()

    def release(self) -> None:
        """Let other programs claim the batch."""
        if self.claim is not None:
            self.claim.release()
            self.claim = None


@dataclass(frozen=True)
class BeginBatch:
    """An entry for the writer: write a new batch with its plan."""

    handle: BatchHandle
    batch: NewBatch


@dataclass(frozen=True)
class ResumeBatch:
    """An entry for the writer: reopen a batch that the history already has."""

    handle: BatchHandle


@dataclass(frozen=True)
class WriteRun:
    """An entry for the writer: write a finished run."""

    handle: BatchHandle
    run: PackedRun


@dataclass(frozen=True)
class EndBatch:
    """An entry for the writer: mark a batch as ended. `ended_at` is an ISO 8601 time."""

    handle: BatchHandle
    ended_at: str


Entry = BeginBatch | ResumeBatch | WriteRun | EndBatch


class OpenHistory:
    """The file of a history to which batches are written. The file is opened on demand.

    The file may be damaged, removed or replaced while it is open. It is then opened or created again, and `report` is
    called with a message. A new batch that is running continues in the new file, without its earlier results. Use this
    object on one thread."""

    def __init__(self, file: Path, report: ReportProblem) -> None:
        self._file = file
        self._report = report
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._suspect = False
        self._running: dict[BatchHandle, tuple[str, NewBatch | None]] = {}
        """The start time of each running batch, and its plan if it is new.

        Numbers of batches are not unique across files, so the start time distinguishes batches of the same number."""
        self._written: Counter[BatchHandle] = Counter()
        self.lost: Counter[BatchHandle] = Counter()
        """The numbers of runs that were written and then lost with a removed file."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Write one entry, or several finished runs, completely or not at all.

        Raises HistoryError if a later attempt may succeed. Other exceptions mean that no attempt can succeed."""
        try:
            self._write(entries)
        except DamagedError:
            # The file may be damaged. With `_suspect`, opening it checks it completely, and renames a damaged file.
            self.close()
            self._suspect = True
            self._write(entries)

    def close(self) -> None:
        """Close the file.

        The next entry opens the file again."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _write(self, entries: Sequence[Entry]) -> None:
        connection = self._opened()
        with as_history_errors(self._file), _as_value_error():
            match entries:
                case [BeginBatch(handle=handle, batch=batch)]:
                    self._begin(connection, handle, batch)
                    return
            with transaction(connection):
                shared = SharedTexts(connection)
                for entry in entries:
                    self._write_within(connection, entry, shared)
        for entry in entries:
            match entry:
                case WriteRun(handle=handle, run=run):
                    self._written[handle] += 1
                    handle.mark_written(run.run_id)
                case EndBatch(handle=handle):
                    handle.release()
                    self._running.pop(handle, None)

    def _write_within(self, connection: sqlite3.Connection, entry: Entry, shared: SharedTexts) -> None:
        handle = entry.handle
        match entry:
            case ResumeBatch():
                self._running[handle] = (reopen_batch(connection, _number(handle)), None)
            case WriteRun(run=run):
                write_run(connection, _number(handle), handle.places[run.run_id], run, shared)
            case EndBatch(ended_at=ended_at):
                end_batch(connection, _number(handle), ended_at)
            case BeginBatch():
                raise TypeError("a batch must begin in its own transaction")

    def _begin(self, connection: sqlite3.Connection, handle: BatchHandle, batch: NewBatch) -> None:
        """Write the plan of a batch in steps, so that other programs can write in between.

        If a call fails, the next call continues after the last complete step."""
        plan = NewPlan(connection, self._file, batch)
        if handle.number is None or not is_batch(connection, handle.number, batch.started_at):
            self._start(connection, handle, plan)
        assert handle.number is not None
        for start in range(planned_runs(connection, handle.number), len(batch.runs), MAX_PLANNED_PER_STEP):
            with yielding_step(), transaction(connection):
                plan_runs(connection, handle.number, plan, start, start + MAX_PLANNED_PER_STEP)

    def _start(self, connection: sqlite3.Connection, handle: BatchHandle, plan: NewPlan) -> None:
        """Write a batch with the first runs of its plan."""
        handle.release()
        try:
            with transaction(connection):
                number = start_batch(connection, plan)
                plan_runs(connection, number, plan, 0, MAX_PLANNED_PER_STEP)
                # The claim precedes the commit, because other programs would treat a batch without a claim as
                # interrupted. If the number is already claimed, the claim belongs to an earlier history file of the
                # same name.
                handle.claim = claim_if_free(self._file, number)
        except BaseException:
            handle.release()
            raise
        handle.number = number
        self._running[handle] = (plan.batch.started_at, plan.batch)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and _identity(self._file) != self._identity:
            self.close()
            self._report(f"the history {self._file} was removed or replaced: a new one was started under that name")
        if self._connection is None:
            self._connection = open_for_writing(self._file, self._report, suspect=self._suspect)
            self._suspect = False
            self._identity = _identity(self._file)
            try:
                with as_history_errors(self._file):
                    self._restart_batch(self._connection)
            except BaseException:
                self.close()
                raise
        return self._connection

    def _restart_batch(self, connection: sqlite3.Connection) -> None:
        for handle, (started_at, batch) in self._running.items():
            if handle.number is not None and is_batch(connection, handle.number, started_at):
                continue
            self.lost[handle] += self._written.pop(handle, 0)
            handle.mark_all_lost()
            if batch is not None:
                self._begin(connection, handle, batch)
            else:
                handle.number = None


@contextmanager
def _as_value_error() -> Iterator[None]:
    """Convert SQLite's errors about a value to ValueError.

    The same value would fail in every later attempt too."""
    try:
        yield
    except (sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
        raise ValueError(str(error)) from error


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _number(handle: BatchHandle) -> int:
    if handle.number is None:
        raise LookupError("the batch of this run is not in the history")
    return handle.number


__all__ = ["MAX_RUNS_PER_COMMIT", "BatchHandle", "HistoryWriter"]

_logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 6.0
"""The seconds for which the end of the program waits for unwritten entries."""

RETRY_S = 1.0
"""The seconds from a failed write to the next attempt, not including the attempt."""


POLL_INTERVAL_S = 1.0
"""The seconds between two checks of a waiting thread that the writer is still alive."""

# Each commit waits for the disk. Many short runs can be written fast enough only if one commit covers several of them.
GATHER_TIME_S = 0.5
"""The seconds that a finished run waits for more runs to commit together."""

MAX_RUNS_PER_COMMIT = 512
"""The maximum number of runs in one commit."""


@dataclass(frozen=True)
class _Done:
    """A finished run, possibly compressed already. `settled` is the future that `write_run` returned."""

    handle: BatchHandle
    run: RunWithEvents | PackedRun
    settled: Future[None]


class HistoryWriter:
    """The writer of one history. It has its own thread and lasts until the program ends.

    A failure to write does not stop any run. `report` is called once with each message, on the writer's thread. A
    failed entry is retried with the next entry and at the end. Unwritten entries stay in memory, compressed. Any thread
    may use the writer.

    `give_way` is called before each run is packed, unless a caller waits for the writer. It may wait for other threads
    that need the processor."""

    def __init__(self, file: Path, report: ReportProblem, *, give_way: Callable[[], object] = lambda: None) -> None:
        self.file = file
        self._report = report
        self._give_way = give_way
        self._given: queue.SimpleQueue[Entry | _Done | threading.Event | None] = queue.SimpleQueue()
        self._in_a_hurry = threading.Event()
        """Set if a waiting entry should be written without gathering more runs."""
        self._packers: dict[BatchHandle, RunPacker] = {}
        self._waiting: deque[Entry] = deque()
        """Entries that are not written yet, in order."""
        self._alone = 0
        """The number of entries at the front that are written separately, because writing them together failed."""
        self._settling: list[threading.Event] = []
        self._runs_waiting: list[Future[None]] = []
        """The futures of callers that wait for their run to be written."""
        self._beginning: dict[BatchHandle, Future[None]] = {}
        """The futures of callers that wait for their batch to be reopened."""
        self._runs_given: Counter[BatchHandle] = Counter()
        """The number of recorded runs of every batch; a batch has a key from its start on."""
        self._runs_written: Counter[BatchHandle] = Counter()
        self._open = OpenHistory(self.file, self._report_once)
        self._reported: set[str] = set()
        self._failed_at: float | None = None
        self._closing_at: float | None = None
        self._thread = threading.Thread(target=self._write, name="history", daemon=True)
        self._thread.start()

    def begin(self, batch: NewBatch, redaction: RunRedaction | None = None) -> BatchHandle:
        """Record a new batch, and write its plan at once.

        `redaction` redacts the batch's runs, on the writer's thread."""
        places = dict(zip((run.run_id for run in batch.runs), batch.places, strict=True))
        handle = BatchHandle(places=places, started_at=batch.started_at, resumed_by=resumed_by(batch.settings))
        self._runs_given[handle] = 0
        self._packers[handle] = RunPacker(redaction)
        self._enqueue(BeginBatch(handle, batch))
        return handle

    def resume(self, handle: BatchHandle, redaction: RunRedaction | None = None) -> None:
        """Reopen a batch to record further runs, and wait until the history stores that it is running.

        `handle` has the number of the batch and the positions of the further runs in the plan. `redaction` redacts
        these runs. Raises HistoryError if a program is running the batch, or if the history cannot be written."""
        # Wait until this entry is written, because the user resumes a batch only to complete it in the history. If
        # writing failed later, the runs would be paid for in vain.
        if handle.claim is None and handle.number is not None:
            handle.claim = claim(self.file, handle.number)
        begun = self._beginning[handle] = Future()
        self._packers[handle] = RunPacker(redaction)
        self._enqueue(ResumeBatch(handle))
        try:
            while not wait((begun,), POLL_INTERVAL_S).done and self._thread.is_alive():
                pass
            if not begun.done():
                raise HistoryError(f"the history {self.file} is no longer written, because the program is quitting")
            begun.result()
        except HistoryError:
            handle.release()
            raise

    def write_run(self, handle: BatchHandle, run: RunWithEvents | PackedRun) -> Future[None]:
        """Record a finished run, and return at once.

        Call this method for all runs of one batch on one thread.

        The returned future is done when the run is stored. It is also done while the history cannot be written, because
        waiting would not help. A run that is not stored yet is lost if the program is killed. The future cannot be
        cancelled."""
        settled: Future[None] = Future()
        settled.set_running_or_notify_cancel()  # a running future cannot be cancelled
        if self._failed_at is not None or self._closing_at is not None:
            settled.set_result(None)
        self._runs_given[handle] += 1
        self._given.put(_Done(handle, run, settled))
        if self._given.qsize() >= MAX_RUNS_PER_COMMIT:
            self._in_a_hurry.set()
        return settled

    def end(self, handle: BatchHandle, ended_at: str) -> None:
        self._enqueue(EndBatch(handle, ended_at))

    def missing(self, handle: BatchHandle) -> int:
        """Return how many runs of a batch were recorded but are not known to be stored."""
        return self._runs_given[handle] - self._runs_written[handle] + self._open.lost[handle]

    def wait_until_written(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` seconds until all recorded entries are written. Return whether they are."""
        written = threading.Event()
        self._enqueue(written)
        return self._thread.is_alive() and written.wait(timeout_s)

    def close(self) -> bool:
        """Write the waiting entries, and return whether all of them were written.

        Blocks for at most CLOSE_TIMEOUT_S. A second call has no effect."""
        if self._closing_at is None:
            self._closing_at = time.monotonic()
            self._enqueue(None)
            self._thread.join(CLOSE_TIMEOUT_S)
            if self._thread.is_alive():
                self._report_missing_runs()
        return not self._thread.is_alive() and not self._waiting and self._runs_given == self._runs_written

    def _enqueue(self, entry: Entry | threading.Event | None) -> None:
        self._given.put(entry)
        self._in_a_hurry.set()

    def _write(self) -> None:
        file = self._open
        goes_on = True
        while goes_on:
            goes_on = self._take_entries()
            may_retry = self._closing_at is None and time.monotonic() >= (self._failed_at or 0.0) + RETRY_S
            if goes_on and (self._failed_at is None or may_retry or self._beginning):
                self._write_waiting(file)
            self._release_waiting()
        # A write that failed after the program began to quit is not retried, because it would probably fail again.
        if self._failed_at is None or self._closing_at is None or self._failed_at < self._closing_at:
            self._write_waiting(file)
        self._report_missing_runs()
        file.close()
        for handle in tuple(self._runs_given):
            handle.release()

    def _take_entries(self) -> bool:
        """Wait for the next entry, take all queued entries, and return False if the writer is being closed."""
        given = self._given.get()
        is_urgent = isinstance(given, _Done) and self._in_a_hurry.wait(GATHER_TIME_S)
        self._in_a_hurry.clear()
        # Runs that arrive from now on wait for the next commit. Otherwise, a batch that is as fast as the writer would
        # delay the commit until its end.
        entries_left = self._given.qsize()
        batches: dict[BatchHandle, None] = {}
        """The batches with runs that are packed, but not waiting yet."""
        while given is not None:
            if isinstance(given, threading.Event):
                self._settling.append(given)
            elif isinstance(given, _Done):
                if not given.settled.done():
                    self._runs_waiting.append(given.settled)
                if not is_urgent and not self._in_a_hurry.is_set():
                    self._give_way()
                self._pack(given)
                batches[given.handle] = None
            else:
                self._queue_packed(batches)
                self._waiting.append(given)
            if not entries_left:
                break
            entries_left -= 1
            given = self._given.get()
        self._queue_packed(batches)
        return given is not None

    def _release_waiting(self) -> None:
        """Complete the futures of all recorded runs, which are either written or cannot be written at present."""
        while self._runs_waiting:
            self._runs_waiting.pop().set_result(None)

    def _pack(self, done: _Done) -> None:
        packer = self._packers[done.handle]
        try:
            if isinstance(done.run, PackedRun):
                packer.add_packed(done.run)
            elif not packer.add(done.run):
                self._runs_written[done.handle] += 1
        except (TypeError, ValueError, RecursionError) as error:
            self._leave_out(error)

    def _queue_packed(self, batches: dict[BatchHandle, None]) -> None:
        for handle in batches:
            for run in self._packers[handle].all_packed():
                self._waiting.append(WriteRun(handle, run))
        batches.clear()

    def _write_waiting(self, file: OpenHistory) -> None:
        while self._waiting:
            entries = self._next_entries()
            try:
                file.write(entries)
            except HistoryError as error:
                self._reject_resumes(error)
                if not self._waiting:
                    break
                self._failed_at = time.monotonic()
                self._report_once(f"{error}; what is not stored yet is tried again")
                return
            except Exception as error:
                # One of these runs can never be stored. Write each run separately, so that the others are stored.
                if len(entries) > 1:
                    self._alone = len(entries)
                    continue
                _logger.exception("an entry was left out of the history %s", self.file)
                self._drop(entries[0], error)
            else:
                for entry in entries:
                    self._count(entry)
            for _ in entries:
                self._waiting.popleft()
            self._alone = max(self._alone - len(entries), 0)
        if self._failed_at is not None:
            self._failed_at = None
            self._report_once(f"the history {self.file} can be written again: all waiting results are stored")
        while self._settling:
            self._settling.pop().set()

    def _next_entries(self) -> list[Entry]:
        """Return the entries for the next commit: the first waiting runs together, or a single entry."""
        runs = list(takewhile(lambda entry: isinstance(entry, WriteRun), islice(self._waiting, MAX_RUNS_PER_COMMIT)))
        if len(runs) > 1 and not self._alone:
            return runs
        return [self._waiting[0]]

    def _count(self, entry: Entry) -> None:
        self._runs_written[entry.handle] += isinstance(entry, WriteRun)
        if isinstance(entry, ResumeBatch):
            self._runs_given[entry.handle] = 0
            self._beginning.pop(entry.handle).set_result(None)

    def _drop(self, entry: Entry, error: Exception) -> None:
        """Drop an entry that can never be written.

        If the entry resumes a batch, the caller of `resume` gets the error."""
        if isinstance(entry, ResumeBatch):
            self._beginning.pop(entry.handle).set_exception(self._cannot_go_on(entry, error))
        else:
            self._leave_out(error)

    def _reject_resumes(self, error: HistoryError) -> None:
        """Reject batches that wait to be resumed, because nothing can be written at present."""
        for entry in self._waiting:
            if isinstance(entry, ResumeBatch):
                self._beginning.pop(entry.handle).set_exception(error)
        self._waiting = deque(entry for entry in self._waiting if not isinstance(entry, ResumeBatch))

    def _cannot_go_on(self, entry: ResumeBatch, error: Exception) -> HistoryError:
        number = entry.handle.number
        if isinstance(error, LookupError):
            return HistoryError(f"batch {number} is no longer in the history {self.file}: start a new one")
        return HistoryError(f"batch {number} in the history {self.file} cannot continue: {_why(error)}")

    def _leave_out(self, error: Exception) -> None:
        self._report_once(f"the history {self.file} cannot store everything: {_why(error)}")

    def _report_missing_runs(self) -> None:
        missing: Counter[tuple[int | None, ResumedBy]] = Counter()
        for handle in tuple(self._runs_given):
            missing[handle.number, handle.resumed_by] += self.missing(handle)
        # Unary plus on a Counter removes the batches without missing runs.
        for (number, command), runs in (+missing).items():
            message = f"{count_text(runs)} runs{_of(number)} are"
            if runs == 1:
                message = f"1 run{_of(number)} is"
            self._report_once(f"{message} not in the history {self.file}{self._resume_hint(number, command)}")

    def _resume_hint(self, number: int | None, command: ResumedBy) -> str:
        if number is None:
            return ""
        return f": 'workbench {command} --resume {number}{history_option(self.file)}' makes the missing runs"

    def _report_once(self, message: str) -> None:
        if message not in self._reported:
            self._reported.add(message)
            _logger.error("%s", message)
            self._report(message)


def _why(error: Exception) -> str:
    if isinstance(error, LookupError):
        return f"{error}"
    return f"{type(error).__name__}: {error}"


def _of(number: int | None) -> str:
    if number is None:
        return ""
    return f" of batch {number}"
