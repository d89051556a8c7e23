"""From a finished run to its grades, one of each grader, and its status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench.checks.equality import EqualsRule, by_json, by_python
from workbench.checks.errors import CheckError
from workbench.checks.evaluate import NOTHING_OUTSIDE, Outside
from workbench.grading.accuracy import grade_accuracy
from workbench.grading.casting import by_casting
from workbench.grading.critics import grade_critics
from workbench.grading.decision import grade_decision
from workbench.grading.dimensions import grade_dimensions
from workbench.grading.errors import GradingError, JudgementNeededError
from workbench.grading.grade import Grade, Issue, Status
from workbench.grading.requirements import issues_of_any_grader, requirement_issues
from workbench.grading.trajectory import grade_trajectory
from workbench.suite.model import Case, GraderName, Suite
from workbench.suite.settings import CaseSettings, settings_of
from workbench.trajectory.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Grader:
    """How one published system grades a run, and its rule of equality for plain values.

    `grade` raises CheckError and GradingError as `grade_run` does.
    """

    grade: Callable[[Case, CaseSettings, Trajectory, Outside], Grade]
    equal: EqualsRule
    scored: frozenset[str] = frozenset()
    """The keys of a case that are part of its score, and so decide nothing beside it."""


GRADERS: dict[GraderName, Grader] = {
    "critics": Grader(lambda case, of, run, outside: grade_critics(case, of.grading, run, outside=outside), by_casting),
    "decision": Grader(
        lambda case, of, run, outside: grade_decision(case, of.grading, run, outside=outside), by_python
    ),
    "accuracy": Grader(lambda case, of, run, outside: grade_accuracy(case, of.grading, run, outside=outside), by_json),
    "trajectory": Grader(
        lambda case, of, run, outside: grade_trajectory(case, of.grading, run, outside=outside),
        by_json,
        frozenset({"disallowed", "extra_calls", "forbidden_args"}),
    ),
    "dimensions": Grader(
        lambda case, of, run, outside: grade_dimensions(case, of.limits, run, outside=outside),
        by_python,
        frozenset({"response_contains", "forbidden_args"}),
    ),
}
"""Every grader, in the order in which they are shown."""


def grade_run(
    suite: Suite, case: Case, trajectory: Trajectory, *, outside: Outside = NOTHING_OUTSIDE
) -> tuple[tuple[Grade, ...], Status]:
    """Grade a run that ended without trouble of the infrastructure; the first grade is the one that decides.

    The issues of requirements beside the score stand among each grade's issues. Those that decide make the status
    failed, whatever the score; it stays the grader's own. A case to which the grader does not apply passes or fails by
    its requirements alone. A grader that does not decide and cannot grade the case has the verdict `error`.

    Raises CheckError when a check cannot be evaluated and GradingError when the case asks for what cannot be graded;
    either ends the run with status `error`. Raises JudgementNeededError, of whatever grader, when a judge is to be
    asked first.
    """
    settings = settings_of(suite, case)
    if outside.said is None:
        outside = replace(outside, said={})
    run = _Graded(case, settings, trajectory, outside, issues_of_any_grader(case, settings.limits, trajectory, outside))
    deciding = settings.grading.by
    first = run.by(deciding)
    assert first.status is not None
    return (first, *(run.attempted_by(name) for name in GRADERS if name != deciding)), first.status


def graded_by(name: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, outside: Outside) -> Grade:
    """The grade of one grader, with the issues of the requirements and the status; raises as `grade_run` does."""
    of_any_grader = issues_of_any_grader(case, settings.limits, trajectory, outside)
    return _Graded(case, settings, trajectory, outside, of_any_grader).by(name)


@dataclass(frozen=True, slots=True)
class _Graded:
    """A run that is graded, and its issues that do not depend on the grader."""

    case: Case
    settings: CaseSettings
    trajectory: Trajectory
    outside: Outside
    of_any_grader: tuple[Issue, ...]

    def by(self, name: GraderName) -> Grade:
        grader = GRADERS[name]
        grade = grader.grade(self.case, self.settings, self.trajectory, self.outside)
        demands = requirement_issues(
            self.case,
            self.settings.limits,
            self.trajectory,
            grade.pairings,
            equal=grader.equal,
            outside=self.outside,
            scored=grader.scored,
            of_any_grader=self.of_any_grader,
        )
        return Grade(
            name,
            grade.score,
            grade.verdict,
            grade.reason,
            grade.pairings,
            _merged(grade.issues, demands) if demands else grade.issues,
            grade.numbers,
            _status(grade, demands),
        )

    def attempted_by(self, name: GraderName) -> Grade:
        try:
            return self.by(name)
        except JudgementNeededError:
            raise
        except (CheckError, GradingError) as error:
            return Grade(name, None, "error", str(error), status="error")


def _merged(found: tuple[Issue, ...], demands: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """All issues; a call that a requirement already calls wrong is not called an extra one a second time."""
    wrong = {issue.call for issue in demands if issue.kind in ("extra call", "forbidden call")}
    return (*(issue for issue in found if issue.kind != "extra call" or issue.call not in wrong), *demands)


def _status(grade: Grade, demands: tuple[Issue, ...]) -> Status:
    if demands and any(issue.decides for issue in demands):
        return "failed"
    return "passed" if grade.verdict == "not applicable" else grade.verdict
