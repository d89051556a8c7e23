"""The read-only TOML in the case pane: a case, the settings, or a whole suite, with problems below their lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

from textual.message import Message as TextualMessage

from workbench.authoring.document import HEAD
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.numerals import count_text, counted
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import shown, toml_lines
from workbench.show.spans import (
    ELLIPSIS,
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    hanging_paragraph,
    message_lines,
    padded,
    recoloured,
    wrap_line,
)
from workbench.show.visible import one_line, widest_cells
from workbench.suite.positions import scan
from workbench.suite.problems import Problem
from workbench.tui.kit.edited_text import MAX_LINE_CHARS, MAX_SHOWN_LINES, Found
from workbench.tui.kit.line_view import LineView
from workbench.tui.terminal.theme import Ground
from workbench.tui.tree.state import TreeState


@dataclass(frozen=True)
class Excerpt:
    """Consecutive lines of a file. `first` is the number of the first line (from 1)."""

    first: int
    lines: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def case_excerpt(suite: OpenSuite, index: int) -> Excerpt:
    """Return the TOML of one case. If the file does not have a `[[cases]]` block per case, return the whole file."""
    document = suite.document
    if not document.in_blocks:
        return file_excerpt(suite)
    return _excerpt(suite, document.first_line(index), document.block(index), index)


def step_line(suite: OpenSuite, index: int, number: int) -> int | None:
    """Return the line of a case's excerpt (from 0) where step `number` (from 1) begins.

    Returns `None` if the text is not valid TOML."""
    document = suite.document
    if document.parts is None or index in document.unparsed:
        return None
    text = document.text
    if document.in_blocks:
        # Each block is scanned alone, so the case has index 0.
        text, index = document.block(index), 0
    return scan(text).line(("cases", index, "steps", number - 1)) - 1


def file_excerpt(suite: OpenSuite) -> Excerpt:
    """Return the suite's settings: the TOML before the first case.

    If cases are not `[[cases]]` blocks, or the text is not valid TOML, return the whole file."""
    document = suite.document
    if document.in_blocks:
        return _excerpt(suite, 1, document.block(HEAD), HEAD)
    return _excerpt(suite, 1, document.text, None)


def _excerpt(suite: OpenSuite, first: int, text: str, index: int | None) -> Excerpt:
    lines = text.replace("\r\n", "\n").split("\n")[:MAX_SHOWN_LINES]
    while lines and not lines[-1].strip():
        lines.pop()
    problems = suite.file.problems
    if index is not None:
        problems = suite.problems_of(index)
    return Excerpt(first, tuple(lines), tuple(problems))


def excerpt_lines(
    excerpt: Excerpt, width: int, found: Found = MappingProxyType({})
) -> tuple[list[Line], dict[int, int]]:
    """Lay out an excerpt as lines of at most `width` cells.

    The returned mapping has, by line number of the file, the index of the first laid-out line."""
    last = excerpt.first + len(excerpt.lines) - 1
    digits = max(len(str(last)), 2)
    gutter = digits + 3
    room = max(width - gutter, 10)
    below: dict[int, list[Problem]] = {}
    for problem in excerpt.problems:
        # A problem may have no line or a line outside of the excerpt.
        line = min(max(problem.line or excerpt.first, excerpt.first), max(last, excerpt.first))
        below.setdefault(line, []).append(problem)
    shown_lines = [shown(text[:MAX_LINE_CHARS]) for text in excerpt.lines]
    # The lines are coloured together, because a string of TOML may span several lines.
    painted = toml_lines([line.text for line in shown_lines])
    laid_out: list[Line] = []
    starts: dict[int, int] = {}
    for index, text_line in enumerate(painted):
        number = excerpt.first + index
        starts[number] = len(laid_out)
        # The continuation of a wrapped line is indented by two more cells.
        hang = min(_indent_of(text_line) + 2, room // 2)
        at = shown_lines[index].at
        for begin, end, role in found.get(index, ()):
            if end < len(at):
                text_line = recoloured(text_line, at[begin], at[end], role)
        more = len(excerpt.lines[index]) - MAX_LINE_CHARS
        if more > 0:
            text_line = (*text_line, Span(f" {ELLIPSIS} {count_text(more)} characters more", "muted"))
        margin = f" {number:>{digits}}  "
        for row in wrap_line(text_line, room, hang):
            laid_out.append((Span(margin, "muted"), *row))
            margin = " " * gutter
        laid_out.extend(_problem_rows(below.pop(number, ()), gutter, room))
    for problems in below.values():
        laid_out.extend(_problem_rows(problems, gutter, room))
    return laid_out, starts


def _indent_of(line: Line) -> int:
    if not line:
        return 0
    text = line[0].text
    return len(text) - len(text.lstrip())


def _problem_rows(problems: Sequence[Problem], gutter: int, max_width: int) -> list[Line]:
    rows: list[Line] = []
    for problem in problems:
        role: Role = "warned"
        sign, text = GLYPHS.warned, problem.message
        if problem.severity == "error":
            sign, role = GLYPHS.error, "error"
        if problem.where:
            text = f"{problem.place}: {text}"
        rows.extend(hanging_paragraph((Span(" " * (gutter - 2)), Span(f"{sign} ", role)), text, role, max_width))
        if problem.hint:
            rows.extend(hanging_paragraph((Span(" " * gutter),), problem.hint, "muted", max_width))
    return rows


@dataclass(frozen=True)
class CasePicture:
    """The content of the case pane: an excerpt or a message. `line` is the line of the file to show first."""

    title: str
    excerpt: Excerpt | None
    message: Message = ()
    line: int | None = None


def case_picture(tree: TreeState) -> CasePicture:
    """Return the content of the case pane for the selected row."""
    row = tree.selected
    if row is None:
        return CasePicture("", None, (("Nothing is selected.", "muted"),))
    if row.case is not None and row.open is not None:
        return CasePicture(row.case.name, case_excerpt(row.open, row.case.index))
    if row.open is None:
        return CasePicture(row.label, None, _folder_message(tree.cases_below(row)))
    line: int | None = None
    if row.problem is not None:
        line = row.problem.line
    return CasePicture(row.open.path.name, file_excerpt(row.open), line=line)


_MAX_NAME_CELLS = 32
"""The maximum width of the column of names."""


def _folder_message(below: Sequence[tuple[OpenSuite, tuple[str, ...]]]) -> Message:
    lines: list[tuple[str, Role]] = [(f"{counted(len(below), 'suite')} to run", "strong"), ("", "text")]
    names = [one_line(suite.path.name) for suite, _ in below]
    widest = min(widest_cells(names), _MAX_NAME_CELLS)
    for name, (_, keys) in zip(names, below, strict=True):
        lines.append((f"{padded(name, widest)}  {counted(len(keys), 'case')}", "text"))
    return tuple(lines)


_NOTHING: Found = MappingProxyType({})


class CaseView(LineView):
    """The lines of an excerpt. Editing begins at the line under the cursor."""

    RESTING_GROUND: ClassVar[Ground] = "background"

    class Chosen(TextualMessage):
        """Posted when the line under the cursor is clicked."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.excerpt: Excerpt | None = None
        self._message: Message = ()
        self._found: Found = _NOTHING
        self._lines: list[Line] = []
        self._starts: dict[int, int] = {}
        self._laid_out_at = -1

    def show(self, excerpt: Excerpt | None, message: Message = (), line: int | None = None) -> None:
        """Show an excerpt, or a message if there is none. Move the cursor to `line` of the file, if given."""
        # If the first line is the same, the new excerpt is an edit of the previous one, and the cursor stays.
        before = self.excerpt
        if excerpt != before or message != self._message:
            previous: int | None = None
            if excerpt is not None and before is not None and excerpt.first == before.first:
                previous = self.line
            self.excerpt, self._message = excerpt, message
            self._laid_out_at = -1
            self.top = self.cursor = 0
            if previous is not None:
                self.go_to(previous)
        if line is not None and self.excerpt is not None:
            self.go_to(line - self.excerpt.first)
        self.repaint()

    def highlight(self, found: Found) -> None:
        if found != self._found:
            self._found, self._laid_out_at = found, -1
            self.repaint()

    @property
    def line(self) -> int:
        """The line of the excerpt under the cursor (from 0)."""
        self._lay_out()
        return max(bisect_right(list(self._starts.values()), self.cursor) - 1, 0)

    def go_to(self, line: int) -> None:
        """Move the cursor to a line of the excerpt (counted from 0), and show some lines above the cursor."""
        self._lay_out()
        starts = list(self._starts.values()) or [0]
        row = starts[min(max(line, 0), len(starts) - 1)]
        if not self.top <= row < self.top + self.size.height:
            self.top = max(row - self.size.height // 3, 0)
        self.move_cursor(row)

    @property
    def has_cursor(self) -> bool:
        return self.excerpt is not None

    def chosen(self, index: int) -> None:
        self.post_message(self.Chosen())

    def line_count(self) -> int:
        self._lay_out()
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        self._lay_out()
        if index < len(self._lines):
            return self._lines[index]
        return EMPTY

    def _lay_out(self) -> None:
        if self._laid_out_at == self.text_width:
            return
        self._laid_out_at = self.text_width
        if self.excerpt is not None:
            self._lines, self._starts = excerpt_lines(self.excerpt, self.text_width, self._found)
        else:
            self._lines, self._starts = list(message_lines(self._message, self.text_width)), {}
