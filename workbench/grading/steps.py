"""Grades each step of a chain on its own, in addition to the chain as a whole.

A step is graded as a case of its own: one expected call, or none, compared with the answer to its request alone.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.checks.patterns import CheckError
from workbench.dataclasses import ByIdentity
from workbench.grading.grade import Grade, GradingError, Issue, StepGrade, reason_of
from workbench.grading.graders import graded_whole
from workbench.grading.pairing import StepRound, rounds_of_steps
from workbench.grading.status import Status
from workbench.suite.model import Case, GraderName, Step, Suite
from workbench.suite.settings import CaseSettings, Limits, settings_of
from workbench.trajectory.events import FinishReason, RunFinished
from workbench.trajectory.trajectory import Round, Trajectory


def grade_steps(
    by: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> tuple[StepGrade, ...]:
    """Grade every step of a chain by a grader. Returns nothing for a case that is no chain. Raises as `grade_run` does;
    the error names the step."""
    rounds = rounds_of_steps(case, trajectory) if case.steps else ()
    return tuple(
        _named(by, case, settings, number, reached, trajectory, context) for number, reached in enumerate(rounds, 1)
    )


def grade_step(
    suite: Suite, case: Case, trajectory: Trajectory, step: int, context: CheckContext = EMPTY_CONTEXT
) -> StepGrade:
    """Grade one step, counted from 1, by the deciding grader; the run may still be going on. Raises as `grade_run`
    does."""
    settings = settings_of(suite, case)
    reached = rounds_of_steps(case, trajectory)[step - 1]
    return _graded(settings.grading.by, case, settings, step, reached, trajectory, context)


def _named(
    by: GraderName,
    case: Case,
    settings: CaseSettings,
    step: int,
    reached: StepRound | None,
    trajectory: Trajectory,
    context: CheckContext,
) -> StepGrade:
    try:
        return _graded(by, case, settings, step, reached, trajectory, context)
    except (CheckError, GradingError) as error:
        raise type(error)(f"step {step} cannot be judged: {error}") from error


_WHY_NOT_REACHED: dict[FinishReason, str] = {
    "step failed": "never reached: the chain stops at the first step that fails",
    "refused": "never reached: the model refused before it",
    "truncated": "never reached: an answer was cut off before it",
}


def _never_reached(step: int, trajectory: Trajectory, expected_call: int | None) -> StepGrade:
    finish = trajectory.finish
    why = _WHY_NOT_REACHED.get(finish.reason) if finish is not None else None
    return StepGrade(step, None, None, why or "never reached: the run ended before it", None, (), expected_call)


_NO_LIMITS = Limits(max_tool_calls=sys.maxsize, max_latency_ms=sys.float_info.max)
"""Calls and latency are limited in the run as a whole."""


def _graded(
    by: GraderName,
    case: Case,
    settings: CaseSettings,
    step: int,
    reached: StepRound | None,
    trajectory: Trajectory,
    context: CheckContext,
) -> StepGrade:
    calls_before = sum(earlier.tool is not None for earlier in case.steps[: step - 1])
    expected_call = calls_before if case.steps[step - 1].tool is not None else None
    if reached is None:
        return _never_reached(step, trajectory, expected_call)
    limitless = replace(settings, limits=_NO_LIMITS)
    # `decision` has rules of its own for the steps of chains.
    alone = (_chains_of_one if by == "decision" else _cases_of_steps)(case)[step - 1]

    def grade(answer: Round) -> Grade:
        # As the only round it is that of the only step.
        run = replace(trajectory, rounds=(replace(answer, step=None),), finish=_DONE)
        return graded_whole(by, alone, limitless, run, context)

    grades = [grade(reached.round)]
    if len(reached.round.calls) > 1:
        # The first call is the one that is graded, even where the grader would prefer a later one.
        grades.append(grade(replace(reached.round, calls=reached.round.calls[:1])))
    worst = min(grades, key=_how_good)
    return StepGrade(
        step,
        worst.status,
        worst.score,
        reason_of(worst),
        reached.first_call if reached.round.calls else None,
        tuple(_in_the_run(issue, reached.first_call, calls_before) for issue in worst.issues),
        expected_call,
    )


_DONE = RunFinished("steps done")
_FROM_THE_WORST: tuple[Status, ...] = (Status.FAILED, Status.WARNED, Status.PASSED)


def _how_good(grade: Grade) -> tuple[int, float]:
    assert grade.status is not None and grade.score is not None, "a step says what is expected"
    return _FROM_THE_WORST.index(grade.status), grade.score


def _in_the_run(issue: Issue, first_call: int, calls_before: int) -> Issue:
    """Returns an issue of a step with its calls and expected calls counted in the whole run."""
    return issue._replace(
        call=None if issue.call is None else issue.call + first_call,
        expected_call=None if issue.expected_call is None else issue.expected_call + calls_before,
    )


_WHOLE_RUN = {"response": None, "response_contains": (), "stop_on_failure": False}
"""The keys of a case that concern the run as a whole, without values."""

_chains_of_one: ByIdentity[Case, tuple[Case, ...]] = ByIdentity(
    lambda case: tuple(case.model_copy(update={**_WHOLE_RUN, "steps": (step,)}) for step in case.steps)
)
_cases_of_steps: ByIdentity[Case, tuple[Case, ...]] = ByIdentity(
    lambda case: tuple(
        case.model_copy(update={**_WHOLE_RUN, "steps": (), **_expectations(step)}) for step in case.steps
    )
)


def _expectations(step: Step) -> dict[str, object]:
    expected = step.expected_call
    return {"expect_no_calls": True} if expected is None else {"ordered": (expected,)}
