"""From a finished run to its grades, one of each grader, and its status; of a chain, to those of its steps too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from workbench.checks.describe import CheckError
from workbench.checks.evaluate import EMPTY_CONTEXT, CheckContext
from workbench.grading.findings import describe_call, describe_expected
from workbench.grading.grade import Grade, GradingError, Issue, Status, StepGrade
from workbench.grading.graders import GRADERS, graded_whole
from workbench.grading.judgements import JudgementNeededError
from workbench.grading.requirements import issues_of_any_grader
from workbench.grading.steps import grade_steps
from workbench.suite.model import Case, GraderName, Suite
from workbench.suite.settings import CaseSettings, settings_of
from workbench.trajectory.trajectory import Trajectory


def grade_run(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status]:
    """Grade a run that ended without trouble of the infrastructure; the first grade is the one that decides.

    The issues of requirements beside the score stand among each grade's issues, and so do the steps of a chain that
    fail under that grader. Those that decide make the status failed, whatever the score; it stays the grader's own. A
    case to which the grader does not apply passes or fails by its requirements alone. A grader that does not decide and
    cannot grade the case has the verdict `error`.

    Raises CheckError when a check cannot be evaluated and GradingError when the case asks for what cannot be graded;
    either ends the run with status `error`. Raises JudgementNeededError, of whatever grader, when a judge is to be
    asked first.
    """
    return grade_run_and_steps(suite, case, trajectory, context=context)[:2]


def grade_run_and_steps(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status, tuple[StepGrade, ...]]:
    """`grade_run`, with the steps of a chain as the grader that decides judges them."""
    trajectory = _without_too_much(trajectory)
    settings = settings_of(suite, case)
    if context.verdicts is None:
        context = replace(context, verdicts={}, search_time={})
    run = _Graded(case, settings, trajectory, context, issues_of_any_grader(case, settings.limits, trajectory, context))
    deciding = settings.grading.by
    first, steps = run.by(deciding)
    assert first.status is not None
    return (first, *(run.attempted_by(name) for name in GRADERS if name != deciding)), first.status, steps


def _without_too_much(trajectory: Trajectory) -> Trajectory:
    """The trajectory without what was read of an answer that holds too much."""
    finish = trajectory.finish
    if finish is None or finish.reason != "sent too much" or not trajectory.rounds:
        return trajectory
    *before, last = trajectory.rounds
    return replace(trajectory, rounds=(*before, replace(last, text="", reasoning="", calls=())))


def graded_by(
    name: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> Grade:
    """The grade of one grader, with the issues that decide beside its score and the status; raises as `grade_run`."""
    of_any_grader = issues_of_any_grader(case, settings.limits, trajectory, context)
    return _Graded(case, settings, trajectory, context, of_any_grader).by(name)[0]


@dataclass(frozen=True, slots=True)
class _Graded:
    """A run that is graded, and its issues that do not depend on the grader."""

    case: Case
    settings: CaseSettings
    trajectory: Trajectory
    context: CheckContext
    of_any_grader: tuple[Issue, ...]

    def by(self, name: GraderName) -> tuple[Grade, tuple[StepGrade, ...]]:
        # The steps first: what cannot be judged in one of them is said to be of that step.
        steps = grade_steps(name, self.case, self.settings, self.trajectory, self.context)
        grade = graded_whole(name, self.case, self.settings, self.trajectory, self.context, self.of_any_grader)
        failed = tuple(_failed_steps(self.case, self.trajectory, steps))
        return (grade._replace(issues=(*failed, *grade.issues), status="failed") if failed else grade), steps

    def attempted_by(self, name: GraderName) -> Grade:
        try:
            return self.by(name)[0]
        except JudgementNeededError:
            raise
        except (CheckError, GradingError) as error:
            return Grade(name, None, "error", str(error), status="error")


def _failed_steps(case: Case, trajectory: Trajectory, steps: Sequence[StepGrade]) -> Iterator[Issue]:
    for wanted, step in zip(case.steps, steps, strict=True):
        if step.status == "failed":
            record = trajectory.calls[step.call] if step.call is not None else None
            expected = wanted.expected_call
            yield Issue(
                "failed step",
                f"step {step.step}: {step.why}",
                tool=record.tool if record is not None else wanted.tool,
                call=step.call,
                expected_call=step.expected_call,
                expected="no call" if expected is None else describe_expected(expected),
                got="no call" if record is None else describe_call(record),
                decides=True,
            )
