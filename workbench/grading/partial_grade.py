"""Finds what is wrong with a call of a run that is still going on, by the deciding grader."""

from __future__ import annotations

from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.checks.values import describe_value
from workbench.grading.grade import ArgumentVerdict
from workbench.grading.graders import graded_whole
from workbench.grading.pairing import rounds_of_steps
from workbench.grading.status import Status
from workbench.grading.steps import grade_step
from workbench.suite.model import Case, ExpectedCall, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.trajectory import Trajectory


def fault_of_call(
    suite: Suite, case: Case, trajectory: Trajectory, call: int, context: CheckContext = EMPTY_CONTEXT
) -> str | None:
    """Returns what is wrong with a call, by its index in `Trajectory.calls`, in a few words; `None` when nothing is.

    That is an argument that does not hold, an issue about the call that decides, or the step of a chain that fails by
    it. Raises as `grade_run` does.
    """
    settings = settings_of(suite, case)
    grade = graded_whole(settings.grading.by, case, settings, trajectory, context)
    expected = case.expected_calls()
    for pairing in grade.pairings:
        # A call of another tool is in this place only until the right one comes.
        if pairing.call == call and pairing.expected_call is not None and pairing.same_tool:
            wrong = next((verdict for verdict in pairing.arguments if verdict.holds is False), None)
            if wrong is not None:
                return _said(wrong, expected[pairing.expected_call])
    for issue in grade.issues:
        if issue.call == call and issue.decides:
            return f"{issue.tool}: {issue.argument + ': ' if issue.argument else ''}{issue.why}"
    return _of_step(suite, case, trajectory, call, context)


def _said(wrong: ArgumentVerdict, wanted: ExpectedCall) -> str:
    if not wrong.listed:
        return f"{wrong.argument} is not expected"
    if not wrong.given:
        return f"{wrong.argument} is not given"
    check = (wanted.args or {}).get(wrong.argument)
    fails = "fails" if check is None else check.failing
    return f"{wrong.argument} {describe_value(wrong.got)} {fails} {wrong.expected}"


def _of_step(suite: Suite, case: Case, trajectory: Trajectory, call: int, context: CheckContext) -> str | None:
    for number, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        if reached is not None and 0 <= call - reached.first_call < len(reached.round.calls):
            step = grade_step(suite, case, trajectory, number, context)
            named = {step.call, *(issue.call for issue in step.issues)}
            return f"step {number} fails: {step.why}" if step.status == Status.FAILED and call in named else None
    return None
