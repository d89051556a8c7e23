"""A case (or the head of its suite) as its own TOML: numbered lines, coloured, each problem below the line
it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.reports.visible import one_line, visible
from workbench.suite.loading import SuiteFile
from workbench.suite.problems import Problem
from workbench.tui.glyphs import GLYPHS
from workbench.tui.highlight import toml_lines
from workbench.tui.state.spans import EMPTY, Line, Role, Span, wrap, wrap_line
from workbench.tui.state.wrapped import TAB

LONGEST_SHOWN = 5_000
"""Lines of a file that are shown when no single case is."""


@dataclass(frozen=True)
class Excerpt:
    """Some lines of a file: `first` is the number of the first one, from 1."""

    first: int
    lines: tuple[str, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def case_excerpt(file: SuiteFile, case_id: str) -> Excerpt | None:
    """The block of one case; `None` when the file has no such case."""
    cases = file.suite.cases if file.suite is not None else ()
    index = next((number for number, case in enumerate(cases) if case.id == case_id), None)
    if index is None:
        return None
    first, last = file.case_lines(index)
    return _excerpt(file, first, last)


def file_excerpt(file: SuiteFile) -> Excerpt:
    """What a suite says before its first case; all of a file that has errors."""
    last = LONGEST_SHOWN
    if file.suite is not None and file.suite.cases:
        last = file.case_lines(0)[0] - 1
    return _excerpt(file, 1, last)


def _excerpt(file: SuiteFile, first: int, last: int) -> Excerpt:
    lines = file.text.replace("\r\n", "\n").split("\n")[first - 1 : last]
    while lines and not lines[-1].strip():
        lines.pop()
    end = first + len(lines) - 1
    whole = file.suite is None
    problems = [problem for problem in file.problems if whole or first <= (problem.line or 1) <= end]
    return Excerpt(first, tuple(lines), tuple(problems))


def excerpt_lines(excerpt: Excerpt, width: int) -> tuple[list[Line], dict[int, int]]:
    """The excerpt laid out at a width, and the row at which each of its file lines begins."""
    last = excerpt.first + len(excerpt.lines) - 1
    digits = max(len(str(last)), 2)
    gutter = digits + 3
    room = max(width - gutter, 10)
    below: dict[int, list[Problem]] = {}
    for problem in excerpt.problems:
        line = min(max(problem.line or excerpt.first, excerpt.first), max(last, excerpt.first))
        below.setdefault(line, []).append(problem)
    painted = toml_lines([visible(text.replace("\t", TAB)) for text in excerpt.lines])
    laid_out: list[Line] = []
    starts: dict[int, int] = {}
    for number, text_line in enumerate(painted, excerpt.first):
        starts[number] = len(laid_out)
        hang = min(_indent_of(text_line) + 2, room // 2)
        for at, row in enumerate(wrap_line(text_line, room, hang)):
            laid_out.append((Span(f" {number:>{digits}}  " if at == 0 else " " * gutter, "muted"), *row))
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
        rows.extend(_paragraph(f"{sign} ", said, role, gutter - 2, room))
        if problem.hint:
            rows.extend(_paragraph("", problem.hint, "muted", gutter, room))
    return rows


def _paragraph(sign: str, text: str, role: Role, indent: int, room: int) -> list[Line]:
    rows = wrap(one_line(text), room)
    lead = " " * indent
    return [(Span(lead), Span((sign if at == 0 else " " * len(sign)) + row, role)) for at, row in enumerate(rows)]


Message = tuple[tuple[str, Role], ...]
"""What an empty pane says: paragraphs, each with its meaning."""


def message_lines(texts: Message, width: int) -> list[Line]:
    """Paragraphs for an empty pane, with a margin; an empty text is a blank line."""
    rows: list[Line] = [EMPTY]
    for text, role in texts:
        rows.extend((Span("  "), Span(row, role)) for row in wrap(text, max(width - 4, 10)))
    return rows


def tree_message(filtered: str) -> Message:
    """What the tree says when it has no rows; `filtered` is the filter in force."""
    if filtered:
        return (("Nothing fits the filter.", "strong"), ("", "text"), ("Esc shows everything again.", "muted"))
    return (
        ("No suites here.", "strong"),
        ("", "text"),
        ("A suite is a TOML file whose first line is format = 1.", "muted"),
        ("Start workbench in a folder without suites, and without a path, to see the samples.", "muted"),
    )
