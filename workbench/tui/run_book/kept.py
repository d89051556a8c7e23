"""Reading a history for the screens: each function opens it, reads, and closes it again, on the thread it is called on.

All of them raise HistoryError. SQLite is imported by the first one that is called: not on the app's loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.batches.plan import PlannedRun
from workbench.batches.recorded import run_of_recording, suite_of_recording
from workbench.grading.grade import RunResult
from workbench.history.records import BatchRow, Regrade, RunRow
from workbench.suite.model import Gate
from workbench.trajectory.events import Event
from workbench.trajectory.recording import Recording, RecordingError
from workbench.tui.run_book.record import RunRecord

if TYPE_CHECKING:
    from workbench.history.history import History


RUNS_OF_CASE_MAX = 1_000
"""So many of the latest runs of one case are looked at."""


@dataclass(frozen=True)
class ReadBatches:
    """All batches, the newest first, those that are damaged too. `regraded` says how often each was graded again, of
    those that were; `going` of which ones runs are made now, here or elsewhere."""

    batches: tuple[BatchRow, ...] = ()
    regraded: Mapping[int, int] = field(default_factory=dict)
    going: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ReadBatch:
    """A batch with its runs, as they were graded by `grading`, or when they ran; `is_going`: more of them are made now,
    here or elsewhere."""

    batch: BatchRow
    runs: tuple[RunRow, ...]
    grading: Regrade | None = None
    is_going: bool = False
    gates: Mapping[str, Gate] = field(default_factory=dict)
    """What each suite demanded, by its key, as far as its text can be read."""


@contextmanager
def opened(file: Path) -> Iterator[History]:
    """A history, closed again afterwards."""
    from workbench.history.history import History

    with History(file) as history:
        yield history


def read_batches(file: Path) -> ReadBatches:
    """All batches."""
    with opened(file) as history:
        batches = history.all_batches()
        return ReadBatches(tuple(batches), history.regraded(), _going(file, batches))


def read_going(file: Path, numbers: Iterable[int]) -> tuple[list[BatchRow], frozenset[int]]:
    """Some batches, by their numbers, and of which of them runs are made now."""
    with opened(file) as history:
        batches = [history.batch(f"#{number}") for number in numbers]
        return batches, _going(file, batches)


def read_batch(file: Path, number: int, grading: int | None = None) -> ReadBatch:
    """One batch; `grading` is the id of one of its gradings."""
    with opened(file) as history:
        return _batch(history, file, number, grading)


def read_two(file: Path, before: tuple[int, int | None], after: tuple[int, int | None]) -> tuple[ReadBatch, ReadBatch]:
    """Two batches, each with the id of a grading of it."""
    with opened(file) as history:
        return _batch(history, file, *before), _batch(history, file, *after)


def read_gradings(file: Path, number: int) -> list[tuple[Regrade, tuple[RunRow, ...]]]:
    """How a batch was graded since it ran, with its runs as they came out then."""
    with opened(file) as history:
        return [(grading, tuple(history.runs(number, grading))) for grading in history.gradings(number)]


def read_case(
    file: Path, suite: str, case_id: str
) -> tuple[list[RunRow], Mapping[int, str], Mapping[int, int], Sequence[str]]:
    """The latest runs of a case, the newest first, the names of those batches that have one, how often batches were
    graded again, and of which runs nothing can be read, and why; `suite` is a key."""
    damaged: list[str] = []
    with opened(file) as history:
        runs = history.runs_of_case(suite, case_id, RUNS_OF_CASE_MAX, damaged.append)
        return runs, history.names(), history.regraded(), damaged


def read_recording(file: Path, run: RunRow, grading: Regrade | None = None) -> Recording:
    """One run with all that happened in it, as it was graded by `grading`, or when it ran."""
    with opened(file) as history:
        return history.recording(run, grading)


def _going(file: Path, batches: Iterable[BatchRow]) -> frozenset[int]:
    from workbench.history.claims import claimed

    going_on = (batch.number for batch in batches if batch.ended_at is None and batch.damage is None)
    return frozenset(number for number in going_on if claimed(file, number))


def _batch(history: History, file: Path, number: int, grading: int | None) -> ReadBatch:
    from workbench.history.claims import claimed

    is_claimed = claimed(file, number)  # asked first: once nothing is to come, all that came is read
    # By its number as it is written: a name might look like one.
    batch = history.batch(f"#{number}")
    is_going = batch.ended_at is None and is_claimed
    chosen = next((each for each in history.gradings(number) if each.id == grading), None)
    gates = history.gates(batch, lambda _: None)
    return ReadBatch(batch, tuple(history.runs(number, chosen)), chosen, is_going, gates)


def record_of(recording: Recording) -> RunRecord:
    """A recorded run as it was when it ended.

    Raises RecordingError when its suite, its case or its result cannot be read.
    """
    file = suite_of_recording(recording)
    run = run_of_recording(recording, file)
    if run is None:
        why = f": {file.errors[0].message}" if file.errors else ""
        raise RecordingError(f"{recording.path}: its suite has no case {recording.header.case!r}{why}")
    planned, result = run
    # Saved again, it names the suite that it was cut out of.
    planned = replace(planned, file=replace(file, hash=recording.header.suite.hash))
    return recalled(planned, recording.header.started_at, recording.events, result)


def recalled(planned: PlannedRun, started_at: str, events: Sequence[Event], result: RunResult) -> RunRecord:
    """The record of a run that was made before; `started_at` is ISO 8601."""
    record = RunRecord(planned, recorded=True, started_at=started_at)
    for event in events:
        record.add(event)
    began_ms = datetime.fromisoformat(started_at).timestamp() * 1000 if started_at else None
    took_ms = result.trajectory.duration_ms + result.trajectory.held_ms
    record.finish(result, began_ms, began_ms + took_ms if began_ms is not None else None)
    return record
