"""A history's file while batches are written to it: opened on demand, and again when it is damaged, removed or replaced
meanwhile. Batches that are going on begin again in the new file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.history.claims import Claim, claim_if_free
from workbench.history.database import Say, as_history_errors, open_for_writing, transaction, unhurried
from workbench.history.records import DamagedError, NewBatch, ResumedBy
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
from workbench.history.run_packing import PackedRun

PLANNED_AT_ONCE = 5_000
"""So many runs of a plan are written in one step: other programs wait for it."""


@dataclass(eq=False)
class BatchHandle:
    """A batch being recorded. `number` identifies it in the history, `None` until it is written; `places` are the
    places of its runs by their ids; `started_at` is the ISO 8601 time when it began, also where it is resumed. `claim`
    keeps other programs from resuming it; a command that resumes a batch may have claimed it before. `resumed_by` is
    that command."""

    number: int | None = None
    places: dict[str, int] = field(default_factory=dict)
    started_at: str | None = None
    claim: Claim | None = field(default=None, repr=False)
    resumed_by: ResumedBy = "run"
    _written: bytearray = field(default_factory=bytearray, repr=False)
    """For each place, whether its run was written, as far as one was."""

    def has(self, run_id: str) -> bool:
        """Returns whether a run is in the history for certain."""
        place = self.places[run_id]
        return place < len(self._written) and bool(self._written[place])

    def wrote(self, run_id: str) -> None:
        """A run is in the history."""
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
    """Use it on one thread. `say` is told when the file is renamed or made again."""

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
        """Write an entry, or several runs, completely or not at all. Raises HistoryError when it may work later, and
        any other exception when it never will."""
        try:
            self._write(entries)
        except DamagedError:
            # SQLite will find the damage when it checks the file, which is then renamed.
            self.close()
            self._suspect = True
            self._write(entries)

    def close(self) -> None:
        """Close the file. It is opened again for the next entry."""
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
        """A large plan is written in steps, between which other programs write; after a failure, from where it was."""
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
    """Raises for what SQLite can never store, which is no problem of the file."""
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
