"""The TOML of a case, or of the head of its suite: numbered, coloured lines, each problem below its line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workbench.authoring.document import HEAD
from workbench.authoring.open_suite import OpenSuite
from workbench.reports.visible import one_line
from workbench.suite.numerals import counted
from workbench.suite.positions import scan
from workbench.suite.problems import Place, Problem
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.highlight import toml_lines
from workbench.tui.lines.prose import LONGEST_LINE, LONGEST_SHOWN, Found, Message, paragraph
from workbench.tui.lines.spans import ELLIPSIS, Line, Role, Span, wrap_line
from workbench.tui.lines.typed_line import recoloured, shown
from workbench.tui.tree.state import TreeState


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file. `first` is the number of the first one, from 1."""

    first: int
    lines: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def case_excerpt(suite: OpenSuite, index: int) -> Excerpt:
    """Return the text of one case with line numbers of the file, or the whole file if cases are not in blocks."""
    document = suite.document
    if not document.in_blocks:
        return file_excerpt(suite)
    return _excerpt(suite, document.first_line(index), document.block(index), index)


def step_line(suite: OpenSuite, index: int, number: int) -> int | None:
    """Return the line of a case's excerpt, from 0, where a step (counted from 1) begins, `None` if that is unknown at
    the moment."""
    document = suite.document
    if document.parts is None or index in document.loose:
        return None
    in_blocks = document.in_blocks
    place: Place = ("cases", 0 if in_blocks else index, "steps", number - 1)
    return scan(document.block(index) if in_blocks else document.text).line(place) - 1


def file_excerpt(suite: OpenSuite) -> Excerpt:
    """Return the text before the first case, or the whole file if it is not TOML or not in blocks."""
    document = suite.document
    if document.in_blocks:
        return _excerpt(suite, 1, document.block(HEAD), HEAD)
    return _excerpt(suite, 1, document.text, None)


def _excerpt(suite: OpenSuite, first: int, text: str, index: int | None) -> Excerpt:
    lines = text.replace("\r\n", "\n").split("\n")[:LONGEST_SHOWN]
    while lines and not lines[-1].strip():
        lines.pop()
    problems = suite.file.problems if index is None else suite.problems_of(index)
    return Excerpt(first, tuple(lines), tuple(problems))


def excerpt_lines(
    excerpt: Excerpt, width: int, found: Found = MappingProxyType({})
) -> tuple[list[Line], dict[int, int]]:
    """Lay out an excerpt at a width. Also returns the row where each line of the file begins."""
    last = excerpt.first + len(excerpt.lines) - 1
    digits = max(len(str(last)), 2)
    gutter = digits + 3
    room = max(width - gutter, 10)
    below: dict[int, list[Problem]] = {}
    for problem in excerpt.problems:
        line = min(max(problem.line or excerpt.first, excerpt.first), max(last, excerpt.first))
        below.setdefault(line, []).append(problem)
    shown_lines = [shown(text[:LONGEST_LINE]) for text in excerpt.lines]
    painted = toml_lines([line.text for line in shown_lines])
    laid_out: list[Line] = []
    starts: dict[int, int] = {}
    for number, text_line in enumerate(painted, excerpt.first):
        starts[number] = len(laid_out)
        hang = min(_indent_of(text_line) + 2, room // 2)
        at = shown_lines[number - excerpt.first].at
        for begin, end, role in found.get(number - excerpt.first, ()):
            if end < len(at):
                text_line = recoloured(text_line, at[begin], at[end], role)
        more = len(excerpt.lines[number - excerpt.first]) - LONGEST_LINE
        if more > 0:
            text_line = (*text_line, Span(f" {ELLIPSIS} {more:,} characters more", "muted"))
        for nth, row in enumerate(wrap_line(text_line, room, hang)):
            laid_out.append((Span(f" {number:>{digits}}  " if nth == 0 else " " * gutter, "muted"), *row))
        laid_out.extend(_problem_rows(below.pop(number, ()), gutter, room))
    for problems in below.values():
        laid_out.extend(_problem_rows(problems, gutter, room))
    return laid_out, starts


def _indent_of(line: Line) -> int:
    text = line[0].text if line else ""
    return len(text) - len(text.lstrip())


def _problem_rows(problems: Sequence[Problem], gutter: int, room: int) -> list[Line]:
    rows: list[Line] = []
    for problem in problems:
        role: Role = "error" if problem.severity == "error" else "warned"
        sign = GLYPHS.error if problem.severity == "error" else GLYPHS.warned
        said = f"{problem.where}: {problem.message}" if problem.where else problem.message
        rows.extend(paragraph(f"{sign} ", said, role, gutter - 2, room))
        if problem.hint:
            rows.extend(paragraph("", problem.hint, "muted", gutter, room))
    return rows


@dataclass(frozen=True)
class CasePicture:
    """The content of the case pane: an excerpt or a message. `line` is where to begin."""

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
    return CasePicture(row.open.path.name, file_excerpt(row.open), line=row.problem.line if row.problem else None)


def _folder_message(below: Sequence[tuple[OpenSuite, tuple[str, ...]]]) -> Message:
    lines: list[tuple[str, Role]] = [(f"{counted(len(below), 'suite')} to run", "strong"), ("", "text")]
    lines += [(f"{one_line(suite.path.name)}  {counted(len(keys), 'case')}", "text") for suite, keys in below]
    return tuple(lines)
