"""Blocks as rows of a given width: tables for lists and terminals, and other blocks for panes of the app."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add
from typing import Generic

from workbench.show.doc import Block, Column, Facts, Heading, Items, Matrix, Paragraph, Row, Section, Table, Value
from workbench.show.spans import (
    EMPTY,
    Line,
    Span,
    cells,
    cut_line,
    hanging_paragraph,
    heading,
    plain,
    without_empty,
    wrap_line,
)

# Measuring all rows of a long list would delay its first screen. A wider row further down is cut.
MEASURED_ROWS = 500
"""Number of rows over which the widths of columns are measured."""

# Lists draw the same blanks in every row, so they are cached.
_BLANKS = [Span(" " * width) for width in range(200)]


def _blank(width: int) -> Span:
    if width < len(_BLANKS):
        return _BLANKS[width]
    return Span(" " * width)


class TableLayout(Generic[Row]):
    """A table whose rows are drawn as lines of a given width.

    The first `measured` rows, and the titles if they are shown, determine the widths of columns."""

    def __init__(self, table: Table[Row], *, titled: bool = False, measured: int = MEASURED_ROWS) -> None:
        self.table = table
        self._titled = titled
        self._measured = measured
        self._laid: dict[int, list[tuple[Column[Row], bool, int]]] = {}

    def line(self, row: Row, width: int) -> Line:
        """Return a row as a line of at most `width` cells, with its texts aligned in columns."""

        def fitting(column: Column[Row], is_short: bool, max_width: int) -> Line:
            line = _cell(column, row, is_short).spans
            if cells(line) <= max_width:
                return line
            if column.fit is not None:
                line = column.fit(row, max_width).spans
            return cut_line(line, max_width)

        return self._in_columns(fitting, width)

    def titles(self, width: int) -> Line:
        return self._in_columns(lambda column, _, room: cut_line((Span(column.name, "muted"),), room), width)

    def _in_columns(self, cell: Callable[[Column[Row], bool, int], Line], width: int) -> Line:
        spans: list[Span] = []
        for at, (column, is_short, room) in enumerate(self._columns(width)):
            line = cell(column, is_short, room)
            blanks = room - cells(line)
            if at:
                spans.append(_blank(column.gap))
            if column.right:
                spans += [_blank(blanks), *line]
            else:
                spans += [*line, _blank(blanks)]
        return cut_line(without_empty(spans), width)

    def natural(self, width: int) -> int:
        """Return the width that the rows need, at most `width`."""
        return min(sum(room + column.gap for column, _, room in self._columns(width)), width)

    def _columns(self, width: int) -> list[tuple[Column[Row], bool, int]]:
        """Return the columns that are shown. Each column comes with a flag and its width.

        The flag is true if the column uses its short form.

        While the columns do not fit, the widest column that may be cut loses one cell."""
        if (known := self._laid.get(width)) is not None:
            return known
        measured = self.table.rows[: self._measured]
        laid: list[tuple[Column[Row], bool, int]] = []
        for column in self.table.columns:
            if width < column.from_cells:
                continue
            is_short = width < column.short_below
            # A column without any text in the measured rows is not shown.
            room = max((cells(_cell(column, row, is_short).spans) for row in measured), default=0)
            if room and self._titled:
                room = max(room, len(column.name))
            if room:
                laid.append((column, is_short, room))
        rooms = [room for _, _, room in laid]
        over = sum(rooms) + sum(column.gap for column, _, _ in laid[1:]) - width
        # Taking one cell at a time makes wide columns equally wide before it makes narrow columns narrower.
        while over > 0:
            widest = None
            for at, (column, _, _) in enumerate(laid):
                if rooms[at] > column.least > 0 and (widest is None or rooms[at] > rooms[widest]):
                    widest = at
            if widest is None:
                break
            rooms[widest] -= 1
            over -= 1
        fitted = []
        for (column, is_short, _), room in zip(laid, rooms, strict=True):
            fitted.append((column, is_short, room))
        self._laid[width] = fitted
        return fitted


GAP = 2
"""Number of blanks before each column of a matrix. The second blank may hold a mark for the next cell."""

MAX_HEAD_CELLS = 20
"""Maximum width in cells to which a title may widen its column when space is short."""

MIN_NAMES_CELLS = 10
_NAMES_SHARE = 1 / 3
"""The least width of a matrix's first column in cells, and its share of the whole width when space is short."""


def matrix_rooms(
    names: int,
    lengths: Sequence[int],
    heads: Sequence[int],
    width: int,
    *,
    min_width: int = MIN_NAMES_CELLS,
    more: int = 0,
) -> tuple[int, tuple[int, ...]]:
    """Return the width of a matrix's first column, and the widths of its other columns.

    The first column needs `names` cells, and may shrink to `min_width` cells. `lengths` are the widths of the other
    columns' cells, and `heads` are the widths of the other columns' titles. If not all columns fit, the first column
    shrinks until two other columns fit. In that case, `more` cells stay free for a text that counts the hidden
    columns."""
    # A long name of a model must not make its column much wider than the cells need, so its width counts up to a limit.
    needed = []
    for length, head in zip(lengths, heads, strict=True):
        needed.append(max(length, min(head, MAX_HEAD_CELLS)))
    widths = tuple(needed)
    left = width - sum(widths) - GAP * len(widths)
    if names <= left:
        return names, _widened(widths, heads, left - names)
    room = _names_room(widths, width)
    if left >= max(room, min_width):
        return left, widths
    if len(widths) > 1:
        width -= more
    return max(min(names, _names_room(widths, width)), min_width), widths


def columns_from(first: int, widths: Sequence[int], max_width: int) -> range:
    """Return the columns of a matrix, from `first` on, that fit into `max_width` cells, but at least one column."""
    end, used = first, 0
    while end < len(widths) and (end == first or used + GAP + widths[end] <= max_width):
        used += GAP + widths[end]
        end += 1
    return range(first, end)


def _names_room(widths: Sequence[int], width: int) -> int:
    widest = sorted(widths, reverse=True)
    beside_one = width - sum(widest[:1]) - GAP
    beside_two = width - sum(widest[:2]) - GAP * 2
    if beside_two < MIN_NAMES_CELLS:
        return max(beside_one, MIN_NAMES_CELLS)
    return max(min(int(width * _NAMES_SHARE), beside_two), MIN_NAMES_CELLS)


def _widened(widths: Sequence[int], heads: Sequence[int], spare: int) -> tuple[int, ...]:
    """Return the widths of columns, widened by up to `spare` cells in total to show more of long titles."""
    # The limit for the width of titles is lowered until the widened columns fit.
    at_most = max(widths, default=0) + spare
    while (over := sum(_widening(widths, heads, at_most)) - spare) > 0:
        at_most -= max(over // len(heads), 1)
    return tuple(map(add, widths, _widening(widths, heads, at_most)))


def _widening(widths: Sequence[int], heads: Sequence[int], at_most: int) -> Iterator[int]:
    """Yield by how many cells each column must be widened to show its title, cut to `at_most` cells."""
    for width, head in zip(widths, heads, strict=True):
        yield max(min(head, at_most) - width, 0)


def filled(line: Line, width: int) -> Line:
    """Return a line, cut or padded to exactly `width` cells."""
    line = cut_line(line, width)
    return (*line, _blank(width - cells(line)))


def _cell(column: Column[Row], row: Row, is_short: bool) -> Value:
    if is_short and column.short is not None:
        return column.short(row)
    return column.cell(row)


_MIN_TEXT_CELLS = 10


def is_apart(block: Block, before: Block | None) -> bool:
    """Return whether an empty line separates a block from the block before it.

    Two paragraphs are not separated, and neither are a heading and the block after it."""
    together = isinstance(before, Paragraph) and isinstance(block, Paragraph)
    return not (before is None or isinstance(before, Heading) or together)


def detail_rows(blocks: Iterable[Block], width: int) -> Iterator[Line]:
    """Yield the rows of blocks for a pane of the app, with one empty cell at each edge."""
    before: Block | None = None
    for block in blocks:
        if is_apart(block, before):
            yield EMPTY
        before = block
        yield from _rows_of(block, width, 1)


def _rows_of(block: Block, width: int, indent: int) -> Iterator[Line]:
    lead = Span(" " * indent)
    match block:
        case Heading(line):
            yield heading(plain(line))
        case Paragraph(line):
            yield from wrap_line((lead, *line), width - 1, hang=indent)
        case Items(lines):
            for line in lines:
                yield from wrap_line((lead, *line), width - 1, hang=indent + 2)
        case Facts():
            for name, text in fact_rows(block):
                head = (lead, *name)
                yield from hanging_paragraph(head, text.text, text.role, max(width - cells(head) - 1, _MIN_TEXT_CELLS))
        case Section(title, blocks):
            yield from wrap_line((lead, *title), width - 1, hang=indent + 2)
            for each in blocks:
                yield from _rows_of(each, width, indent + 2)
        case Table() | Matrix():
            raise TypeError("this function wraps text and cannot draw a table or a matrix: use `TableLayout`")


def fact_rows(block: Facts) -> Iterator[tuple[Line, Span]]:
    """Yield a row for each fact, with all names padded to one width."""
    room = max((cells(name) for name, _ in block.facts), default=0) + GAP
    for name, text in block.facts:
        yield (filled(name, room), text)
