"""Screens on which the user can search the displayed lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from textual import on

from workbench.show.search import pattern_for
from workbench.tui.kit.actions import action
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.search_bar import SearchBar
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.kit.stage import Answer


class SearchedScreen(SideScreen[Answer]):
    """A screen on which `/` searches the lines of the focused view."""

    _looked_for = ""
    _match: tuple[int, int] | None = None
    """The line and the column of the current match (from 0)."""
    _searched: LineView | None = None
    """The searched view while the search bar is open."""

    @action("/", "Search as you type", label="search")
    def do_find(self) -> None:
        if self._searched is None:
            focused = self.focused
            self._searched = focused if isinstance(focused, LineView) else self.query(LineView).first()
            # The search bar is about to take the focus, so the view to search is stored first.
            self.mount(SearchBar(self._looked_for), before=self._keys)
        for bar in self.query(SearchBar):
            bar.take_focus()

    @action("ctrl+g", "Next match of the search")
    def do_find_next(self) -> None:
        """Go to the next match. If nothing is searched yet, open the search."""
        if self._searched is None:
            self.do_find()
        self._go_to_match(1)

    @action("esc", "End the search, or leave the screen", label="back")
    def do_back(self) -> None:
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
            view.mark_matches(None)
            self.set_focus(view)

    def _go_to_match(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match, or the first match at or after the cursor (0)."""
        view, pattern = self._searched, pattern_for(self._looked_for)
        if view is None:
            return
        places: list[tuple[int, int]] = []
        if pattern is not None:
            places = [found.pieces[0][:2] for found in view.matches(pattern)]
        if not places:
            self._show_match_count(None, 0)
            view.mark_matches(None)
            return
        # The places are sorted. After the last match comes the first, and before the first the last.
        start = self._match or (view.cursor if view.has_cursor else view.top, 0)
        if step < 0:
            at = bisect_left(places, start) - 1
        elif step and self._match is not None:
            at = bisect_right(places, start)
        else:
            at = bisect_left(places, start)
        at %= len(places)
        self._show_match_count(at, len(places))
        self._match = line, _ = places[at]
        view.mark_matches(pattern, self._match)
        if view.has_cursor:
            view.move_cursor(line)
        elif not view.top <= line < view.top + view.size.height:
            view.scroll_lines(line - view.size.height // 3 - view.top)
        view.moved()

    def _show_match_count(self, at: int | None, count: int) -> None:
        for bar in self.query(SearchBar):
            bar.show_count((at, count))
