"""Lays out text and items of any height in rows of a given width, including text that still grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from workbench.show.spans import EMPTY, Line, wrap
from workbench.show.visible import visible

DISPLAY_LIMIT = 100_000
"""The characters of one text that are shown. The rest is counted, but still copied."""

TAB = "    "


def safe_lines(text: str, limit: int = DISPLAY_LIMIT) -> list[str]:
    """Split a text into visible logical lines, cut after `limit` characters."""
    return visible(text[:limit].replace("\r\n", "\n").replace("\t", TAB)).split("\n")


class GrowingText:
    """A text and its rows at the last requested width. Characters beyond `limit` have no rows."""

    def __init__(self, text: str = "", limit: int = DISPLAY_LIMIT) -> None:
        self._limit = limit
        self._raw = [text] if text else []
        self._length = len(text)
        self._logical = safe_lines(text, limit)
        self._width = 0
        self._rows: list[str] = []
        self._wrapped_lines = 0
        self._tail_start = 0

    @property
    def text(self) -> str:
        """The whole text, unchanged."""
        if len(self._raw) > 1:
            self._raw = ["".join(self._raw)]
        return self._raw[0] if self._raw else ""

    @property
    def hidden(self) -> int:
        """The number of characters beyond the display limit."""
        return max(self._length - self._limit, 0)

    @property
    def blank(self) -> bool:
        return not any(line.strip() for line in self._logical)

    def append(self, text: str) -> None:
        """Append a piece."""
        self._raw.append(text)
        room = self._limit - self._length
        self._length += len(text)
        if room <= 0:
            return
        first, *others = safe_lines(text, room)
        self._logical[-1] += first
        self._logical.extend(others)

    def rows(self, width: int) -> list[str]:
        """Return the rows at a width. Only the last logical line and new lines are wrapped again."""
        if width != self._width:
            self._width, self._rows, self._wrapped_lines, self._tail_start = width, [], 0, 0
        del self._rows[self._tail_start :]
        first = max(self._wrapped_lines - 1, 0)
        for line in self._logical[first:]:
            self._tail_start = len(self._rows)
            self._rows.extend(wrap(line, width))
        self._wrapped_lines = len(self._logical)
        return self._rows


_BLOCK = 256


class Heights:
    """The heights of items in rows. A height may be 0."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._sums: list[int] = []
        self._sum_up_from(0)

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, item: int) -> int:
        return self._heights[item]

    def __setitem__(self, item: int, height: int) -> None:
        self._sums[item // _BLOCK] += height - self._heights[item]
        self._heights[item] = height

    def append(self, height: int) -> None:
        """Append an item."""
        if len(self._heights) % _BLOCK == 0:
            self._sums.append(0)
        self._heights.append(height)
        self._sums[-1] += height

    def cut(self, count: int) -> None:
        """Remove all items after the first `count`."""
        del self._heights[count:]
        self._sum_up_from(count // _BLOCK)

    @property
    def total(self) -> int:
        """The rows of all items."""
        return sum(self._sums)

    def start_of(self, item: int) -> int:
        """Return the first row of an item, or the number of rows for the index after the last item."""
        block = item // _BLOCK
        return sum(self._sums[:block]) + sum(self._heights[block * _BLOCK : item])

    def item_at(self, row: int) -> int:
        """Return the item that a row belongs to. Raises IndexError if there is no such row."""
        if not 0 <= row < self.total:
            raise IndexError(f"no row {row} among {self.total}")
        block = 0
        while row >= self._sums[block]:
            row -= self._sums[block]
            block += 1
        item = block * _BLOCK
        while row >= self._heights[item]:
            row -= self._heights[item]
            item += 1
        return item

    def shown_from(self, first: int) -> int:
        """Return how many items have rows, starting at `first`."""
        return sum(height > 0 for height in self._heights[first:])

    def _sum_up_from(self, block: int) -> None:
        starts = range(block * _BLOCK, len(self._heights), _BLOCK)
        self._sums[block:] = [sum(self._heights[start : start + _BLOCK]) for start in starts]


KEPT_LAYOUTS = 512
"""The number of items whose lines are cached."""


class LaidOut:
    """The lines of items at a fixed width."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.laid_out = 0
        """The number of items laid out so far, which is the cost of drawing."""
        self._layouts: dict[int, Sequence[Line]] = {}
        self._heights = Heights()
        self._known = bytearray()
        """Which heights are exact; the others are estimates."""

    def lay_out(self, item: int) -> Sequence[Line]:
        """Return the lines of an item at the present width."""
        raise NotImplementedError

    def _begin(self, rough: Iterable[int]) -> None:
        """Replace all items; their heights are estimates."""
        self._heights = Heights(rough)
        self._known = bytearray(len(self._heights))
        self._layouts.clear()

    @property
    def count(self) -> int:
        """The number of lines, as far as it is known."""
        return self._heights.total

    def line(self, index: int) -> Line:
        """Return one line, empty beyond the end."""
        item = self.item_at(index)
        if item is None:
            return EMPTY
        lines, at = self._lines(item), index - self._heights.start_of(item)
        return lines[at] if at < len(lines) else EMPTY  # the estimate was too high

    def item_at(self, index: int) -> int | None:
        """Return the item that a line belongs to."""
        return self._heights.item_at(index) if 0 <= index < self.count else None

    def start_of(self, item: int) -> int:
        """Return the first line of an item."""
        return self._heights.start_of(item)

    def settle(self, index: int, rows: int) -> int:
        """Lay out everything within `rows` of a line, above and below. Returns the new index of the line."""
        item = self.item_at(index)
        if item is None:
            return index
        at = index - self._heights.start_of(item)
        self._know(item)
        room = rows - at
        for other in range(item - 1, -1, -1):
            if room <= 0:
                break
            self._know(other)
            room -= self._heights[other]
        room = rows - (self._heights[item] - at)
        for other in range(item + 1, len(self._heights)):
            if room <= 0:
                break
            self._know(other)
            room -= self._heights[other]
        return self._index_in(item, at)

    def resize(self, width: int) -> None:
        """Set a new width and drop all layouts."""
        if width != self.width:
            self.width = width
            self._layouts.clear()
            self._known = bytearray(len(self._heights))

    def _measure(self, item: int) -> None:
        self._forget(item)
        self._heights[item] = len(self._lines(item))
        self._known[item] = 1

    def _know(self, item: int) -> None:
        if not self._known[item]:
            self._measure(item)

    def _index_in(self, item: int, line: int) -> int:
        return self._heights.start_of(item) + max(min(line, self._heights[item] - 1), 0)

    def _lines(self, item: int) -> Sequence[Line]:
        lines = self._layouts.get(item)
        if lines is None:
            lines = self.lay_out(item)
            self.laid_out += 1
            self._layouts[item] = lines
            if len(self._layouts) > KEPT_LAYOUTS:
                self._forget(next(iter(self._layouts)))
        return lines

    def _forget(self, item: int) -> None:
        """Drop the cached lines of an item."""
        self._layouts.pop(item, None)
