"""Progress of a real execution as events: not too many of them, and none after the result."""

from __future__ import annotations

import asyncio
import math

from workbench.engine.recorder import Recorder
from workbench.trajectory.events import ExecutionProgress

MIN_INTERVAL_S = 0.1


class ProgressReports:
    """Emits what a server says of one call, at most every `MIN_INTERVAL_S`; what comes sooner waits, and only the last
    of it is kept. To be used on the engine's loop, and closed before the result is emitted."""

    def __init__(self, call_id: str, recorder: Recorder) -> None:
        self._call_id = call_id
        self._recorder = recorder
        self._waiting: ExecutionProgress | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take note of how far the execution is."""
        if self._closed or not math.isfinite(progress):
            return
        total = total if total is not None and math.isfinite(total) else None
        self._waiting = ExecutionProgress(self._call_id, progress, total, message)
        if self._timer is None:
            self._emit()

    def close(self) -> None:
        """Emit what still waits; what comes afterwards is dropped."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._waiting is not None:
            self._recorder.emit(self._waiting)

    def _emit(self) -> None:
        """Emit what waits, and wait for what comes next."""
        self._timer = None
        if self._waiting is not None:
            what, self._waiting = self._waiting, None
            self._timer = asyncio.get_running_loop().call_later(MIN_INTERVAL_S, self._emit)
            self._recorder.emit(what)
