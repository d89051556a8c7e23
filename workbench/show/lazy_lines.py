"""Lines of growing texts, large JSON values and items of any height. The lines are built when they are read."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, overload

from workbench.numerals import count_text, counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cut, plain, row_ends, without_empty, wrap
from workbench.show.visible import compact_json, visible
from workbench.startup import late_pattern

if TYPE_CHECKING:
    from workbench.trajectory.events import JsonValue

_NARROWEST = 8
_KEY = late_pattern(r' *(?:"(?:[^"\\]|\\.)*": )?')
_ROLES: dict[str, Role] = {
    '"': "string",
    **dict.fromkeys("tfnNI", "literal"),
    **dict.fromkeys("{}[]", "muted"),
}
"""The role of a JSON value by its first character. A value with another first character is a number."""


class LazyLines(Sequence[Line]):
    """A sequence of lines that are built when they are read. `texts` yields them as plain text."""

    def line(self, index: int) -> Line:
        """Return the line at an index, which must not be negative."""
        raise NotImplementedError

    def texts(self) -> Iterator[str]:
        return (plain(self.line(index)) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self.line(at) for at in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.line(index % len(self))


class JoinedLines(LazyLines):
    """Several sequences of lines, joined into one."""

    def __init__(self, parts: Sequence[Sequence[Line]]) -> None:
        self._parts = [part for part in parts if part]
        self._starts = [0, *accumulate(map(len, self._parts))]

    def __len__(self) -> int:
        return self._starts[-1]

    def line(self, index: int) -> Line:
        part = bisect_right(self._starts, index) - 1
        return self._parts[part][index - self._starts[part]]

    def texts(self) -> Iterator[str]:
        for part in self._parts:
            yield from texts_of(part)


class JsonLines(LazyLines):
    """A value as indented JSON, in rows of at most `width` cells. Each row begins with `indent` blanks.

    Rows are counted when the object is created, and coloured when they are read."""

    def __init__(self, value: JsonValue, width: int, indent: int = 0) -> None:
        self._indent = " " * indent
        self._width = max(width - indent, _NARROWEST)
        self._written = visible(_pretty(value)).split("\n")
        self._starts = [0, *accumulate(map(self._height, self._written))]
        # The line that was read last, and the ends of its rows. A long string is one line with many rows, and these are
        # read one after another.
        self._wrapped: tuple[int, list[int]] = (-1, [])

    def __len__(self) -> int:
        return self._starts[-1]

    def line(self, index: int) -> Line:
        number = bisect_right(self._starts, index) - 1
        if self._wrapped[0] != number:
            self._wrapped = number, self._ends(self._written[number])
        written, ends, row = self._written[number], self._wrapped[1], index - self._starts[number]
        start = ends[row - 1] if row else 0
        key, role = _key_and_role(written)
        name, value = written[start : max(key, start)][: ends[row] - start], written[max(key, start) : ends[row]]
        comma = ""
        if row == len(ends) - 1 and value.endswith(","):
            comma = ","
        spans = (
            Span(self._lead(written, row) + name, "key"),
            Span(value.removesuffix(comma), role),
            Span(comma, "muted"),
        )
        return without_empty(spans)

    def texts(self) -> Iterator[str]:
        for written in self._written:
            start = 0
            for row, end in enumerate(self._ends(written)):
                yield self._lead(written, row) + written[start:end]
                start = end

    def _height(self, written: str) -> int:
        # Usually each line fits into one row, and no search for wrap points is necessary.
        if len(written) <= self._width and written.isascii():
            return 1
        return len(self._ends(written))

    def _ends(self, written: str) -> list[int]:
        return row_ends(written, self._width, self._hang(written))

    def _lead(self, written: str, row: int) -> str:
        if row:
            return self._indent + " " * self._hang(written)
        return self._indent

    def _hang(self, written: str) -> int:
        return min(len(written) - len(written.lstrip(" ")) + 2, self._width // 2)


def texts_of(lines: Sequence[Line]) -> Iterator[str]:
    if isinstance(lines, LazyLines):
        return lines.texts()
    return map(plain, lines)


def _pretty(value: JsonValue) -> str:
    try:
        # `json` indents by recursion, so a value nested deeper than the stack cannot be indented.
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:
        return compact_json(value, 1 << 62)


def _key_and_role(written: str) -> tuple[int, Role]:
    """Return the index at which the value begins in a line of indented JSON, and the role of the value."""
    match = _KEY.match(written)
    assert match is not None
    return match.end(), _ROLES.get(written[match.end() : match.end() + 1], "number")


def parsed_json(content: str, longest: int) -> JsonValue:
    """Parse a text as a JSON object or array.

    Return `None` if the text is anything else, or has more than `longest` characters."""
    if content[:1] not in ("{", "[") or len(content) > longest:
        return None
    try:
        value: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value


DISPLAY_LIMIT = 100_000
"""Number of characters of a text that are shown. Further characters are only counted, but copies include them."""

TAB = "    "


def safe_lines(text: str, limit: int = DISPLAY_LIMIT) -> list[str]:
    """Return the lines of a text, with control characters made visible. Characters after `limit` are cut."""
    return visible(text[:limit].replace("\r\n", "\n").replace("\t", TAB)).split("\n")


class GrowingText:
    """A text that grows piece by piece, and its wrapped rows. Only the first `limit` characters are wrapped."""

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
        # Pieces are joined when the text is read. Joining at every piece would copy the whole text each time.
        if len(self._raw) > 1:
            self._raw = ["".join(self._raw)]
        return "".join(self._raw)

    @property
    def hidden(self) -> int:
        """Number of characters beyond `limit`, which are not shown."""
        return max(self._length - self._limit, 0)

    @property
    def blank(self) -> bool:
        return not any(line.strip() for line in self._logical)

    def append(self, text: str) -> None:
        self._raw.append(text)
        room = self._limit - self._length
        self._length += len(text)
        if room <= 0:
            return
        first, *others = safe_lines(text, room)
        self._logical[-1] += first
        self._logical.extend(others)

    def rows(self, width: int) -> list[str]:
        """Return the text wrapped at a width. If the width is unchanged, only new lines are wrapped."""
        # A stream has thousands of pieces. Wrapping the whole text for every piece would take quadratic time.
        if width != self._width:
            self._width, self._rows, self._wrapped_lines, self._tail_start = width, [], 0, 0
        del self._rows[self._tail_start :]
        first = max(self._wrapped_lines - 1, 0)
        for line in self._logical[first:]:
            self._tail_start = len(self._rows)
            self._rows.extend(wrap(line, width))
        self._wrapped_lines = len(self._logical)
        return self._rows


# The number of items in a block. A list of 100,000 items then has about as many blocks as a block has items. The search
# for a block and the search inside the block are therefore both short.
_BLOCK = 256


class Heights:
    """The heights of items, each a number of rows from 0. Finding the item at a row is fast even among many items."""

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
        """Number of rows of all items."""
        return sum(self._sums)

    def start_of(self, item: int) -> int:
        """Return the first row of an item. For the index after the last item, return the number of rows."""
        block = item // _BLOCK
        return sum(self._sums[:block]) + sum(self._heights[block * _BLOCK : item])

    def item_at(self, row: int) -> int:
        """Return the item at a row. Raise IndexError if the row is beyond the last item."""
        if not 0 <= row < self.total:
            raise IndexError(f"row {row} is not one of the {self.total} rows")
        # Find the block, then the item in it. This takes a few hundred steps for a hundred thousand items.
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
        """Return how many items from index `first` on are visible, which means that their height is above 0."""
        return sum(height > 0 for height in self._heights[first:])

    def _sum_up_from(self, block: int) -> None:
        del self._sums[block:]
        for start in range(block * _BLOCK, len(self._heights), _BLOCK):
            self._sums.append(sum(self._heights[start : start + _BLOCK]))


KEPT_LAYOUTS = 512
"""Number of items whose lines are cached."""


class LazyLayout:
    """The lines of items, laid out at a given width.

    An item is laid out only when it is scrolled near the visible part."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.laid_out = 0
        """Number of items laid out so far, a measure of the work of drawing."""
        self._layouts: dict[int, Sequence[Line]] = {}
        self._heights = Heights()
        self._known = bytearray()
        """For each item, 1 if its height is exact and 0 if it is an estimate."""

    def lay_out(self, item: int) -> Sequence[Line]:
        """Return the lines of an item at the present width."""
        raise NotImplementedError

    def _begin(self, rough: Iterable[int]) -> None:
        """Replace all items. `rough` has the estimated height of each new item."""
        # Exact heights would need the lines of all items. An item's height is therefore an estimate until the item
        # nears the screen.
        self._heights = Heights(rough)
        self._known = bytearray(len(self._heights))
        self._layouts.clear()

    @property
    def count(self) -> int:
        """The number of lines. Items that are not laid out count with their estimated height."""
        return self._heights.total

    def line(self, index: int) -> Line:
        """Return one line, or an empty line beyond the end."""
        item = self.item_at(index)
        if item is None:
            return EMPTY
        lines, at = self._lines(item), index - self._heights.start_of(item)
        # The height of an item may still be an estimate, and the item may have fewer lines.
        if at >= len(lines):
            return EMPTY
        return lines[at]

    def item_at(self, index: int) -> int | None:
        """Return the item that a line belongs to, or `None` if the line does not exist."""
        if 0 <= index < self.count:
            return self._heights.item_at(index)
        return None

    def start_of(self, item: int) -> int:
        """Return the first line of an item."""
        return self._heights.start_of(item)

    def settle(self, index: int, rows: int) -> int:
        """Lay out all items within `rows` of a line, above and below. Return the new index of the line."""
        item = self.item_at(index)
        if item is None:
            return index
        at = index - self._heights.start_of(item)
        # The exact heights of items above the line differ from the estimates, so the line moves.
        self._set_height(item)
        room = rows - at
        for other in range(item - 1, -1, -1):
            if room <= 0:
                break
            self._set_height(other)
            room -= self._heights[other]
        room = rows - (self._heights[item] - at)
        for other in range(item + 1, len(self._heights)):
            if room <= 0:
                break
            self._set_height(other)
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

    def _set_height(self, item: int) -> None:
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
                # A dictionary keeps insertion order, so the first layout is the oldest.
                self._forget(next(iter(self._layouts)))
        return lines

    def _forget(self, item: int) -> None:
        self._layouts.pop(item, None)


class TextLines(LazyLines):
    """The rows of a text as lines. Blank rows at the end are omitted."""

    def __init__(self, rows: list[str], indent: int, role: Role) -> None:
        self._rows = rows
        self._indent = Span(" " * indent)
        self._role = role
        self._count = len(rows)
        while self._count and not rows[self._count - 1].strip():
            self._count -= 1

    def __len__(self) -> int:
        return self._count

    def line(self, index: int) -> Line:
        return self._indent, Span(self._rows[index], self._role)


class ActionNames(NamedTuple):
    """The names of keys or options that unfold parts of a run, for use in lines."""

    expand: str
    copy: str
    grades: str


IN_APP = ActionNames("Enter", "; y copies all of them", ": =")


def text_rows(
    text: GrowingText, width: int, limit: int | None, role: Role, indent: int, actions: ActionNames = IN_APP
) -> Sequence[Line]:
    """Return at most `limit` wrapped and indented rows of a text. If rows are omitted, a further row counts them."""
    rows = text.rows(width - indent)
    lead = Span(" " * indent)
    # If only one row is allowed, it shows the first two rows joined and cut.
    if limit == 1 and len(rows) > 1:
        return [(lead, Span(cut(rows[0] + " " + rows[1], width - indent), role))]
    lines = TextLines(rows, indent, role)
    # A note that replaces a single row saves no space, so it must replace at least two rows or also count hidden text.
    at_least = 2
    if text.hidden:
        at_least = 1
    if limit is not None and len(lines) >= limit + at_least:
        note = f"{GLYPHS.running} {counted(len(lines) - limit, 'more line')}, {actions.expand} shows them"
        if text.hidden:
            characters = counted(text.hidden + DISPLAY_LIMIT, "character")
            note = f"{GLYPHS.running} {characters} in all, {actions.expand} shows more"
        return [*lines[:limit], (lead, Span(cut(note, width - indent), "comment"))]
    if not text.hidden:
        return lines
    note = f"{GLYPHS.running} {count_text(text.hidden)} more characters{actions.copy}"
    return JoinedLines([lines, [(lead, Span(cut(note, width - indent), "comment"))]])
