"""Maps the steps of a chain to the rounds of a run and to their calls."""

from __future__ import annotations

from typing import NamedTuple

from workbench.suite.model import Case
from workbench.trajectory.trajectory import Round, Trajectory


class StepRound(NamedTuple):
    """The round of a step; `first_call` is the index in `Trajectory.calls` of its first call, if it has one."""

    round: Round
    first_call: int


def rounds_of_steps(case: Case, trajectory: Trajectory) -> tuple[StepRound | None, ...]:
    """Returns the round of each step of a chain, `None` for steps that were never reached. Rounds name their step; in a
    run where none does, the k-th round is that of the k-th step."""
    rounds = trajectory.rounds
    said = any(round_.step is not None for round_ in rounds)
    found: list[StepRound | None] = [None] * len(case.steps)
    first_call = 0
    for place, round_ in enumerate(rounds):
        step = place + 1 if not said else round_.step.step if round_.step is not None else 0
        if 1 <= step <= len(found):
            found[step - 1] = StepRound(round_, first_call)
        first_call += len(round_.calls)
    return tuple(found)


def calls_of_silent_steps(case: Case, trajectory: Trajectory) -> tuple[int, ...]:
    """Returns the calls, by index, in the answers to steps that expect none."""
    return tuple(
        reached.first_call + number
        for step, reached in zip(case.steps, rounds_of_steps(case, trajectory), strict=True)
        if step.tool is None and reached is not None
        for number in range(len(reached.round.calls))
    )
