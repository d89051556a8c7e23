"""The clock in titles while runs are active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from textual.timer import Timer

from workbench.tui.run_book.book import RunBook


class StartTimer(Protocol):
    """Starts a timer that calls a function periodically, until it is stopped or the main screen is gone."""

    def __call__(self, interval: float, callback: Callable[[], None]) -> Timer: ...


class SecondHand:
    """Calls `moved` every second while runs are active, except while everything waits for the user, so that nothing is
    drawn then."""

    def __init__(self, book: RunBook, start: StartTimer, moved: Callable[[], None]) -> None:
        self._book = book
        self._start = start
        self._moved = moved
        self._timer: Timer | None = None

    def follow(self) -> None:
        """Start or stop the timer for the present state of runs."""
        book = self._book
        counts = book.counts()
        waits = 0 < counts.running == counts.held + counts.asking
        going = book.progress().under_way and not waits
        if going and self._timer is None:
            self._timer = self._start(1.0, self._moved)
        elif not going and self._timer is not None:
            self._timer.stop()
            self._timer = None
