"""Grades a finished run: one grade of each grader, and the status; for a chain, its steps too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.checks.patterns import CheckError
from workbench.dataclasses import dataclass
from workbench.grading.endpoint_faults import endpoint_faults, fault_as_error
from workbench.grading.extra_calls import with_way_out
from workbench.grading.grade import FIRST_KINDS, Grade, GradingError, Issue, JudgementNeededError, Metric, StepGrade
from workbench.grading.graders import graded_whole
from workbench.grading.pairing import describe_call, describe_expected
from workbench.grading.requirements import issues_of_any_grader, metrics_of
from workbench.grading.status import Status
from workbench.grading.steps import grade_steps
from workbench.grading.valid_arguments import check_calls
from workbench.suite.model import GRADERS, Case, GraderName, Suite
from workbench.suite.settings import CaseSettings, settings_of
from workbench.trajectory.trajectory import Trajectory


def grade_run(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status]:
    """Grade a run that ended without a fault of the infrastructure. Returns the grades; the first one decides.

    Each grade's issues include the requirements besides the score and the steps of a chain that fail under that grader.
    Issues that decide make the status failed, whatever the score, which stays the grader's own. A case to which the
    grader does not apply passes or fails by its requirements alone. A grader that does not decide and cannot grade the
    case has the verdict `error`. A run of a case that expects nothing yet has no grades, and is `not graded`.

    Raises CheckError when a check cannot be evaluated and GradingError when the case cannot be graded as written;
    either ends the run with status `error`. Raises JudgementNeededError, for any grader, when a judge must be asked
    first.
    """
    return grade_run_and_steps(suite, case, trajectory, context=context)[:2]


def grade_run_and_steps(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status, tuple[StepGrade, ...]]:
    """Grade a run as `grade_run` does, and the steps of a chain as the deciding grader judges them."""
    return graded_run(suite, case, trajectory, context=context)[:3]


class GradedRun(NamedTuple):
    """What grading a run comes to: the parts of a `RunResult` of these names."""

    grades: tuple[Grade, ...]
    status: Status
    steps: tuple[StepGrade, ...] = ()
    metrics: tuple[Metric, ...] = ()
    valid_arguments: tuple[bool | None, ...] = ()


def graded_run(suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT) -> GradedRun:
    """Grade a run as `grade_run` does, the steps of a chain as the deciding grader judges them, and the named checks of
    the final answer."""
    if case.expects_nothing_yet:
        return GradedRun((), Status.NOT_GRADED, metrics=source_metrics(trajectory))
    trajectory = _without_too_much(trajectory)
    if suite.gate.endpoint_faults == "error" and (faults := endpoint_faults(trajectory)):
        raise GradingError(fault_as_error(faults[0]))
    settings = settings_of(suite, case)
    if context.verdicts is None:
        context = CheckContext(context.call_python, context.judge, {}, {})
    metrics = metrics_of(case, trajectory, context)
    checked = check_calls(trajectory)
    of_any_grader = issues_of_any_grader(
        *(case, settings.limits, trajectory, context, metrics, checked),
        invalid_arguments=settings.grading.invalid_arguments,
        whole_numbers=settings.grading.whole_numbers,
    )
    run = _Graded(case, settings, trajectory, context, of_any_grader)
    deciding = settings.grading.by
    first, steps = run.by(deciding)
    assert first.status is not None
    grades = (first, *(run.attempted_by(name) for name in GRADERS if name != deciding))
    own = source_metrics(trajectory)
    return GradedRun(grades, first.status, steps, (*metrics, *own), tuple(call.valid for call in checked))


def source_metrics(trajectory: Trajectory) -> tuple[Metric, ...]:
    """Return the scores that the system that made an imported run gave it."""
    scores = trajectory.start.source_scores if trajectory.start is not None else ()
    return tuple(Metric(each.name, each.value, each.passed, about=each.about) for each in scores)


def _without_too_much(trajectory: Trajectory) -> Trajectory:
    """Returns the trajectory without the part that was read of an answer over the limits."""
    finish = trajectory.finish
    if finish is None or finish.reason != "sent too much" or not trajectory.rounds:
        return trajectory
    *before, last = trajectory.rounds
    return replace(trajectory, rounds=(*before, replace(last, text="", reasoning="", calls=())))


def graded_by(
    name: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> Grade:
    """Returns the grade of one grader, with the issues that decide besides its score and the status. Raises as
    `grade_run` does."""
    of_any_grader = issues_of_any_grader(
        *(case, settings.limits, trajectory, context),
        invalid_arguments=settings.grading.invalid_arguments,
        whole_numbers=settings.grading.whole_numbers,
    )
    return _Graded(case, settings, trajectory, context, of_any_grader).by(name)[0]


@dataclass(frozen=True, slots=True)
class _Graded:
    """A run to grade, with its issues that do not depend on the grader."""

    case: Case
    settings: CaseSettings
    trajectory: Trajectory
    context: CheckContext
    of_any_grader: tuple[Issue, ...]

    def by(self, name: GraderName) -> tuple[Grade, tuple[StepGrade, ...]]:
        # The steps come first, so that an error of a step names the step.
        of_run = self.case, self.settings, self.trajectory, self.context
        steps = grade_steps(name, *of_run) if self.case.steps else ()
        grade = graded_whole(name, *of_run, self.of_any_grader)
        grade = grade._replace(issues=with_way_out(grade, self.case, self.settings.grading, self.trajectory))
        if not steps:
            return grade, ()
        failed = tuple(_failed_steps(self.case, self.trajectory, steps))
        issues = sorted((*failed, *grade.issues), key=lambda issue: issue.kind not in FIRST_KINDS)
        return (grade._replace(issues=tuple(issues), status=Status.FAILED) if failed else grade), steps

    def attempted_by(self, name: GraderName) -> Grade:
        try:
            return self.by(name)[0]
        except JudgementNeededError:
            raise
        except (CheckError, GradingError) as error:
            return Grade(name, None, Status.ERROR, str(error), status=Status.ERROR)


def _failed_steps(case: Case, trajectory: Trajectory, steps: Sequence[StepGrade]) -> Iterator[Issue]:
    for wanted, step in zip(case.steps, steps, strict=True):
        if step.status == Status.FAILED:
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
