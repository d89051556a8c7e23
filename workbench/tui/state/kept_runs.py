"""Runs that were made before, in a recording or the history, as records of runs that are over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from workbench.batches.plan import PlannedRun
from workbench.batches.recorded import run_of_recording, suite_of_recording
from workbench.grading.grade import RunResult
from workbench.trajectory.events import Event
from workbench.trajectory.recording import Recording, RecordingError
from workbench.tui.state.run_record import RunRecord


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
