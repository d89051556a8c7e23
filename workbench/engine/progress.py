"""Emits the progress of a real execution as events, at a limited rate and never after the result."""

from __future__ import annotations

import asyncio
import math

from workbench.engine.recorder import Recorder
from workbench.trajectory.events import ExecutionProgress

MIN_INTERVAL_SECONDS = 0.1


class ProgressReports:
    """Emits the progress notices of one call, at most one every `MIN_INTERVAL_SECONDS`. Of notices in between, only the
    latest is emitted. Use it on the engine's loop, and close it before the result is emitted."""

    def __init__(self, call_id: str, recorder: Recorder) -> None:
        self._call_id = call_id
        self._recorder = recorder
        self._waiting: ExecutionProgress | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Record a progress notice."""
        if self._closed or not math.isfinite(progress):
            return
        total = total if total is not None and math.isfinite(total) else None
        self._waiting = ExecutionProgress(self._call_id, progress, total, message)
        if self._timer is None:
            self._emit()

    def close(self) -> None:
        """Emit the pending notice, if there is one. Later notices are dropped."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting is not None:
            self._recorder.emit(self._waiting)

    def _emit(self) -> None:
        """Emit the pending notice and start the next interval."""
        self._timer = None
        if self._waiting is not None:
            what, self._waiting = self._waiting, None
            self._timer = asyncio.get_running_loop().call_later(MIN_INTERVAL_SECONDS, self._emit)
            self._recorder.emit(what)
