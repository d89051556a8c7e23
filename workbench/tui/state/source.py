"""A case (or the head of its suite) as its own TOML: numbered lines, coloured, each problem below the line
it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from workbench.reports.visible import one_line
from workbench.suite.places import Place
from workbench.suite.positions import scan
from workbench.suite.problems import Problem
from workbench.tui.glyphs import GLYPHS
from workbench.tui.highlight import toml_lines
from workbench.tui.state.document import HEAD
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.spans import ELLIPSIS, EMPTY, Line, Role, Span, wrap, wrap_line
from workbench.tui.state.typed_line import recoloured, shown

LONGEST_SHOWN = 5_000
"""Lines of a file that are shown when no single case is."""

LONGEST_LINE = 20_000
"""Characters of a line that are shown."""


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file: `first` is the number of the first one, from 1."""

    first: int
    lines: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def case_excerpt(suite: OpenSuite, index: int) -> Excerpt:
    """The text of one case, its lines numbered as in the file; the whole file where cases are not in blocks."""
    document = suite.document
    if not document.in_blocks:
        return file_excerpt(suite)
    return _excerpt(suite, document.first_line(index), document.block(index), index)


def step_line(suite: OpenSuite, index: int, number: int) -> int | None:
    """The line of a case's excerpt, from 0, at which a step, counted from 1, begins; `None` where that cannot be said
    at the moment."""
    document = suite.document
    if document.parts is None or index in document.loose:
        return None
    in_blocks = document.in_blocks
    place: Place = ("cases", 0 if in_blocks else index, "steps", number - 1)
    return scan(document.block(index) if in_blocks else document.text).line(place) - 1


def file_excerpt(suite: OpenSuite) -> Excerpt:
    """What a suite says before its first case; all of a file that is not TOML, or not written in blocks."""
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


Found = Mapping[int, Sequence[tuple[int, int, Role]]]
"""What a search has found, by line, from 0: from which character to which, and what it is shown as."""


def excerpt_lines(
    excerpt: Excerpt, width: int, found: Found = MappingProxyType({})
) -> tuple[list[Line], dict[int, int]]:
    """The excerpt laid out at a width, and the row at which each of its file lines begins."""
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


def paragraph(sign: str, text: str, role: Role, indent: int, room: int) -> list[Line]:
    """A text in rows of `room` cells, behind a sign."""
    rows = wrap(one_line(text), room)
    lead = " " * indent
    return [(Span(lead), Span((sign if at == 0 else " " * len(sign)) + row, role)) for at, row in enumerate(rows)]


Message = tuple[tuple[str, Role], ...]
"""What an empty pane says: paragraphs, each with its meaning."""


@lru_cache(maxsize=16)
def message_lines(texts: Message, width: int) -> tuple[Line, ...]:
    """Paragraphs for an empty pane, with a margin; an empty text is a blank line."""
    rows: list[Line] = [EMPTY]
    for text, role in texts:
        rows.extend((Span("  "), Span(row, role)) for row in wrap(text, max(width - 4, 10)))
    return tuple(rows)


def tree_message(filtered: str) -> Message:
    """What the tree says when it has no rows; `filtered` is the filter in force."""
    if filtered:
        return (("Nothing fits the filter.", "strong"), ("", "text"), ("Esc shows everything again.", "muted"))
    return (
        ("No suites here.", "strong"),
        ("", "text"),
        ("N  makes one, n its first case", "text"),
        ("", "text"),
        ("A suite is a TOML file whose first line is format = 1.", "muted"),
        ("Started without a path, the workbench shows its samples in such a folder.", "muted"),
    )
