"""Required arguments: they must hold, whatever the score of the run is."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.grading.grade import Grade, Issue
from workbench.suite.model import Case

_EVERY: frozenset[str] = frozenset()


def with_required(case: Case, grade: Grade) -> tuple[Issue, ...]:
    """Returns the issues of a grade, where issues about a required argument that does not hold decide, and the pairings
    with each verdict marked as required or not.

    A call that was not made fulfils none of its arguments. Where a rule of `critics` decided before anything was
    scored, the run has already failed without them.
    """
    if not grade.issues or not grade.numbers:
        return grade.issues
    broken = _broken(case, grade)
    return tuple(_deciding(issue, broken) for issue in grade.issues) if broken else grade.issues


def _broken(case: Case, grade: Grade) -> Mapping[int, frozenset[str]]:
    """Returns the required arguments that do not hold, by expected call; without names where the call was not made."""
    broken: dict[int, frozenset[str]] = {}
    for line in grade.pairings:
        if line.expected_call is None:
            continue
        names = frozenset(verdict.argument for verdict in line.arguments if verdict.required and not verdict.holds)
        if line.call is None and (names or _requires_some(case, line.expected_call)):
            broken[line.expected_call] = _EVERY
        elif names:
            broken[line.expected_call] = names
    return broken


def _requires_some(case: Case, expected_call: int) -> bool:
    checks = case.expected_calls()[expected_call].args or {}
    return any(check.required and not check.optional for check in checks.values())


def _deciding(issue: Issue, broken: Mapping[int, frozenset[str]]) -> Issue:
    names = broken.get(issue.expected_call) if issue.expected_call is not None else None
    if names is None or (issue.argument is not None and issue.argument not in names):
        return issue
    return issue._replace(decides=True)
