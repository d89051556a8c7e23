"""A history's file while batches are written into it: opened when it is needed, and anew when it is damaged, removed
or replaced meanwhile; the batches that go on are known, and begin anew in another file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from workbench.history.claims import Claim, claim_if_free
from workbench.history.database import Say, open_for_writing, said_of, transaction
from workbench.history.records import DamagedError, NewBatch, ResumedBy
from workbench.history.rows import PackedRun, begin_batch, end_batch, is_batch, keep_run, reopen_batch


@dataclass(eq=False)
class BatchHandle:
    """A batch that is being kept. `number` is how it is called in the history, `None` until that is known; `places` are
    those of its runs by their ids; `started_at` is when it began, ISO 8601, also where it is resumed. `claim` keeps
    others from going on with it; whoever resumes a batch may have claimed it before. `resumed_by` is the command that
    goes on with it."""

    number: int | None = None
    places: dict[str, int] = field(default_factory=dict)
    started_at: str | None = None
    claim: Claim | None = field(default=None, repr=False)
    resumed_by: ResumedBy = "run"

    def release(self) -> None:
        """Let others have the batch."""
        if self.claim is not None:
            self.claim.release()
            self.claim = None


@dataclass(frozen=True)
class BeginBatch:
    """A batch begins, with this plan."""

    handle: BatchHandle
    batch: NewBatch


@dataclass(frozen=True)
class ResumeBatch:
    """A batch that is in the history goes on."""

    handle: BatchHandle


@dataclass(frozen=True)
class WriteRun:
    """A run is over."""

    handle: BatchHandle
    run: PackedRun


@dataclass(frozen=True)
class EndBatch:
    """A batch is over; `ended_at` is ISO 8601."""

    handle: BatchHandle
    ended_at: str


Entry = BeginBatch | ResumeBatch | WriteRun | EndBatch


class OpenHistory:
    """To be used on one thread. `say` is told what becomes of the file."""

    def __init__(self, file: Path, say: Say) -> None:
        self._file = file
        self._say = say
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._suspect = False
        self._going_on: dict[BatchHandle, tuple[str, NewBatch | None]] = {}
        """When each batch began, which tells it from another one of its number, and its plan where it began here."""
        self._written: Counter[BatchHandle] = Counter()
        self.lost: Counter[BatchHandle] = Counter()
        """How many runs were written here, and went with a file that was taken away."""

    def write(self, entry: Entry) -> None:
        """Write an entry, all of it or nothing. Raises HistoryError when it may work later, and anything else when it
        never will."""
        try:
            self._write(entry)
        except DamagedError:
            # What SQLite has stumbled over it will find when it looks for it, and the file is set aside.
            self.close()
            self._suspect = True
            self._write(entry)

    def close(self) -> None:
        """Let go of the file; it is opened again when something is written."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _write(self, entry: Entry) -> None:
        connection = self._opened()
        handle = entry.handle
        with said_of(self._file), _never_again():
            match entry:
                case BeginBatch(batch=batch):
                    self._begin(connection, handle, batch)
                case ResumeBatch():
                    with transaction(connection):
                        self._going_on[handle] = (reopen_batch(connection, _number(handle)), None)
                case WriteRun(run=run):
                    with transaction(connection):
                        keep_run(connection, _number(handle), handle.places[run.run_id], run)
                    self._written[handle] += 1
                case EndBatch(ended_at=ended_at):
                    with transaction(connection):
                        end_batch(connection, _number(handle), ended_at)
                    handle.release()
                    self._going_on.pop(handle, None)

    def _begin(self, connection: sqlite3.Connection, handle: BatchHandle, batch: NewBatch) -> None:
        handle.release()
        try:
            with transaction(connection):
                number = begin_batch(connection, self._file, batch)
                # Nobody may see it as one that was cut off. Whoever has it claimed claimed it in a file that was here
                # before this one.
                handle.claim = claim_if_free(self._file, number)
        except BaseException:
            handle.release()
            raise
        handle.number = number
        self._going_on[handle] = (batch.started_at, batch)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and _identity(self._file) != self._identity:
            self.close()
            self._say(f"the history {self._file} was removed or replaced: what comes next is kept under that name anew")
        if self._connection is None:
            self._connection = open_for_writing(self._file, self._say, suspect=self._suspect)
            self._suspect = False
            self._identity = _identity(self._file)
            try:
                with said_of(self._file):
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
            if batch is not None:
                self._begin(connection, handle, batch)
            else:
                handle.number = None


@contextmanager
def _never_again() -> Iterator[None]:
    """What SQLite cannot take, now or later, is no trouble with the file."""
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
