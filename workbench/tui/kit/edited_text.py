"""A text that is edited: its lines, cursor and selection, and the changes that keys make."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal

from workbench.authoring.form.field_text import CellError, pieces_of, read_value
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import NUMBER, shown, toml_value
from workbench.show.spans import ELLIPSIS, EMPTY, Line, Role, Span, hanging_paragraph, part
from workbench.startup import late_pattern
from workbench.suite.problems import Problem

Place = tuple[int, int]
"""A line and a column, both from 0."""

Motion = Literal[
    "left", "right", "word_left", "word_right", "line_start", "line_end", "up", "down", "text_start", "text_end"
]

INDENT = 2
"""The distance between tab stops, in blanks."""

_WORD = late_pattern(r"\w+|[^\w\s]+")


class EditedText:
    """A text with a cursor and a selection.

    `anchor` is the other end of the selection. Without a selection, it equals the cursor."""

    def __init__(self, text: str, cursor: Place = (0, 0)) -> None:
        self.lines: list[str] = []
        self.cursor: Place = (0, 0)
        self.anchor: Place = (0, 0)
        self.first_changed_line = 0
        """The first line of the last change."""
        self.step = 0
        """The number of undo steps. Related changes, such as the letters of a word, are one step."""
        self._last: tuple[str, Place] = ("", (0, 0))
        self._line_end = "\n"
        self._goal_column: int | None = None
        self._set_lines(text)
        self.place_cursor(cursor)

    @property
    def text(self) -> str:
        """The whole text with its original line ends."""
        return self._line_end.join(self.lines)

    @property
    def selection(self) -> tuple[Place, Place]:
        """The start and the end of the selection."""
        return min(self.cursor, self.anchor), max(self.cursor, self.anchor)

    @property
    def selected(self) -> str:
        """The selected text, with line feeds as line ends."""
        (first, start), (last, end) = self.selection
        if first == last:
            return self.lines[first][start:end]
        return "\n".join((self.lines[first][start:], *self.lines[first + 1 : last], self.lines[last][:end]))

    def set_text(self, text: str) -> None:
        """Replace the text, for example after undo. The cursor goes to the first difference."""
        before = self.lines
        self._set_lines(text)
        same = _common_prefix_length(before, self.lines)
        self.first_changed_line = min(same, len(self.lines) - 1)
        old = before[same] if same < len(before) else ""
        self.place_cursor((self.first_changed_line, _common_prefix_length(old, self.lines[self.first_changed_line])))

    def place_cursor(self, place: Place, *, select: bool = False) -> None:
        """Move the cursor to a place, or to the nearest place in the text. With `select`, extend the selection."""
        line = min(max(place[0], 0), len(self.lines) - 1)
        self._place_cursor((line, min(max(place[1], 0), len(self.lines[line]))), select)

    def move(self, motion: Motion, *, select: bool = False, times: int = 1) -> None:
        """Move the cursor. `up` and `down` move by `times` lines. With `select`, extend the selection."""
        if motion in ("left", "right") and not select and self.cursor != self.anchor:
            self._place_cursor(self.selection[motion == "right"], select)
        elif motion in ("up", "down"):
            # Repeated `up` and `down` return to the cell where they began, even after shorter lines.
            goal = self._goal_column
            if goal is None:
                goal = shown(self.lines[self.cursor[0]]).cells[self.cursor[1]]
            line = self.cursor[0] + times
            if motion == "up":
                line = self.cursor[0] - times
            if line < 0:
                self.place_cursor((0, 0), select=select)
            elif line >= len(self.lines):
                self.place_cursor((line, len(self.lines[-1])), select=select)
            else:
                self.place_cursor((line, column_at(self.lines[line], goal)), select=select)
            self._goal_column = goal
        else:
            self._place_cursor(self._target(motion), select)

    def select_all(self) -> None:
        self.place_cursor((0, 0))
        self.move("text_end", select=True)

    def select_word(self) -> None:
        line, column = self.cursor
        for word in _WORD.finditer(self.lines[line]):
            if word.start() <= column < word.end():
                self.place_cursor((line, word.start()))
                self.place_cursor((line, word.end()), select=True)

    def type(self, text: str) -> None:
        """Replace the selection by `text`, which may have any kind of line ends."""
        self._replace(*self.selection, text.replace("\r\n", "\n").replace("\r", "\n"))

    def new_line(self) -> None:
        """Insert a line break, and indent the new line like the previous one."""
        (line, column), _ = self.selection
        before = self.lines[line][:column]
        self.type("\n" + before[: len(before) - len(before.lstrip())])

    def indent(self) -> None:
        """Insert blanks up to the next tab stop, or indent all selected lines."""
        first, last = self._selected_lines()
        if first == last:
            self.type(" " * (INDENT - self.selection[0][1] % INDENT))
            return
        lines = []
        for line in self.lines[first : last + 1]:
            lines.append(" " * INDENT + line if line.strip() else line)
        self._reindent(first, lines)

    def outdent(self) -> None:
        """Remove up to `INDENT` blanks from the start of each selected line."""
        first, last = self._selected_lines()
        lines = []
        for line in self.lines[first : last + 1]:
            blanks = len(line) - len(line.lstrip(" "))
            lines.append(line[min(INDENT, blanks) :])
        self._reindent(first, lines)

    def delete(self, motion: Motion) -> None:
        """Delete the selection, or else the text from the cursor to the target of a motion."""
        if self.cursor == self.anchor:
            target = self._target(motion)
            if target != self.cursor:
                self._replace(min(self.cursor, target), max(self.cursor, target), "")
        else:
            self._replace(*self.selection, "")

    def cut(self) -> str:
        """Remove and return the selection, or else the whole line."""
        if self.cursor == self.anchor:
            line = self.cursor[0]
            last = line == len(self.lines) - 1
            self.anchor = (line, 0)
            self.cursor = (line + 1, 0)
            if last:
                self.cursor = (line, len(self.lines[line]))
        removed = self.selected
        self._replace(*self.selection, "")
        return removed

    def _set_lines(self, text: str) -> None:
        # If the text has different line ends, a carriage return counts as a part of its line, so that unchanged lines
        # stay as they are.
        everywhere = 0 < text.count("\n") == text.count("\r\n")
        self._line_end = "\r\n" if everywhere else "\n"
        self.lines = text.split(self._line_end)

    def _replace(self, start: Place, end: Place, text: str) -> None:
        self._update_undo_step(start, end, text)
        new = text.split("\n")
        column = len(new[-1])
        if len(new) == 1:
            # Without a line break, the new text ends in the line where it begins, after that line's unchanged start.
            column += start[1]
        new[0] = self.lines[start[0]][: start[1]] + new[0]
        new[-1] += self.lines[end[0]][end[1] :]
        self.lines[start[0] : end[0] + 1] = new
        self.first_changed_line = start[0]
        self._place_cursor((start[0] + len(new) - 1, column), False)
        self._last = self._last[0], self.cursor

    def _update_undo_step(self, start: Place, end: Place, text: str) -> None:
        """Begin a new undo step, unless putting `text` in place of `start` to `end` continues the previous step."""
        # Typing a word letter by letter is one step, and so is a series of deletions at one place. A paste, a line
        # break and the replacement of a selection are steps of their own (kind "").
        kind = "deleted"
        if text:
            kind = "typed"
        if len(text) > 1 or text == "\n" or (text and start != end):
            kind = ""
        kind_before, place = self._last
        new_word = kind == "typed" and not text.isspace() and self.lines[start[0]][: start[1]][-1:].isspace()
        if not kind or kind != kind_before or self.cursor != place or new_word:
            self.step += 1
        self._last = kind, start

    def _reindent(self, first: int, lines: list[str]) -> None:
        """Replace lines by the same lines with a different indentation.

        Cursor and anchor stay at their characters, except at the start of a line, where they stay at the start."""
        before = self.lines[first : first + len(lines)]
        self.lines[first : first + len(lines)] = lines
        self.first_changed_line = first
        self.step += 1
        ends = []
        for line, column in (self.anchor, self.cursor):
            if column and first <= line < first + len(lines):
                column = max(column + len(self.lines[line]) - len(before[line - first]), 0)
            ends.append((line, column))
        self._place_cursor(ends[0], False)
        self._place_cursor(ends[1], True)

    def _selected_lines(self) -> tuple[int, int]:
        (first, _), (last, end) = self.selection
        if end == 0 and last > first:
            # A selection that ends at the start of a line excludes the line.
            last -= 1
        return first, last

    def _place_cursor(self, place: Place, select: bool) -> None:
        self.cursor = place
        self._goal_column = None
        if not select:
            self.anchor = place

    def _target(self, motion: Motion) -> Place:
        line, column = self.cursor
        text = self.lines[line]
        last = len(self.lines) - 1
        match motion:
            case "left" | "word_left" if column == 0:
                if line:
                    return (line - 1, len(self.lines[line - 1]))
                return (0, 0)
            case "right" | "word_right" if column == len(text):
                if line < last:
                    return (line + 1, 0)
                return (line, column)
            case "left":
                return line, self._character_edge(column - 1, -1)
            case "right":
                return line, self._character_edge(column + 1, 1)
            case "word_left":
                return line, max((word.start() for word in _WORD.finditer(text[:column])), default=0)
            case "word_right":
                word = _WORD.search(text, column)
                return line, word.end() if word is not None else len(text)
            case "line_start":
                inner = len(text) - len(text.lstrip())
                return line, 0 if column == inner else inner
            case "line_end":
                return line, len(text)
            case "text_start":
                return 0, 0
            case _:
                return last, len(self.lines[last])

    def _character_edge(self, column: int, step: int) -> int:
        """From `column`, go in the direction `step` to the next column that is not inside a combined character.

        A letter followed by a combining accent, for example, is one character."""
        cells = shown(self.lines[self.cursor[0]]).cells
        while 0 < column < len(cells) - 1 and cells[column] == cells[column + 1]:
            column += step
        return column


def _common_prefix_length(before: Sequence[str], after: Sequence[str]) -> int:
    same = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        same += 1
    return same


def column_at(line: str, cell: int) -> int:
    """Return the column of the character at a cell of a line. After the end of the line, return the end."""
    places = shown(line).cells
    if cell < places[-1]:
        return max(bisect_right(places, cell) - 1, 0)
    return len(line)


def shift_for(line: str, column: int, max_width: int, shift: int) -> int:
    """Return how many cells a line is scrolled to the left so that the cursor is visible in `max_width` cells.

    If the cursor is visible with the current `shift`, return `shift`."""
    places = shown(line).cells
    # The cursor needs one more cell after the end of the line.
    width = places[-1] + 1
    if width <= max_width:
        return 0
    start = places[column]
    end = places[column + 1] if column < len(line) else width
    # An ellipsis takes one cell at each side where the line continues, and the cursor must not be there. When the line
    # has to be shifted, two thirds of the room are left of the cursor.
    if shift + bool(shift) <= start and end <= shift + max_width - (shift + max_width < width):
        return shift
    return min(max(start - max_width * 2 // 3, end - max_width + 1, 0), width - max_width)


def window(painted: Line, line: str, shift: int, max_width: int) -> Line:
    """Return the visible part of a coloured line: `max_width` cells, beginning with the cell `shift`.

    An ellipsis marks each side where the line continues. `painted` is `line` in colour, followed by one cell for a
    cursor at the end."""
    _, at, places = shown(line)
    first, left = 0, EMPTY
    if shift:
        first = bisect_left(places, shift + 1)
        left = (Span(ELLIPSIS, "muted"), Span(" " * (places[first] - shift - 1)))
    if places[-1] < shift + max_width:
        return (*left, *part(painted, at[first], None))
    if places[-1] == shift + max_width:
        return (*left, *part(painted, at[first], at[-1]))
    # If a wide character is cut at the edge of the window, blanks fill its cells.
    last = bisect_right(places, shift + max_width - 1) - 1
    gap = " " * (shift + max_width - 1 - places[last])
    return (*left, *part(painted, at[first], at[last]), Span(gap), Span(ELLIPSIS, "muted"))


_MARK = f"{GLYPHS.breakpoint} "


def with_breakpoint(line: Line) -> Line:
    """Put the mark of a breakpoint into a line's indentation. Return the line unchanged if it has too few blanks."""
    first = line[0] if line else None
    if first is None or not first.text.isspace() or len(first.text) < len(_MARK):
        return line
    return (Span(first.text[: -len(_MARK)]), Span(_MARK, "failed"), *line[1:])


def line_within(problem: Problem, first: int, count: int) -> int:
    """Return the line of a problem (from 0) in a part of a file.

    The part has `count` lines. Its first line has the number `first` in the file."""
    return min(max((problem.line or first) - first, 0), count - 1)


def marks(problems: Sequence[Problem], first: int, count: int) -> Mapping[int, Role]:
    """Return the colour role of each line that has a problem, by line (from 0) of a part of a file.

    The part has `count` lines. Its first line has the number `first` in the file."""
    # If a line has errors and warnings, the last problem decides, so errors come last.
    ordered = sorted(problems, key=lambda problem: problem.severity == "error")
    return {line_within(problem, first, count): _role(problem) for problem in ordered}


def problem_lines(problems: Sequence[Problem], width: int) -> tuple[list[Line], list[int]]:
    """Return problems as lines of at most `width` cells. Also return, for each line, the index of its problem."""
    lines: list[Line] = []
    about: list[int] = []
    for index, problem in enumerate(problems):
        role = _role(problem)
        sign = GLYPHS.error if role == "error" else GLYPHS.warned
        place = f"{problem.line} " if problem.line else ""
        room = max(width - len(place) - 3, 10)
        rows = hanging_paragraph((Span(" "), Span(f"{sign} {place}", role)), problem.message, role, room)
        if problem.hint:
            rows += hanging_paragraph((Span(" " * (len(place) + 3)),), problem.hint, "muted", room)
        lines += rows
        about += [index] * len(rows)
    return lines, about


def _role(problem: Problem) -> Role:
    if problem.severity == "error":
        return "error"
    return "warned"


MAX_SHOWN_LINES = 5_000
"""The maximum number of displayed lines of a whole file."""

MAX_LINE_CHARS = 20_000
"""The maximum number of displayed characters of a line."""

Found = Mapping[int, Sequence[tuple[int, int, Role]]]
"""The matches of a search by line (from 0): start column, end column and role."""


_NUMBER = late_pattern(rf"(?:{NUMBER})?\.\.(?:{NUMBER})?|{NUMBER}")
"""A number, or a range of numbers."""


def value_line(text: str, *, several: bool = False) -> Line:
    """Return the text of a form's cell in the colours of its value. `several` values are separated by commas."""
    # Text that looks like a number or a literal is quoted in a cell, so the spelling alone decides the colour.
    if several:
        spans: list[Span] = []
        for piece in pieces_of(text):
            spans += [*value_line(piece), Span(",", "muted")]
        return tuple(spans[:-1])
    bare = text.strip()
    if bare.startswith(("[", "{")) and not isinstance(_read(bare), str):
        coloured: list[Span] = []
        for part_text, role in toml_value(text):
            coloured.append(Span(part_text, "string" if role == "text" else role))
        return tuple(coloured)
    if _NUMBER.fullmatch(bare):
        return (Span(text, "number"),)
    if bare in ("true", "false", "null"):
        return (Span(text, "literal"),)
    return (Span(text, "string"),)


def _read(text: str) -> object:
    try:
        return read_value(text)
    except CellError:
        return None
