"""`workbench run --format jsonl`: what happens in all runs as JSON lines, those of each run making up a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TextIO

from workbench.batches.events import RunEvent
from workbench.batches.plan import PlannedRun
from workbench.batches.recordings import RecordingLines
from workbench.batches.redacting import EventDoor
from workbench.cli.door import warn, write_redacted
from workbench.grading.grade import RunResult
from workbench.trajectory.event_lines import event_to_line


class EventStream:
    """Writes each line as soon as it is known; a run's header comes before its first line."""

    def __init__(self, runs: Sequence[PlannedRun], lines: RecordingLines, stream: TextIO) -> None:
        self._runs = {run.run_id: run for run in runs}
        self._waiting = dict(self._runs)
        self._doors: dict[str, EventDoor] = {}
        self._lines = lines
        self._stream = stream

    def step(self, happened: RunEvent) -> None:
        """Write an event."""
        self._begin(happened.event.run_id)
        run_id = happened.event.run_id
        door = self._doors.get(run_id) or self._doors.setdefault(run_id, self._lines.door())
        for shown in door.take(happened.event):
            self._write(partial(event_to_line, shown))

    def done(self, result: RunResult) -> None:
        """Write what became of a run; for one that never began, that is all there is beside its header."""
        self._begin(result.run_id)
        for shown in self._doors.pop(result.run_id, self._lines.door()).rest():
            self._write(partial(event_to_line, shown))
        self._write(lambda: self._lines.result(self._runs[result.run_id], result))

    def _begin(self, run_id: str) -> None:
        run = self._waiting.pop(run_id, None)
        if run is not None:
            self._write(lambda: self._lines.header(run))

    def _write(self, line: Callable[[], str]) -> None:
        try:
            text = line()
        except (ValueError, TypeError, RecursionError) as error:
            warn(f"a line is missing in the stream, for it cannot be said in JSON: {error}")
        else:
            write_redacted(f"{text}\n", self._stream)
