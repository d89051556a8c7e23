"""A text that is being edited, as rows: the cells of its lines, the line with the cursor, marks of problems."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from rich.cells import get_character_cell_size

from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import ELLIPSIS, EMPTY, Line, Role, Span, cut, plain
from workbench.show.visible import visible
from workbench.suite.problems import Problem
from workbench.tui.lines.json_lines import JoinedLines, LazyLines
from workbench.tui.lines.laid_out import DISPLAY_LIMIT, TAB, GrowingText
from workbench.tui.lines.prose import behind


class TextLines(LazyLines):
    """The rows of a text as lines, built on demand, since streamed text can be long."""

    def __init__(self, rows: list[str], indent: int, role: Role) -> None:
        self._rows = rows
        self._indent = Span(" " * indent)
        self._role = role
        self._count = next((at for at in range(len(rows), 0, -1) if rows[at - 1].strip()), 0)

    def __len__(self) -> int:
        return self._count

    def line(self, index: int) -> Line:
        return self._indent, Span(self._rows[index], self._role)


def text_rows(text: GrowingText, width: int, limit: int | None, role: Role, indent: int) -> Sequence[Line]:
    """Return the wrapped rows of a text, indented, at most `limit` of them. The last one describes what is not
    shown."""
    rows = text.rows(width - indent)
    lead = Span(" " * indent)
    if limit == 1 and len(rows) > 1:
        return [(lead, Span(cut(rows[0] + " " + rows[1], width - indent), role))]
    lines = TextLines(rows, indent, role)
    # A note in place of a single line would save nothing.
    if limit is not None and len(lines) > limit + (0 if text.hidden else 1):
        note = f"{GLYPHS.running} {counted(len(lines) - limit, 'more line')}, Enter shows them"
        if text.hidden:
            note = f"{GLYPHS.running} {text.hidden + DISPLAY_LIMIT:,} characters in all, Enter shows more"
        return [*lines[:limit], (lead, Span(cut(note, width - indent), "comment"))]
    if not text.hidden:
        return lines
    note = f"{GLYPHS.running} {text.hidden:,} more characters; y copies all of them"
    return JoinedLines([lines, [(lead, Span(cut(note, width - indent), "comment"))]])


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


_MARK = f"{GLYPHS.breakpoint} "


def with_breakpoint(line: Line) -> Line:
    """Put the mark of a breakpoint into the blanks at the start of a line. A line without enough blanks stays as
    it is."""
    first = line[0] if line else None
    if first is None or not first.text.isspace() or len(first.text) < len(_MARK):
        return line
    return (Span(first.text[: -len(_MARK)]), Span(_MARK, "failed"), *line[1:])


def line_within(problem: Problem, first: int, count: int) -> int:
    """Return the line, from 0, that a problem is on, within a part of `count` lines."""
    return min(max((problem.line or first) - first, 0), count - 1)


def marks(problems: Sequence[Problem], first: int, count: int) -> Mapping[int, Role]:
    """Return the lines, from 0, that have a problem. Errors win over warnings."""
    ordered = sorted(problems, key=lambda problem: problem.severity == "error")
    return {line_within(problem, first, count): _role(problem) for problem in ordered}


def problem_lines(problems: Sequence[Problem], width: int) -> tuple[list[Line], list[int]]:
    """Return the problems as lines of `width` cells, and the index of the problem for each line."""
    lines: list[Line] = []
    about: list[int] = []
    for index, problem in enumerate(problems):
        role = _role(problem)
        sign = GLYPHS.error if role == "error" else GLYPHS.warned
        place = f"{problem.line} " if problem.line else ""
        room = max(width - len(place) - 3, 10)
        rows = behind((Span(" "), Span(f"{sign} {place}", role)), problem.message, role, room)
        if problem.hint:
            rows += behind((Span(" " * (len(place) + 3)),), problem.hint, "muted", room)
        lines += rows
        about += [index] * len(rows)
    return lines, about


def _role(problem: Problem) -> Role:
    return "error" if problem.severity == "error" else "warned"
