"""Runs of the history, read for the screens as records.

Functions with a `file` open, read and close the file in the calling thread, and raise HistoryError."""

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
    from workbench.history.history import History


def read_recording(file: Path, run: RunRow, grading: Regrade | None = None) -> Recording:
    """Return one run with all events, and with the grades of `grading` or else the original grades."""
    with opened(file) as history:
        return history.recording(run, grading)


def read_latest(file: Path, run: RunRow) -> Recording:
    """Return one run with all events and its latest grades."""
    with opened(file) as history:
        return history.recording(run, _latest_grading(history, run.batch))


def _latest_grading(history: History, batch: int) -> Regrade | None:
    gradings = history.gradings(batch)
    if not gradings:
        return None
    return gradings[-1]


def main_causes(file: Path | None, failed: Sequence[RunRow | RunRecord]) -> dict[str, Cause]:
    """Return the main cause of each failed run. Unreadable runs are left out.

    The key of a run of this session is its run id. The key of a row of the history in `file` is `#` and the row's
    id."""
    from workbench.analysis.failures import failures_of

    found: dict[str, Cause] = {}

    def explain(key: str, run: RunRecord) -> None:
        if run.result is None:
            return
        failures = failures_of([(run.result, run.planned.case)]).runs
        if failures:
            found[key] = failures[0].main

    stored: list[RunRow] = []
    for run in failed:
        if isinstance(run, RunRow):
            stored.append(run)
        else:
            explain(run.run_id, run)
    if file is not None and stored:
        with opened(file) as history:
            batches = {run.batch for run in stored}
            gradings = {batch: _latest_grading(history, batch) for batch in batches}
            for row in stored:
                with suppress(DamagedError, RecordingError):
                    explain(f"#{row.id}", record_of(history.recording(row, gradings[row.batch])))
    return found


def record_of(recording: Recording) -> RunRecord:
    """Return a recorded run in its final state.

    Raises RecordingError if the suite, case or result of the run cannot be read."""
    file = suite_of_recording(recording)
    run = run_of_recording(recording, file)
    if run is None:
        why = ""
        if file.errors:
            why = f": {file.errors[0].message}"
        raise RecordingError(f"{recording.path}: its suite has no case {recording.header.case!r}{why}")
    planned, result = run
    # If the run is saved again, it must refer to the original suite.
    planned = replace(planned, file=replace(file, hash=recording.header.suite.hash))
    return recalled(planned, recording.header.started_at, recording.events, result)


def recalled(planned: PlannedRun, started_at: str, events: Sequence[Event], result: RunResult) -> RunRecord:
    """Rebuild the record of an earlier run from its events. `started_at` is ISO 8601, "" if unknown."""
    record = RunRecord(planned, recorded=True, started_at=started_at)
    for event in events:
        record.add(event)
    if started_at:
        began_ms = datetime.fromisoformat(started_at).timestamp() * 1000
        record.finish(result, began_ms, began_ms + result.trajectory.duration_ms + result.trajectory.held_ms)
    else:
        record.finish(result)
    return record
