"""What Ctrl+C does while the program starts and ends, when there is nothing to stop: it ends it without a traceback.

`signal` and `contextlib` are not imported: while they are, nothing could catch an interrupt yet.
"""

from __future__ import annotations

import os
from _signal import SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]


def end_at_interrupt() -> None:
    """Have Ctrl+C end this process at once, unless the caller ignores it."""
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, _end)


class InterruptsRaised:
    """Has Ctrl+C raise KeyboardInterrupt for a while, in a process that it would end."""

    def __enter__(self) -> None:
        self._ended = getsignal(SIGINT) is _end
        if self._ended:
            signal(SIGINT, default_int_handler)

    def __exit__(self, *error: object) -> None:
        if self._ended:
            end_at_interrupt()


def _end(number: int, frame: object) -> None:
    os._exit(128 + number)
