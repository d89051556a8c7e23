"""The time that runs on in titles while runs go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.timer import Timer

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class SecondHand:
    """Calls `moved` every second while something runs, and not while everything waits for a person, so that nothing is
    drawn then."""

    def __init__(self, app: Workbench, moved: Callable[[], None]) -> None:
        self._app = app
        self._moved = moved
        self._timer: Timer | None = None

    def follow(self) -> None:
        """Go or stand, as the runs are now."""
        book = self._app.main.book
        counts = book.counts()
        waits = 0 < counts.running == counts.held + counts.asking
        going = book.progress().under_way and not waits
        if going and self._timer is None:
            self._timer = self._app.main.set_interval(1.0, self._moved)  # ends with the screen
        elif not going and self._timer is not None:
            self._timer.stop()
            self._timer = None
