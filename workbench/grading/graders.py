"""The graders, and the complete grade of each for a run: its own grade with the requirements besides the score. Steps
of chains are graded elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.checks.check import CheckContext, EqualsRule, by_json, by_python
from workbench.dataclasses import dataclass
from workbench.grading.accuracy import grade_accuracy
from workbench.grading.critics import by_casting, grade_critics
from workbench.grading.decision import grade_decision
from workbench.grading.dimensions import grade_dimensions, latency_of
from workbench.grading.extra_calls import graded_without_free_calls, rule_of
from workbench.grading.grade import FIRST_KINDS, Grade, Issue
from workbench.grading.requirements import latency_issue, requirement_issues, with_required
from workbench.grading.status import NOT_APPLICABLE, Status
from workbench.grading.trajectory import grade_trajectory
from workbench.suite.model import Case, GraderName
from workbench.suite.settings import CaseSettings, Grading
from workbench.trajectory.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Grader:
    """One published system's way to grade a run, and its rule of equality for plain values. `grade` raises CheckError
    and GradingError as `grade_run` does."""

    grade: Callable[[Case, CaseSettings, Trajectory, CheckContext], Grade]
    equal: EqualsRule
    scored: frozenset[str] = frozenset()
    """The keys of a case that are part of its score, and so decide nothing besides it."""
    latency: Callable[[Grading, Trajectory], float] = lambda _grading, run: run.model_latency_ms
    """The time that `max_latency_ms` limits, in milliseconds."""


GRADERS: Mapping[str, Grader] = {
    "critics": Grader(lambda case, of, run, context: grade_critics(case, of.grading, run, context=context), by_casting),
    "decision": Grader(
        lambda case, of, run, context: grade_decision(case, of.grading, run, context=context), by_python
    ),
    "accuracy": Grader(lambda case, of, run, context: grade_accuracy(case, of.grading, run, context=context), by_json),
    "trajectory": Grader(
        lambda case, of, run, context: grade_trajectory(case, of.grading, run, context=context),
        by_json,
        frozenset({"disallowed", "extra_calls", "forbidden_args"}),
    ),
    "dimensions": Grader(
        lambda case, of, run, context: grade_dimensions(case, of.limits, run, of.grading.dimensions, context=context),
        by_python,
        frozenset({"response_contains", "forbidden_args"}),
        lambda grading, run: latency_of(grading.dimensions, run),
    ),
}
"""Every grader. How it is shown is its object of `grading.traits`."""


def graded_whole(
    name: GraderName,
    case: Case,
    settings: CaseSettings,
    trajectory: Trajectory,
    context: CheckContext,
    of_any_grader: Sequence[Issue] | None = None,
) -> Grade:
    """Returns the grade of one grader, with the issues of the requirements and the status. For a chain it covers the
    whole, not its steps. `of_any_grader` is that of `requirement_issues`. Raises as `grade_run` does."""
    grader = GRADERS[name]
    grade = graded_without_free_calls(
        *(name, case, settings.grading, trajectory),
        lambda run: grader.grade(case, settings, run, context),
        equal=grader.equal,
        context=context,
    )
    demands = requirement_issues(
        case,
        settings.limits,
        trajectory,
        grade.pairings,
        equal=grader.equal,
        context=context,
        scored=grader.scored,
        of_any_grader=of_any_grader,
        invalid_arguments=settings.grading.invalid_arguments,
        extra_calls=rule_of(case, settings.grading, trajectory),
    )
    latency_ms = grader.latency(settings.grading, trajectory)
    if latency_ms > settings.limits.max_latency_ms:
        demands = (*demands, latency_issue(settings.limits, latency_ms))
    issues = with_required(case, grade)
    return Grade(
        name,
        grade.score,
        grade.verdict,
        grade.reason,
        grade.pairings,
        _merged(issues, demands) if demands else issues,
        grade.numbers,
        _status(grade, (*issues, *demands)),
        grade.published,
    )


def _merged(found: tuple[Issue, ...], demands: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """Returns all issues. A call that a requirement already calls wrong is not called an extra one a second time; those
    that explain others come first."""
    wrong = {issue.call for issue in demands if issue.kind in ("extra call", "forbidden call")}
    own = (issue for issue in found if issue.kind != "extra call" or issue.call not in wrong)
    return tuple(sorted((*own, *demands), key=lambda issue: issue.kind not in FIRST_KINDS))


def _status(grade: Grade, issues: tuple[Issue, ...]) -> Status:
    if issues and any(issue.decides for issue in issues):
        return Status.FAILED
    return Status.PASSED if grade.verdict == NOT_APPLICABLE else grade.verdict
