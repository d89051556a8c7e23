"""The run pane: the runs of a case to choose from, the lines of one, and the search in them."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from workbench.tui.state.run_record import RunRecord
from workbench.tui.state.source import Message
from workbench.tui.widgets.bars import PaneTitle
from workbench.tui.widgets.run_choice import RunChoice
from workbench.tui.widgets.run_list import RunList
from workbench.tui.widgets.search_bar import SearchBar


class RunPane(Vertical):
    """Shows a run. The search bar is there only while one searches."""

    def __init__(self, widget_id: str | None = None, *, classes: str | None = None) -> None:
        super().__init__(id=widget_id, classes=classes)
        self._last_search = ""

    def compose(self) -> ComposeResult:
        yield PaneTitle("run-title")
        yield RunChoice("choice")
        yield RunList("run")

    def on_mount(self) -> None:
        self.query_one("#choice").display = False

    @property
    def run_list(self) -> RunList:
        """The lines of the run."""
        return self.query_one("#run", RunList)

    def show(self, runs: Sequence[RunRecord], chosen: int, message: Message) -> None:
        """Show one of the runs of a case, or a message where there is none."""
        self.query_one("#choice", RunChoice).show(runs, chosen)
        self.run_list.show(runs[chosen].view if runs else None, message)
        self._say_found()

    # Searching

    @property
    def searching(self) -> bool:
        """Whether the search bar is there."""
        return bool(self.query(SearchBar))

    def search(self) -> None:
        """Let a text be typed that is searched for; the last one stands there already."""
        for bar in self.query(SearchBar):
            bar.take_focus()
            return
        self.mount(SearchBar(self._last_search, widget_id="run-search"))
        self.run_list.look_for(self._last_search)
        self.call_after_refresh(self._say_found)

    def find(self, step: int) -> None:
        """Go to the next match, or with -1 to the one before; without a search, begin one."""
        if not self.searching:
            self.search()
        self.run_list.go_to_match(step)
        self._say_found()

    def end_search(self) -> None:
        """Take the search bar away; the cursor stays where it is."""
        for bar in self.query(SearchBar):
            bar.remove()
        self.run_list.look_for("")
        self.run_list.focus()

    @on(SearchBar.Changed)
    def _search_changed(self, event: SearchBar.Changed) -> None:
        event.stop()
        self._last_search = event.text
        self.run_list.look_for(event.text)
        self._say_found()

    @on(SearchBar.Stepped)
    def _search_stepped(self, event: SearchBar.Stepped) -> None:
        event.stop()
        self.find(event.step)

    @on(SearchBar.Closed)
    def _search_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self.end_search()

    @on(RunList.News)
    def _say_found(self) -> None:
        for bar in self.query(SearchBar):
            bar.say(self.run_list.found)
