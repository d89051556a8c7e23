"""Required arguments of expected calls. Their checks must hold regardless of the score of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.grading.grade import CallPairing, Grade, Issue
from workbench.suite.model import Case


def with_required(case: Case, grade: Grade) -> tuple[Issue, ...]:
    """Return the issues of a grade, changed so that an unmet required argument fails the run."""
    # A grade has no numbers if a rule of `critics` decided before scoring. Such a run has failed anyway.
    if not grade.issues or not grade.numbers:
        return grade.issues
    broken = _broken(case, grade)
    if broken:
        return tuple(_deciding(issue, broken) for issue in grade.issues)
    return grade.issues


def _broken(case: Case, grade: Grade) -> Mapping[int, frozenset[str]]:
    broken: dict[int, frozenset[str]] = {}
    for line in grade.pairings:
        if line.expected_call is None:
            continue
        names = frozenset(_broken_arguments(line))
        # A missing call meets none of its required arguments. Its single issue names no argument.
        if line.call is None and (names or _requires_some(case, line.expected_call)):
            broken[line.expected_call] = frozenset()
        elif names:
            broken[line.expected_call] = names
    return broken


def _broken_arguments(line: CallPairing) -> Iterator[str]:
    for verdict in line.arguments:
        if verdict.required and not verdict.holds:
            yield verdict.argument


def _requires_some(case: Case, expected_call: int) -> bool:
    checks = case.expected_calls()[expected_call].args or {}
    return any(check.required and not check.optional for check in checks.values())


def _deciding(issue: Issue, broken: Mapping[int, frozenset[str]]) -> Issue:
    if issue.expected_call is None or issue.expected_call not in broken:
        return issue
    if issue.argument is not None and issue.argument not in broken[issue.expected_call]:
        return issue
    return issue._replace(decides=True)
