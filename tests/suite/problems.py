"""Helpers for tests of problems: a `#!` in a text marks the line of the expected problem."""

from __future__ import annotations

from tests.suite.examples import CASE, PATH, parsed
from workbench.suite.problems import Problem, Severity

CALL = CASE + '[[cases.ordered]]\ntool = "t"\n'


def marked_line(text: str) -> int:
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "#!" in line]
    assert len(lines) == 1, "mark one line with #!"
    return lines[0]


def problems_of(text: str, severity: Severity) -> list[Problem]:
    return [problem for problem in parsed(text).problems if problem.severity == severity]


def assert_only_problem(text: str, where: str, says: str, hint: str, severity: Severity = "error") -> None:
    found = problems_of(text, severity)
    assert [(problem.line, problem.where) for problem in found] == [(marked_line(text), where)], [*map(str, found)]
    assert says in found[0].message
    assert hint in found[0].hint
    assert found[0].file == PATH
