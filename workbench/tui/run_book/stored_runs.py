"""Reads runs of a history for the screens, as records.

Functions that take a file open it, read, and close it, on the calling thread, and raise HistoryError."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.engine.plan import PlannedRun
from workbench.engine.recordings import run_of_recording, suite_of_recording
from workbench.grading.grade import RunResult
from workbench.history.records import DamagedError, Regrade, RunRow
from workbench.trajectory.events import Event
from workbench.trajectory.recording import Recording, RecordingError
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.stored_batches import opened

if TYPE_CHECKING:
    from workbench.analysis.causes import Cause


def read_recording(file: Path, run: RunRow, grading: Regrade | None = None) -> Recording:
    """Read one run with all its events, graded by `grading` or as it ran."""
    with opened(file) as history:
        return history.recording(run, grading)


def read_latest(file: Path, run: RunRow) -> Recording:
    """Read one run with all its events, by its latest grades."""
    with opened(file) as history:
        return history.recording(run, next(iter(history.gradings(run.batch)[-1:]), None))


def main_causes(file: Path | None, failed: Sequence[RunRow | RunRecord]) -> dict[str, Cause]:
    """Find out the main causes of failed runs, by the ids of runs of this session, and by #id of rows of the history in
    `file`. Those that cannot be read have none."""
    from workbench.analysis.failures import failures_of

    found: dict[str, Cause] = {}

    def explain(key: str, run: RunRecord) -> None:
        if run.result is not None and (failures := failures_of([(run.result, run.planned.case)]).runs):
            found[key] = failures[0].main

    stored = [run for run in failed if isinstance(run, RunRow)]
    for run in failed:
        if isinstance(run, RunRecord):
            explain(run.run_id, run)
    if file is not None and stored:
        with opened(file) as history:
            regraded = {batch: history.gradings(batch)[-1:] for batch in {run.batch for run in stored}}
            for row in stored:
                grading = next(iter(regraded[row.batch]), None)
                with suppress(DamagedError, RecordingError):
                    explain(f"#{row.id}", record_of(history.recording(row, grading)))
    return found


def record_of(recording: Recording) -> RunRecord:
    """Return a recorded run in its final state.

    Raises RecordingError if its suite, case or result cannot be read."""
    file = suite_of_recording(recording)
    run = run_of_recording(recording, file)
    if run is None:
        why = f": {file.errors[0].message}" if file.errors else ""
        raise RecordingError(f"{recording.path}: its suite has no case {recording.header.case!r}{why}")
    planned, result = run
    # If it is saved again, it refers to the original suite.
    planned = replace(planned, file=replace(file, hash=recording.header.suite.hash))
    return recalled(planned, recording.header.started_at, recording.events, result)


def recalled(planned: PlannedRun, started_at: str, events: Sequence[Event], result: RunResult) -> RunRecord:
    """Return the record of an earlier run.

    `started_at` is ISO 8601."""
    record = RunRecord(planned, recorded=True, started_at=started_at)
    for event in events:
        record.add(event)
    began_ms = datetime.fromisoformat(started_at).timestamp() * 1000 if started_at else None
    took_ms = result.trajectory.duration_ms + result.trajectory.held_ms
    record.finish(result, began_ms, began_ms + took_ms if began_ms is not None else None)
    return record
