"""Marks of breakpoints and problems in the lines of runs and forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.suite.problems import Problem
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.prose import paragraph
from workbench.tui.lines.spans import Line, Role, Span

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
        rows = paragraph(f"{sign} {place}", problem.message, role, 1, max(width - len(place) - 3, 10))
        if problem.hint:
            rows += paragraph("", problem.hint, "muted", len(place) + 3, max(width - len(place) - 3, 10))
        lines += rows
        about += [index] * len(rows)
    return lines, about


def _role(problem: Problem) -> Role:
    return "error" if problem.severity == "error" else "warned"
