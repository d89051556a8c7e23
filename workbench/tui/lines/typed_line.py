"""How a line of text that is being edited looks: the text drawn for each character, and the part that is visible in a
window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from rich.cells import get_character_cell_size

from workbench.reports.visible import visible
from workbench.tui.lines.growing_text import TAB
from workbench.tui.lines.spans import ELLIPSIS, EMPTY, Line, Role, Span, plain

KEPT_LINES = 512


class ShownLine(NamedTuple):
    """The text drawn for a line. `at` is where each character of the line begins in `text`, `cells` in which cell. Both
    have one more item for the end."""

    text: str
    at: Sequence[int]
    cells: Sequence[int]


@lru_cache(KEPT_LINES)
def shown(line: str) -> ShownLine:
    """Return the text drawn for a line: tabs become blanks, and control characters become visible."""
    if line.isascii() and line.isprintable():
        same = range(len(line) + 1)
        return ShownLine(line, same, same)
    pieces = [TAB if char == "\t" else visible(char) for char in line]
    widths = (sum(map(get_character_cell_size, piece)) for piece in pieces)
    return ShownLine("".join(pieces), [0, *accumulate(map(len, pieces))], [0, *accumulate(widths)])


def column_at(line: str, cell: int) -> int:
    """Return the character of a line that is drawn in a cell, or the end of the line after the last cell."""
    places = shown(line).cells
    return max(bisect_right(places, cell) - 1, 0) if cell < places[-1] else len(line)


def shift_for(line: str, column: int, room: int, shift: int) -> int:
    """Return by how many cells to shift a line to the left so that the cursor is visible in `room` cells. Keeps `shift`
    if possible, so that little is redrawn. The cursor needs one cell after the end of the line."""
    places = shown(line).cells
    width = places[-1] + 1
    start, end = places[column], places[column + 1] if column < len(line) else width
    if width <= room:
        return 0
    if shift + bool(shift) <= start and end <= shift + room - (shift + room < width):
        return shift
    return min(max(start - room * 2 // 3, end - room + 1, 0), width - room)


def window(painted: Line, line: str, shift: int, room: int) -> Line:
    """Return the part of a coloured line that is visible in `room` cells from the cell `shift`, with an ellipsis where
    it continues. The coloured line is one cell longer than the text, for a cursor at its end."""
    _, at, places = shown(line)
    first = bisect_left(places, shift + 1) if shift else 0
    left = (Span(ELLIPSIS, "muted"), Span(" " * (places[first] - shift - 1))) if shift else EMPTY
    if places[-1] <= shift + room:
        return (*left, *part(painted, at[first], None if places[-1] < shift + room else at[-1]))
    last = bisect_right(places, shift + room - 1) - 1
    gap = " " * (shift + room - 1 - places[last])
    return (*left, *part(painted, at[first], at[last]), Span(gap), Span(ELLIPSIS, "muted"))


def part(line: Line, start: int, end: int | None) -> Line:
    """Return the characters of a line between two indices."""
    spans: list[Span] = []
    position = 0
    for span in line:
        piece = span.text[max(start - position, 0) : None if end is None else max(end - position, 0)]
        if piece:
            spans.append(Span(piece, span.role))
        position += len(span.text)
    return tuple(spans)


def recoloured(line: Line, start: int, end: int, role: Role) -> Line:
    """Give the characters between two indices a different role."""
    middle = plain(part(line, start, end))
    return (*part(line, 0, start), Span(middle, role), *part(line, end, None)) if middle else line
