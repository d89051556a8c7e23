"""How a breakpoint is marked in the lines of runs and forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.suite.problems import Problem
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.prose import paragraph
from workbench.tui.lines.spans import Line, Role, Span

_MARK = f"{GLYPHS.breakpoint} "


def with_breakpoint(line: Line) -> Line:
    """A line with the mark in the blanks that it begins with; without enough of them, the line as it is."""
    first = line[0] if line else None
    if first is None or not first.text.isspace() or len(first.text) < len(_MARK):
        return line
    return (Span(first.text[: -len(_MARK)]), Span(_MARK, "failed"), *line[1:])


def line_within(problem: Problem, first: int, count: int) -> int:
    """The line, from 0, of a part of `count` lines at which a problem stands."""
    return min(max((problem.line or first) - first, 0), count - 1)


def marks(problems: Sequence[Problem], first: int, count: int) -> Mapping[int, Role]:
    """Which lines, from 0, something is wrong with, errors before warnings."""
    ordered = sorted(problems, key=lambda problem: problem.severity == "error")
    return {line_within(problem, first, count): _role(problem) for problem in ordered}


def problem_lines(problems: Sequence[Problem], width: int) -> tuple[list[Line], list[int]]:
    """The problems in lines of `width` cells, and which one each line is about."""
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
