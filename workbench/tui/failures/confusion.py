"""The confusion table at a given width: the first column is fixed, the others scroll."""

from __future__ import annotations

from rich.cells import cell_len

from workbench.analysis.confusion import Confusion
from workbench.reports.failures import NO_CALL, NOT_EXPECTED
from workbench.reports.visible import one_line
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Line, Role, Span, cut, padded

WIDEST_NAME = 32
"""The maximum width of a tool's name in the table."""

_GAP = 2


class ConfusionTable:
    """Expected tools as rows, called tools as columns."""

    def __init__(self, confusion: Confusion) -> None:
        self._counts = confusion.counts
        self._rows, self._columns = confusion.rows, confusion.columns
        self._names = [_name(row, NOT_EXPECTED) for row in self._rows]
        self._heads = [_name(column, NO_CALL) for column in self._columns]

    def last_first(self, width: int) -> int:
        """Return the first column to show so that the last one is visible, 0 if all fit."""
        room = width - self._side(width) - 1
        first = len(self._heads)
        while first > 0 and (room := room - cell_len(self._heads[first - 1]) - _GAP) >= 0:
            first -= 1
        return min(first, max(len(self._heads) - 1, 0))

    def lines(self, width: int, first: int) -> list[Line]:
        """Return the table from column `first` on, with as many columns as fit and at least one."""
        side, columns, heads = self._side(width), self._columns, self._heads
        shown = self._shown(width - side - 1, first)
        widest = max(width - side - 1 - _GAP, 1)
        lines: list[Line] = []
        if len(shown) < len(columns):
            numbers = f"column {first + 1}" if len(shown) == 1 else f"columns {first + 1} to {shown.stop}"
            scroll = f"{GLYPHS.result} {GLYPHS.call} scroll"
            lines.append((Span(cut(f" {numbers} of {len(columns)} {GLYPHS.dot} {scroll}", width), "muted"),))
        head = [Span(f" {padded('expected', side)}", "muted")]
        head += [Span(f"  {cut(heads[at], widest)}", "heading" if columns[at] else "warned") for at in shown]
        lines.append(tuple(head))
        for row, name in zip(self._rows, self._names, strict=True):
            spans = [Span(f" {padded(name, side)}", "tool" if row else "warned")]
            for at in shown:
                count = self._counts.get((row, columns[at]), 0)
                role: Role = "muted" if not count else "passed" if row == columns[at] else "failed" if row else "warned"
                said = f"{count:,}" if count else GLYPHS.dot
                spans.append(Span(f"  {said:>{min(cell_len(heads[at]), widest)}}", role))
            lines.append(tuple(spans))
        return lines

    def _shown(self, room: int, first: int) -> range:
        stop = first
        while stop < len(self._heads) and (room := room - cell_len(self._heads[stop]) - _GAP) >= 0:
            stop += 1
        return range(first, min(max(stop, first + 1), len(self._heads)))

    def _side(self, width: int) -> int:
        """Return the width of the first column."""
        return min(max(map(cell_len, (*self._names, "expected"))), max(width // 2 - _GAP, 8))


def _name(tool: str | None, otherwise: str) -> str:
    return cut(one_line(tool), WIDEST_NAME) if tool is not None else otherwise
