"""The lines of a run with a search."""

from __future__ import annotations

from textual import on

from workbench.tui.kit.search_bar import SearchedPane
from workbench.tui.trajectory.view import RunList


class SearchedRun(SearchedPane):
    """Shows a run. Composes a `RunList`."""

    @property
    def run_list(self) -> RunList:
        """The lines of the run."""
        return self.query_one(RunList)

    def mark_found(self) -> None:
        self.run_list.look_for(self.searched)
        self.show_found()

    def _go_to_match(self, step: int) -> None:
        self.run_list.go_to_match(step)
        self.show_found()

    def _take_keyboard(self) -> None:
        self.run_list.focus()

    @on(RunList.News)
    def show_found(self) -> None:
        """Update the matches in the search bar."""
        self.say_found(self.run_list.found)
