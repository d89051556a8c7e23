"""Times of day whose differences are durations."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


def steady_clock_ms() -> Callable[[], float]:
    """Return a clock of milliseconds since 1970 that agrees with the system's now, and is not set by anybody later."""
    began_ms = time.time() * 1000 - _running_ms()
    return lambda: began_ms + _running_ms()


def _running_ms() -> float:
    """Milliseconds that no change of the time of day moves, and that go on while the machine sleeps, where it can."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    return time.monotonic() * 1000
