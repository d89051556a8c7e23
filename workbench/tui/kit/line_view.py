"""A pane that shows any number of lines.

Only visible lines are requested, and only changed lines are drawn. Ten thousand lines take no longer than fifty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import NULL_REGION, Region
from textual.message import Message
from textual.strip import Strip

from workbench.show.glyphs import GLYPHS
from workbench.show.search import Found, found_in, marked
from workbench.show.spans import EMPTY, Line, Role, Span
from workbench.tui.kit.actions import MOVE_ACTIONS, bindings_for
from workbench.tui.kit.strips import palette_of, segments_of
from workbench.tui.terminal.plain_lines import PlainLinesWidget
from workbench.tui.terminal.theme import Ground

Motion = Literal["up", "down", "page_up", "page_down", "half_up", "half_down", "home", "end"]
"""A movement of the cursor or the window. The movement keys' actions have the same names."""

WHEEL_LINES = 3
MAX_CACHED_STRIPS = 400
_MATCH_MARGIN_LINES = 3
"""The number of lines to search above and below the visible lines, because a match may span several lines."""

_Row = tuple[Line, Ground, bool]
"""The content of a screen row: a line, its background, and whether the scroll thumb is beside it."""


def motion_distances(height: int) -> Mapping[Motion, int]:
    """Return how many lines each motion moves in a view of `height` lines. Upward motions are negative."""
    page, half = max(height - 1, 1), max(height // 2, 1)
    return {"up": -1, "down": 1, "page_up": -page, "page_down": page, "half_up": -half, "half_down": half}


class LineView(PlainLinesWidget, can_focus=True):
    """A pane of lines that a subclass supplies. It has a cursor, or is only scrolled."""

    # Drawing has two steps. `_rows_of` requests the content of the visible rows, and `_draw_changed` invalidates the
    # rows whose content differs from before (`_requested_rows`). Then Textual calls `render_line`, which turns a row
    # into a strip. Strips are cached by content, so a line that becomes visible again costs only a look-up.

    DEFAULT_CSS = "LineView { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(MOVE_ACTIONS)
    ALLOW_SELECT = False
    GROUND: ClassVar[Ground] = "background"
    CURSOR_GROUND: ClassVar[Ground] = "cursor"
    RESTING_GROUND: ClassVar[Ground] = "resting_cursor"
    """The background of the cursor's line while another view has the focus."""
    CURSOR_CHANGES_LINES: ClassVar[bool] = True
    """Whether the text of lines may depend on the cursor's position."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.top = 0
        self.cursor = 0
        self.rows_drawn = 0
        """The number of rows drawn so far. Tests use it to measure the cost of drawing."""
        self._requested_rows: list[_Row] = []
        self._strips: LRUCache[tuple[_Row, int], Strip] = LRUCache(MAX_CACHED_STRIPS)
        self._pattern: re.Pattern[str] | None = None
        self._match: tuple[int, int] | None = None

    @property
    def has_cursor(self) -> bool:
        """Whether a line is selected. Without a cursor, the movement keys scroll."""
        return True

    def line_count(self) -> int:
        """Return the number of lines."""
        raise NotImplementedError

    def line_at(self, index: int) -> Line:
        """Return one line of at most `text_width` cells."""
        raise NotImplementedError

    def group_start(self, index: int) -> int:
        """Return the index of the line that the cursor goes to when the line `index` is selected.

        This is the first line of a group of lines that can only be selected together."""
        return index

    def lay_out_all(self) -> None:
        """Lay out all lines, not only the visible ones.

        Override this method in views that estimate the number of lines."""

    def matches(self, pattern: re.Pattern[str]) -> list[Found]:
        """Return the matches of a pattern in all lines, in order."""
        self.lay_out_all()
        return found_in([self.line_at(index) for index in range(self.line_count())], pattern)

    def mark_matches(self, pattern: re.Pattern[str] | None, match: tuple[int, int] | None = None) -> None:
        """Highlight the matches of a pattern.

        `match` (line, column) is the current match. `None` removes the highlights."""
        self._pattern, self._match = pattern, match
        self.repaint()

    def moved(self) -> None:
        """React after the user has moved the cursor or scrolled. Does nothing unless overridden."""

    def chosen(self, index: int) -> None:
        """React to a click on the selected line. Does nothing unless overridden."""

    @property
    def text_width(self) -> int:
        """The width for text in cells. The last column of the view is reserved for the scroll bar."""
        return max(self.size.width - 1, 1)

    @property
    def cursor_region(self) -> Region:
        """The region of the screen with the selected lines. Empty if they are not visible."""
        if not self.has_cursor:
            return NULL_REGION
        x, y, width, height = self.region
        here = range(self.top, min(self.top + height, self.line_count()))
        rows = [index - self.top for index in here if self.group_start(index) == self.cursor]
        if rows:
            return Region(x, y + rows[0], width, len(rows))
        return NULL_REGION

    def move_cursor(self, index: int) -> None:
        """Select a line and scroll to it."""
        self._place_cursor(index)
        self.repaint()

    def _place_cursor(self, index: int) -> None:
        self.cursor = min(max(index, 0), max(self.line_count() - 1, 0))
        height = max(self.size.height, 1)
        self.top = min(max(self.top, self.cursor - height + 1), self.cursor)

    def _move_by_key(self, index: int) -> None:
        """Select a line. Only for views in which the cursor's position affects no other lines.

        Unless the view scrolls, only the lines that the cursor leaves and enters are drawn."""
        before, top = self.cursor, self.top
        self._place_cursor(index)
        if self.top != top or len(self._requested_rows) != self.size.height:
            self.repaint()
            return
        rows = self._requested_rows.copy()
        for index, row in self._rows_of({before, self.cursor} & set(range(top, top + len(rows)))):
            rows[index - top] = row
        self._draw_changed(rows)

    def scroll_lines(self, delta: int) -> None:
        """Scroll without moving the cursor."""
        self.top = min(max(self.top + delta, 0), self.last_top)
        self.repaint()

    @property
    def last_top(self) -> int:
        """The index of the first visible line when the view is scrolled to the end."""
        return max(self.line_count() - self.size.height, 0)

    def repaint(self) -> None:
        """Draw every visible row that has changed."""
        # Before the first layout, the width is 0, and building lines for it is useless.
        if not self.size:
            self._request_rows()
            return
        self.top = min(max(self.top, 0), self.last_top)
        if len(self._requested_rows) != self.size.height:
            self._request_rows()
            return
        try:
            rows = self._current_rows()
        except Exception:  # noqa: BLE001 (drawing raises it again, where only this view fails and not its caller)
            self._request_rows()
        else:
            self._draw_changed(rows)

    def _request_rows(self) -> None:
        self._requested_rows = []
        self.refresh()

    def _draw_changed(self, rows: list[_Row]) -> None:
        changed = [y for y, row in enumerate(rows) if row != self._requested_rows[y]]
        self._requested_rows = rows
        if changed:
            width = self.size.width
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def redraw(self) -> None:
        """Draw all rows again, for example with new colours."""
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        if len(self._requested_rows) != height:
            self._requested_rows = self._current_rows()
        # Textual may ask for rows of a new size before the layout is done.
        if y >= height:
            return Strip.blank(width)
        row = self._requested_rows[y]
        self.rows_drawn += 1
        strip = self._strips.get((row, width))
        if strip is None:
            strip = self._drawn(row, width)
            self._strips[row, width] = strip
        return strip

    def _current_rows(self) -> list[_Row]:
        with self.constant_size() as (_, height):
            return [row for _, row in self._rows_of(range(self.top, self.top + height))]

    def _rows_of(self, indices: Iterable[int]) -> Iterator[tuple[int, _Row]]:
        count, top = self.line_count(), self.top
        thumb = self._thumb(count)
        cursor = self.cursor if self.has_cursor else -1
        there = self.CURSOR_GROUND if self.has_focus else self.RESTING_GROUND
        pieces = self._pieces(count) if self._pattern is not None else {}
        for index in indices:
            if index >= count:
                yield index, (EMPTY, self.GROUND, False)
                continue
            ground = there if self.group_start(index) == cursor else self.GROUND
            line = self.line_at(index)
            if index in pieces:
                line = marked(line, pieces[index])
            yield index, (line, ground, index - top in thumb)

    def _pieces(self, count: int) -> Mapping[int, Sequence[tuple[int, int, Role]]]:
        """Return the parts of the visible lines to highlight, by line. A part has a start, an end and a role."""
        assert self._pattern is not None
        first = max(self.top - _MATCH_MARGIN_LINES, 0)
        lines = []
        for at in range(first, min(self.top + self.size.height + _MATCH_MARGIN_LINES, count)):
            lines.append(self.line_at(at))
        pieces: dict[int, list[tuple[int, int, Role]]] = {}
        for found in found_in(lines, self._pattern):
            line, start, _ = found.pieces[0]
            role: Role = "badge" if (line + first, start) == self._match else "match"
            for at, begins, ends in found.pieces:
                pieces.setdefault(at + first, []).append((begins, ends, role))
        return pieces

    def _thumb(self, count: int) -> range:
        height = self.size.height
        if count <= height or height < 3:
            return range(0)
        length = max(height * height // count, 1)
        start = round((height - length) * self.top / max(count - height, 1))
        return range(start, start + length)

    def _drawn(self, row: _Row, width: int) -> Strip:
        line, ground, thumb = row
        palette = palette_of(self)
        end = Span(GLYPHS.thumb, "border") if thumb else Span(" ")
        segments = segments_of(line, width - 1, ground, palette) + segments_of((end,), 1, self.GROUND, palette)
        return Strip(Segment.simplify(segments), width)

    def on_resize(self, event: events.Resize) -> None:
        if self.has_cursor:
            self.move_cursor(self.cursor)
        else:
            self.repaint()

    # When the focus changes, Textual's handlers redraw the whole view. These handlers draw only the line of the cursor.

    def on_focus(self, event: events.Focus) -> None:
        self._focus_changed(event, True, events.DescendantFocus(self))

    def on_blur(self, event: events.Blur) -> None:
        self._focus_changed(event, False, events.DescendantBlur(self))

    def _focus_changed(self, event: events.Event, here: bool, news: Message) -> None:
        event.prevent_default()
        self.has_focus = here
        self.repaint()
        if self.parent is not None:
            self.parent.post_message(news)

    def action_move(self, motion: Motion) -> None:
        """Move the cursor by a motion. Without a cursor, scroll."""
        end = self.line_count()
        step = {"home": -end, "end": end, **motion_distances(self.size.height)}[motion]
        if self.has_cursor:
            # After scrolling with the wheel, the cursor may be out of sight. It then starts from the nearest visible
            # line.
            at = min(max(self.cursor, self.top), self.top + self.size.height - 1)
            move = self.move_cursor if self.CURSOR_CHANGES_LINES else self._move_by_key
            move(at + step)
        else:
            self.scroll_lines(step)
        self.moved()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_lines(WHEEL_LINES)
        self.moved()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_lines(-WHEEL_LINES)
        self.moved()

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y
        if event.x == self.size.width - 1 and self.line_count() > self.size.height:
            self.top = self.last_top * event.y // max(self.size.height - 1, 1)
            self.repaint()
            self.moved()
        elif self.has_cursor and index < self.line_count():
            was_selected = self.group_start(index) == self.cursor
            self.move_cursor(index)
            self.moved()
            if was_selected:
                self.chosen(index)
