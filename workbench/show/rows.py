"""Tables at a width, row by row: for lists of the app, and below each other for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from workbench.show.doc import Column, Row, Table, Value
from workbench.show.spans import Line, Span, cells, cut_line

MEASURED_ROWS = 500
"""So many rows decide how wide the columns are."""

_BLANKS = [Span(" " * width) for width in range(200)]


def _blank(width: int) -> Span:
    return _BLANKS[width] if width < len(_BLANKS) else Span(" " * width)


class Laid(Generic[Row]):
    """The rows of a table as lines of a width. What is measured for a width is kept: the first rows, and the titles of
    the columns where these are shown."""

    def __init__(self, table: Table[Row], *, titled: bool = False, measured: int = MEASURED_ROWS) -> None:
        self.table = table
        self._titled = titled
        self._measured = measured
        self._laid: dict[int, list[tuple[Column[Row], bool, int]]] = {}

    def line(self, row: Row, width: int) -> Line:
        """Return a row in its columns, of at most `width` cells."""

        def fitting(column: Column[Row], is_short: bool, room: int) -> Line:
            line = _cell(column, row, is_short).spans
            if cells(line) <= room:
                return line
            return cut_line(column.fit(row, room).spans if column.fit is not None else line, room)

        return self._in_columns(fitting, width)

    def titles(self, width: int) -> Line:
        """Return the titles of the columns."""
        return self._in_columns(lambda column, _, room: cut_line((Span(column.name, "muted"),), room), width)

    def _in_columns(self, cell: Callable[[Column[Row], bool, int], Line], width: int) -> Line:
        spans: list[Span] = []
        for at, (column, is_short, room) in enumerate(self._columns(width)):
            line = cell(column, is_short, room)
            used = cells(line)
            lead = (column.gap if at else 0) + (room - used if column.right else 0)
            spans += [_blank(lead), *line] if lead else line
            if not column.right and used < room:
                spans.append(_blank(room - used))
        return cut_line(tuple(spans), width)

    def natural(self, width: int) -> int:
        """Return the width that the rows need, of at most `width`."""
        return min(sum(room + column.gap for column, _, room in self._columns(width)), width)

    def _columns(self, width: int) -> list[tuple[Column[Row], bool, int]]:
        """Return the columns that are shown at a width, whether in short, and their widths. What does not fit is taken
        from the widest column that may be cut, cell by cell."""
        if (known := self._laid.get(width)) is not None:
            return known
        shown = [(each, width < each.short_below) for each in self.table.columns if width >= each.from_cells]
        measured = self.table.rows[: self._measured]
        rooms = [max((cells(_cell(each, row, short).spans) for row in measured), default=0) for each, short in shown]
        if self._titled:
            rooms = [max(room, len(each.name)) if room else 0 for room, (each, _) in zip(rooms, shown, strict=True)]
        used = [at for at, room in enumerate(rooms) if room]
        over = sum(rooms) + sum(shown[at][0].gap for at in used[1:]) - width
        while over > 0:
            cuttable = [at for at in used if rooms[at] > shown[at][0].least > 0]
            if not cuttable:
                break
            widest = max(cuttable, key=lambda at: rooms[at])
            rooms[widest] -= 1
            over -= 1
        self._laid[width] = [(*shown[at], rooms[at]) for at in used]
        return self._laid[width]


def _cell(column: Column[Row], row: Row, is_short: bool) -> Value:
    return column.short(row) if is_short and column.short is not None else column.cell(row)
