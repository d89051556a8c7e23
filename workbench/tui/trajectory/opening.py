"""Opens a single run on a screen of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.tui.kit.stage import Announce, Stage
from workbench.tui.run_book.book import RunBook

if TYPE_CHECKING:
    from collections.abc import Callable

    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.trajectory.screen import TrajectoryScreen


class RunScreens:
    """Creates screens of single runs. `save` saves a run as a recording."""

    def __init__(self, stage: Stage, book: RunBook, save: Callable[[RunRecord, Announce], object]) -> None:
        self._stage = stage
        self._book = book
        self._save = save

    def of(self, record: RunRecord, title: str) -> TrajectoryScreen:
        """Return the screen of a run. `title` describes where the run comes from."""
        from workbench.tui.trajectory.screen import TrajectoryScreen

        return TrajectoryScreen(self._stage, record, title, self._book, self._save)
