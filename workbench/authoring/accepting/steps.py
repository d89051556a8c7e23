"""Accepts what a model did in a chain: each step expects the first call of its answer."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.authoring.accepting.calls import AcceptError, TakenCall, as_expected, as_expected_again, check_calls
from workbench.authoring.accepting.proposal import Proposal
from workbench.authoring.form.tables import value_at
from workbench.checks.describe import CheckError
from workbench.checks.evaluate import EMPTY_CONTEXT
from workbench.grading.arguments import judge_arguments
from workbench.grading.casting import by_casting
from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.grading.step_rounds import StepRound, rounds_of_steps
from workbench.suite.model import ANY_TOOL, Case, Step, tool_text
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.trajectory.trajectory import CallRecord, Trajectory


def accept_steps(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], only: int | None = None
) -> Proposal:
    """Accept the run of a chain, or `only` one step, counted from 1. A step without calls expects none; a step that was
    not reached stays as it is. Raises AcceptError."""
    calls: list[TakenCall] = []
    dropped: list[Place] = []
    gone: list[str] = []
    for number, reached in enumerate(rounds_of_steps(case, trajectory)):
        if only not in (None, number + 1) or (reached is None and only is None):
            continue
        if reached is None:
            raise AcceptError(f"step {only} was never reached")
        if reached.round.calls:
            calls.append(_taken(case, table, number, reached, pairings))
            gone += _no_longer(case, number, calls[-1])
        elif case.steps[number].tool is not None:
            dropped.append(("steps", number))
            gone += _no_longer(case, number, None)
    if only is not None and not calls and not dropped:
        raise AcceptError(f"nothing was called in step {only}, and it expects nothing")
    return Proposal(case.name, tuple(calls), only is None, in_place=True, dropped=tuple(dropped), gone=tuple(gone))


def accept_step(
    case: Case, table: Table, trajectory: Trajectory, pairings: Sequence[CallPairing], call: int
) -> Proposal:
    """Accept one call, by its index in the trajectory. It must be the first call of its step. Raises AcceptError."""
    for step, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        if reached is not None and reached.round.calls and reached.first_call == call:
            return accept_steps(case, table, trajectory, pairings, step)
    raise AcceptError(
        "a step expects the first call of its answer: put the cursor on that call, or accept the run with A"
    )


def accept_step_without_call(case: Case, expected: int) -> Proposal:
    """Accept that a call was not made, by its index among the calls that the steps expect."""
    number = [number for number, step in enumerate(case.steps) if step.tool is not None][expected]
    return Proposal(case.name, (), False, dropped=(("steps", number),), gone=_no_longer(case, number, None))


def _taken(case: Case, table: Table, number: int, reached: StepRound, pairings: Sequence[CallPairing]) -> TakenCall:
    step, record, place = case.steps[number], reached.round.calls[0], ("steps", number)
    check_calls([record])
    written = value_at(table, place)
    assert isinstance(written, dict)
    expected = sum(earlier.tool is not None for earlier in case.steps[:number])
    pair = next((one for one in pairings if (one.expected_call, one.call) == (expected, reached.first_call)), None)
    if step.tool is None or not (pair.same_tool if pair is not None else step.tool in (ANY_TOOL, record.tool)):
        gone = ("tool", "args", "forbidden_args", "only_args")
        others = {key: value for key, value in written.items() if key not in gone}
        return as_expected(record, place, others)
    return as_expected_again(record, place, written, pair.arguments if pair is not None else _judged(step, record))


def _judged(step: Step, record: CallRecord) -> tuple[ArgumentVerdict, ...]:
    """Judge the checks of a step on a call that the grader did not pair with it."""
    try:
        return judge_arguments(
            record.tool, step.args or {}, record.arguments, equal=by_casting, context=EMPTY_CONTEXT, shared=1.0
        )
    except CheckError as error:
        raise AcceptError(f"a check of the step cannot be judged here ({error}); r runs the case again") from error


def _no_longer(case: Case, number: int, taken: TakenCall | None) -> tuple[str, ...]:
    """Name the tool that a step no longer expects, with the step's number."""
    tool = case.steps[number].tool
    return (
        ()
        if tool is None or (taken is not None and taken.tool == tool)
        else (f"{tool_text(tool)} in step {number + 1}",)
    )
