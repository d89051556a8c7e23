"""A search in the lines of a screen."""

from __future__ import annotations

from textual import on

from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.search_bar import SearchBar
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.kit.stage import Answer
from workbench.tui.lines.spans import plain


class SearchedScreen(SideScreen[Answer]):
    """A screen where `/` searches the lines of the view that has the focus."""

    _looked_for = ""
    _match: int | None = None
    """The line of the current match."""
    _searched: LineView | None = None
    """The view that is searched, while the search bar is open."""

    def do_find(self) -> None:
        """Open the search bar with the last text."""
        if self._searched is None:
            focused = self.focused
            self._searched = focused if isinstance(focused, LineView) else self.query(LineView).first()
            self.mount(SearchBar(self._looked_for), before=self._keys)
        for bar in self.query(SearchBar):
            bar.take_focus()

    def do_find_next(self) -> None:
        """Go to the next match, or begin a search."""
        if self._searched is None:
            self.do_find()
        self._go_to_match(1)

    def do_back(self) -> None:
        """End the search, or leave what is open."""
        if self._searched is not None:
            self._end_search()
        else:
            super().do_back()

    @on(SearchBar.Changed)
    def _search_changed(self, event: SearchBar.Changed) -> None:
        event.stop()
        self._looked_for = event.text
        self._go_to_match(0)

    @on(SearchBar.Stepped)
    def _search_stepped(self, event: SearchBar.Stepped) -> None:
        event.stop()
        self._go_to_match(event.step)

    @on(SearchBar.Closed)
    def _search_closed(self, event: SearchBar.Closed) -> None:
        event.stop()
        self._end_search()

    def _end_search(self) -> None:
        view, self._searched, self._match = self._searched, None, None
        self.query(SearchBar).remove()
        if view is not None:
            self.set_focus(view)

    def _go_to_match(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match, or to the first one from the cursor on (0)."""
        view, wanted = self._searched, self._looked_for.strip().casefold()
        if view is None:
            return
        lines = range(view.line_count()) if wanted else ()
        matches = [line for line in lines if wanted in plain(view.line_at(line)).casefold()]
        start = self._match if self._match is not None else view.cursor if view.has_cursor else view.top
        if step < 0:
            at = next((at for at in reversed(range(len(matches))) if matches[at] < start), len(matches) - 1)
        else:
            at = next((at for at, line in enumerate(matches) if line >= start + step), 0)
        for bar in self.query(SearchBar):
            bar.say((at if matches else None, len(matches)))
        if not matches:
            return
        self._match = matches[at]
        if view.has_cursor:
            view.move_cursor(self._match)
        else:
            view.scroll_lines(self._match - view.top)
        view.moved()
