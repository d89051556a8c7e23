"""Writes batches into a history while they go on, on a thread of its own, so that a slow disk delays no run.

Runs that end shortly after one another are committed together."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import islice, takewhile
from pathlib import Path

from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.history.claims import Claim, claim, claim_if_free
from workbench.history.database import Say, as_history_errors, open_for_writing, transaction, unhurried
from workbench.history.packing import PackedRun, RunPacker, RunRedaction
from workbench.history.records import DamagedError, DoneRun, HistoryError, NewBatch, ResumedBy, resumed_by
from workbench.history.rows import (
    NewPlan,
    end_batch,
    is_batch,
    plan_runs,
    planned_runs,
    reopen_batch,
    start_batch,
    write_run,
)
from workbench.numerals import count_text

# A history's file while batches are written to it: opened on demand, and again when it is damaged, removed or
# replaced meanwhile. Batches that are going on begin again in the new file.

PLANNED_AT_ONCE = 5_000
"""So many runs of a plan are written in one step: other programs wait for it."""


@dataclass(eq=False)
class BatchHandle:
    """A batch being recorded.

    `number` identifies it in the history, `None` until it is written; `places` are the places of its runs by their ids;
    `started_at` is the ISO 8601 time when it began, also where it is resumed. `claim` keeps other programs from
    resuming it; a command that resumes a batch may have claimed it before. `resumed_by` is that command."""

    number: int | None = None
    places: dict[str, int] = field(default_factory=dict)
    started_at: str | None = None
    claim: Claim | None = field(default=None, repr=False)
    resumed_by: ResumedBy = "run"
    _written: bytearray = field(default_factory=bytearray, repr=False)
    """For each place, whether its run was written, as far as one was."""

    def has(self, run_id: str) -> bool:
        """Return whether a run is in the history for certain."""
        place = self.places[run_id]
        return place < len(self._written) and bool(self._written[place])

    def wrote(self, run_id: str) -> None:
        """Note that a run is in the history."""
        place = self.places[run_id]
        self._written.extend(bytes(max(place + 1 - len(self._written), 0)))
        self._written[place] = 1

    def lost(self) -> None:
        """No run is in the history any more."""
        self._written.clear()

    def release(self) -> None:
        """Release the batch for others."""
        if self.claim is not None:
            self.claim.release()
            self.claim = None


@dataclass(frozen=True)
class BeginBatch:
    """Start a batch with this plan."""

    handle: BatchHandle
    batch: NewBatch


@dataclass(frozen=True)
class ResumeBatch:
    """Continue a batch of the history."""

    handle: BatchHandle


@dataclass(frozen=True)
class WriteRun:
    """Write a finished run."""

    handle: BatchHandle
    run: PackedRun


@dataclass(frozen=True)
class EndBatch:
    """End a batch; `ended_at` is ISO 8601."""

    handle: BatchHandle
    ended_at: str


Entry = BeginBatch | ResumeBatch | WriteRun | EndBatch


class OpenHistory:
    """Use it on one thread.

    `say` is told when the file is renamed or made again."""

    def __init__(self, file: Path, say: Say) -> None:
        self._file = file
        self._say = say
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._suspect = False
        self._going_on: dict[BatchHandle, tuple[str, NewBatch | None]] = {}
        """When each batch began, which distinguishes it from another one of its number, and its plan where it began
        here."""
        self._written: Counter[BatchHandle] = Counter()
        self.lost: Counter[BatchHandle] = Counter()
        """How many runs were written here and lost with a file that was removed."""

    def write(self, entries: Sequence[Entry]) -> None:
        """Write an entry, or several runs, completely or not at all.

        Raises HistoryError when it may work later, and any other exception when it never will."""
        try:
            self._write(entries)
        except DamagedError:
            # SQLite will find the damage when it checks the file, which is then renamed.
            self.close()
            self._suspect = True
            self._write(entries)

    def close(self) -> None:
        """Close the file.

        It is opened again for the next entry."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _write(self, entries: Sequence[Entry]) -> None:
        connection = self._opened()
        with as_history_errors(self._file), _never_again():
            match entries:
                case [BeginBatch(handle=handle, batch=batch)]:
                    self._begin(connection, handle, batch)
                    return
            with transaction(connection):
                for entry in entries:
                    self._write_within(connection, entry)
        for entry in entries:
            match entry:
                case WriteRun(handle=handle, run=run):
                    self._written[handle] += 1
                    handle.wrote(run.run_id)
                case EndBatch(handle=handle):
                    handle.release()
                    self._going_on.pop(handle, None)

    def _write_within(self, connection: sqlite3.Connection, entry: Entry) -> None:
        """Write an entry within a transaction."""
        handle = entry.handle
        match entry:
            case ResumeBatch():
                self._going_on[handle] = (reopen_batch(connection, _number(handle)), None)
            case WriteRun(run=run):
                write_run(connection, _number(handle), handle.places[run.run_id], run)
            case EndBatch(ended_at=ended_at):
                end_batch(connection, _number(handle), ended_at)
            case BeginBatch():
                raise TypeError("a batch begins in a transaction of its own")

    def _begin(self, connection: sqlite3.Connection, handle: BatchHandle, batch: NewBatch) -> None:
        """Write the plan of a batch: a large one in steps, between which other programs write.

        After a failure it continues from the last step."""
        plan = NewPlan(connection, self._file, batch)
        if handle.number is None or not is_batch(connection, handle.number, batch.started_at):
            self._start(connection, handle, plan)
        assert handle.number is not None
        for start in range(planned_runs(connection, handle.number), len(batch.runs), PLANNED_AT_ONCE):
            with unhurried(), transaction(connection):
                plan_runs(connection, handle.number, plan, start, start + PLANNED_AT_ONCE)

    def _start(self, connection: sqlite3.Connection, handle: BatchHandle, plan: NewPlan) -> None:
        """Write a batch with the first runs of its plan."""
        handle.release()
        try:
            with transaction(connection):
                number = start_batch(connection, plan)
                plan_runs(connection, number, plan, 0, PLANNED_AT_ONCE)
                # It must never look like one that was cut off. Where another program has this number claimed, that is
                # of a file that was here before.
                handle.claim = claim_if_free(self._file, number)
        except BaseException:
            handle.release()
            raise
        handle.number = number
        self._going_on[handle] = (plan.batch.started_at, plan.batch)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and _identity(self._file) != self._identity:
            self.close()
            self._say(f"the history {self._file} was removed or replaced: a new one was started under that name")
        if self._connection is None:
            self._connection = open_for_writing(self._file, self._say, suspect=self._suspect)
            self._suspect = False
            self._identity = _identity(self._file)
            try:
                with as_history_errors(self._file):
                    self._begin_anew(self._connection)
            except BaseException:
                self.close()
                raise
        return self._connection

    def _begin_anew(self, connection: sqlite3.Connection) -> None:
        for handle, (started_at, batch) in self._going_on.items():
            if handle.number is not None and is_batch(connection, handle.number, started_at):
                continue
            self.lost[handle] += self._written.pop(handle, 0)
            handle.lost()
            if batch is not None:
                self._begin(connection, handle, batch)
            else:
                handle.number = None


@contextmanager
def _never_again() -> Iterator[None]:
    """Raise for a value that SQLite can never store, which is no problem of the file."""
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
        raise LookupError("its batch is not in it")
    return handle.number


__all__ = ["MAX_AT_ONCE", "BatchHandle", "HistoryWriter"]

_logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 6.0
"""How long the end of the program waits for unwritten entries, in seconds."""

RETRY_S = 1.0
"""How long to wait after a failed write before the next attempt, in seconds: an attempt takes a while itself."""


LOOK_S = 1.0
"""How often a waiting thread checks whether the writer is still alive, in seconds."""

GATHER_S = 0.05
"""How long a run waits for others that are committed with it, in seconds: each commit waits for the disk."""

MAX_AT_ONCE = 64
"""How many runs are committed together at most."""


@dataclass(frozen=True)
class _Done:
    """A finished run, which may be compressed already."""

    handle: BatchHandle
    run: DoneRun | PackedRun
    settled: Future[None]


class HistoryWriter:
    """One history that is written to for as long as the program runs.

    No failure stops a run: `say` is told once, on the writer's thread, and a failed entry is tried again with the
    next one, and at the end. Waiting entries are in memory, compressed. Usable from any thread."""

    def __init__(self, file: Path, say: Say) -> None:
        self.file = file
        self._say = say
        self._given: queue.SimpleQueue[Entry | _Done | threading.Event | None] = queue.SimpleQueue()
        self._in_a_hurry = threading.Event()
        """Whether something was given that is not to wait for more runs."""
        self._packers: dict[BatchHandle, RunPacker] = {}
        self._waiting: deque[Entry] = deque()
        """Entries that are not written so far, in order."""
        self._alone = 0
        """How many of them, from the first, are written each by itself: together they could not be written."""
        self._settling: list[threading.Event] = []
        self._runs_waiting: list[Future[None]] = []
        """Futures of entries whose callers wait for them to be written."""
        self._beginning: dict[BatchHandle, Future[None]] = {}
        """Futures of callers that wait until resuming their batch is written."""
        self._runs_given: Counter[BatchHandle] = Counter()
        """For every batch, 0 at first."""
        self._runs_written: Counter[BatchHandle] = Counter()
        self._open = OpenHistory(self.file, self._tell)
        self._said: set[str] = set()
        self._failed_at: float | None = None
        self._closing_at: float | None = None
        self._thread = threading.Thread(target=self._write, name="history", daemon=True)
        self._thread.start()

    def begin(self, batch: NewBatch, redaction: RunRedaction | None = None) -> BatchHandle:
        """Record a new batch: its plan is written at once.

        `redaction` redacts its runs, on the writer's thread."""
        places = {}
        for place, run in zip(batch.places, batch.runs, strict=True):
            places[run.run_id] = place
        handle = BatchHandle(places=places, started_at=batch.started_at, resumed_by=resumed_by(batch.settings))
        self._runs_given[handle] = 0
        self._packers[handle] = RunPacker(redaction)
        self._give(BeginBatch(handle, batch))
        return handle

    def resume(self, handle: BatchHandle, redaction: RunRedaction | None = None) -> None:
        """Record further runs of an existing batch; blocks until that is written.

        `handle` has its number, and the places of the runs to come, which `redaction` redacts. Raises HistoryError if a
        program already continues that batch, or it cannot be written: its runs would be made for the history alone."""
        if handle.claim is None and handle.number is not None:
            handle.claim = claim(self.file, handle.number)
        begun = self._beginning[handle] = Future()
        self._packers[handle] = RunPacker(redaction)
        self._give(ResumeBatch(handle))
        try:
            while not wait((begun,), LOOK_S).done and self._thread.is_alive():
                pass
            if not begun.done():
                raise HistoryError(f"the history {self.file} is no longer written: the program is quitting")
            begun.result()
        except HistoryError:
            handle.release()
            raise

    def write_run(self, handle: BatchHandle, run: DoneRun | PackedRun) -> Future[None]:
        """Record a finished run and return at once.

        Call it for all runs of one batch on one thread.

        The future is done when the run is written, or when waiting is of no use: unwritten runs are lost when the
        program is killed. It cannot be cancelled."""
        settled: Future[None] = Future()
        settled.set_running_or_notify_cancel()
        if self._failed_at is not None or self._closing_at is not None:
            settled.set_result(None)
        self._runs_given[handle] += 1
        self._given.put(_Done(handle, run, settled))
        if self._given.qsize() >= MAX_AT_ONCE:
            self._in_a_hurry.set()
        return settled

    def end(self, handle: BatchHandle, ended_at: str) -> None:
        """Record the end of a batch."""
        self._give(EndBatch(handle, ended_at))

    def missing(self, handle: BatchHandle) -> int:
        """Return how many of a batch's recorded runs are not in the history, as far as is known."""
        return self._runs_given[handle] - self._runs_written[handle] + self._open.lost[handle]

    def settle(self, timeout_s: float) -> bool:
        """Wait until everything recorded so far is written.

        Returns whether it was. Blocks."""
        written = threading.Event()
        self._give(written)
        return self._thread.is_alive() and written.wait(timeout_s)

    def close(self) -> bool:
        """Write the rest.

        Returns whether all of it could be written. Blocks for some seconds at most; may be called more than once."""
        if self._closing_at is None:
            self._closing_at = time.monotonic()
            self._give(None)
            self._thread.join(CLOSE_TIMEOUT_S)
            if self._thread.is_alive():
                self._tell_what_is_missing()
        return not self._thread.is_alive() and not self._waiting and self._runs_given == self._runs_written

    def _give(self, given: Entry | threading.Event | None) -> None:
        """Give the thread its next entries at once."""
        self._given.put(given)
        self._in_a_hurry.set()

    def _write(self) -> None:
        file = self._open
        goes_on = True
        while goes_on:
            goes_on = self._take()
            may_retry = self._closing_at is None and time.monotonic() >= (self._failed_at or 0.0) + RETRY_S
            if goes_on and (self._failed_at is None or may_retry or self._beginning):
                self._write_waiting(file)
            self._let_go_on()
        # What has failed since the end began would only fail again, and take time.
        if self._failed_at is None or self._closing_at is None or self._failed_at < self._closing_at:
            self._write_waiting(file)
        self._tell_what_is_missing()
        file.close()
        for handle in tuple(self._runs_given):
            handle.release()

    def _take(self) -> bool:
        """Wait for entries and take all there are.

        Returns whether more may come."""
        given = self._given.get()
        if isinstance(given, _Done):
            self._in_a_hurry.wait(GATHER_S)
        self._in_a_hurry.clear()
        while given is not None:
            if isinstance(given, threading.Event):
                self._settling.append(given)
            else:
                if isinstance(given, _Done) and not given.settled.done():
                    self._runs_waiting.append(given.settled)
                if (entry := self._packed(given)) is not None:
                    self._waiting.append(entry)
            try:
                given = self._given.get_nowait()
            except queue.Empty:
                return True
        return False

    def _let_go_on(self) -> None:
        """Release waiting callers: their entries are written, or cannot be for now."""
        while self._runs_waiting:
            self._runs_waiting.pop().set_result(None)

    def _packed(self, given: Entry | _Done) -> Entry | None:
        if not isinstance(given, _Done):
            return given
        if isinstance(given.run, PackedRun):
            return WriteRun(given.handle, given.run)
        try:
            packed = self._packers[given.handle].packed(given.run)
        except (TypeError, ValueError, RecursionError) as error:
            self._leave_out(error)
            return None
        if packed is None:
            self._runs_written[given.handle] += 1
            return None
        return WriteRun(given.handle, packed)

    def _write_waiting(self, file: OpenHistory) -> None:
        while self._waiting:
            entries = self._next_entries()
            try:
                file.write(entries)
            except HistoryError as error:
                self._refuse_to_go_on(error)
                if not self._waiting:
                    break
                self._failed_at = time.monotonic()
                self._tell(f"{error}; what is not stored yet is tried again")
                return
            except Exception as error:
                if len(entries) > 1:
                    self._alone = len(entries)
                    continue
                _logger.exception("an entry was left out of the history %s", self.file)
                self._give_up(entries[0], error)
            else:
                for entry in entries:
                    self._count(entry)
            for _ in entries:
                self._waiting.popleft()
            self._alone = max(self._alone - len(entries), 0)
        if self._failed_at is not None:
            self._failed_at = None
            self._tell(f"the history {self.file} can be written again: everything that waited is stored")
        while self._settling:
            self._settling.pop().set()

    def _next_entries(self) -> list[Entry]:
        """Return the first entry that waits, or the runs that are committed together."""
        runs = list(takewhile(lambda entry: isinstance(entry, WriteRun), islice(self._waiting, MAX_AT_ONCE)))
        if len(runs) > 1 and not self._alone:
            return runs
        return [self._waiting[0]]

    def _count(self, entry: Entry) -> None:
        """Count an entry as written."""
        self._runs_written[entry.handle] += isinstance(entry, WriteRun)
        if isinstance(entry, ResumeBatch):
            self._runs_given[entry.handle] = 0
            self._beginning.pop(entry.handle).set_result(None)

    def _give_up(self, entry: Entry, error: Exception) -> None:
        """Give up an entry that can never be written."""
        if isinstance(entry, ResumeBatch):
            self._beginning.pop(entry.handle).set_exception(self._cannot_go_on(entry, error))
        else:
            self._leave_out(error)

    def _refuse_to_go_on(self, error: HistoryError) -> None:
        """Nothing can be written for now: batches that are about to be resumed are refused."""
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
        """Drop an entry that can never be written, and continue with the rest."""
        self._tell(f"the history {self.file} cannot store everything: {_why(error)}")

    def _tell_what_is_missing(self) -> None:
        missing: Counter[tuple[int | None, ResumedBy]] = Counter()
        for handle in tuple(self._runs_given):
            missing[handle.number, handle.resumed_by] += self.missing(handle)
        for (number, command), runs in (+missing).items():
            message = f"1 run{_of(number)} is" if runs == 1 else f"{count_text(runs)} runs{_of(number)} are"
            self._tell(f"{message} not in the history {self.file}{self._way_out(number, command)}")

    def _way_out(self, number: int | None, command: ResumedBy) -> str:
        if number is None:
            return ""
        return f": 'workbench {command} --resume {number}{history_option(self.file)}' runs what is missing"

    def _tell(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            _logger.error("%s", message)
            self._say(message)


def _why(error: Exception) -> str:
    if isinstance(error, LookupError):
        return f"{error}"
    return f"{type(error).__name__}: {error}"


def _of(number: int | None) -> str:
    return "" if number is None else f" of batch {number}"
