"""What Ctrl+C does while a command line starts and ends: there is nothing to stop then, and a traceback helps nobody."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from workbench.evaluation.exit_codes import INTERRUPTED


def end_at_interrupt() -> None:
    """Have Ctrl+C end this process at once, unless the caller ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Have Ctrl+C raise KeyboardInterrupt for a while, in a process that it would end."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        end_at_interrupt()


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
