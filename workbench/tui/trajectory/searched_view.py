"""The lines of a run, and the search in them."""

from __future__ import annotations

from textual import on
from textual.containers import Vertical

from workbench.tui.kit.search_bar import SearchBar
from workbench.tui.trajectory.view import RunList


class SearchedRun(Vertical):
    """Shows a run. The search bar is there only while one searches. Composes a `RunList`."""

    def __init__(self, widget_id: str | None = None, *, classes: str | None = None) -> None:
        super().__init__(id=widget_id, classes=classes)
        self._last_search = ""

    @property
    def run_list(self) -> RunList:
        """The lines of the run."""
        return self.query_one(RunList)

    @property
    def searching(self) -> bool:
        """Whether the search bar is there."""
        return bool(self.query(SearchBar))

    def search(self) -> None:
        """Let a text be typed that is searched for; the last one stands there already."""
        for bar in self.query(SearchBar):
            bar.take_focus()
            return
        self.mount(SearchBar(self._last_search))
        self.run_list.look_for(self._last_search)
        self.call_after_refresh(self.say_found)

    def find(self, step: int) -> None:
        """Go to the next match, or with -1 to the one before; without a search, begin one."""
        if not self.searching:
            self.search()
        self.run_list.go_to_match(step)
        self.say_found()

    def end_search(self) -> None:
        """Take the search bar away; the cursor stays where it is."""
        self.query(SearchBar).remove()
        self.run_list.look_for("")
        self.run_list.focus()

    @on(SearchBar.Changed)
    def _search_changed(self, event: SearchBar.Changed) -> None:
        event.stop()
        self._last_search = event.text
        self.run_list.look_for(event.text)
        self.say_found()

    @on(SearchBar.Stepped)
    def _search_stepped(self, event: SearchBar.Stepped) -> None:
        event.stop()
        self.find(event.step)

    @on(SearchBar.Closed)
    def _search_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self.end_search()

    @on(RunList.News)
    def say_found(self) -> None:
        """Say in the search bar, if it is there, what is found."""
        for bar in self.query(SearchBar):
            bar.say(self.run_list.found)
