"""From a finished run to its grades and its status."""

from __future__ import annotations

from dataclasses import replace

from workbench.checks.evaluate import CallPython
from workbench.grading.casting import by_casting
from workbench.grading.critics import grade_critics
from workbench.grading.errors import GradingError
from workbench.grading.grade import Grade, Issue, Status
from workbench.grading.requirements import requirement_issues
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.trajectory import Trajectory


def grade_run(
    suite: Suite, case: Case, trajectory: Trajectory, *, call_python: CallPython | None = None
) -> tuple[tuple[Grade, ...], Status]:
    """Grade a run that ended without trouble of the infrastructure; the first grade is the one that decides.

    The issues of requirements beside the score stand among that grade's issues. Those that decide make the status
    failed, whatever the score; it stays the grader's own. A case to which the grader does not apply passes or fails by
    its requirements alone.

    Raises CheckError when a check cannot be evaluated and GradingError when the case asks for what cannot be graded;
    either ends the run with status `error`.
    """
    settings = settings_of(suite, case)
    if settings.grading.by != "critics":
        raise GradingError(f"grading.by: the grader {settings.grading.by!r} is not available yet; use 'critics'")
    grade = grade_critics(case, settings.grading, trajectory, call_python=call_python)
    demands = requirement_issues(
        case, settings.limits, trajectory, grade.pairings, equal=by_casting, call_python=call_python
    )
    return (replace(grade, issues=_merged(grade.issues, demands)),), _status(grade, demands)


def _merged(found: tuple[Issue, ...], demands: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """All issues; a call that a requirement already calls wrong is not called an extra one a second time."""
    wrong = {issue.call for issue in demands if issue.kind in ("extra call", "forbidden call")}
    return (*(issue for issue in found if issue.kind != "extra call" or issue.call not in wrong), *demands)


def _status(grade: Grade, demands: tuple[Issue, ...]) -> Status:
    if any(issue.decides for issue in demands):
        return "failed"
    return "passed" if grade.verdict == "not applicable" else grade.verdict
