"""Runs of chains, step by step, with the events of the engine."""

from __future__ import annotations

from collections.abc import Sequence

from tests.trajectories import CallSpec
from tests.trajectory.scripts import stamped
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    EventPayload,
    Message,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    StepStarted,
    TextDelta,
    Usage,
)
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

STARTED = RunStarted("hash", "case", "Case", "m", None, (Message("user", "Go."),), ())


def step_happenings(step: int, calls: Sequence[CallSpec]) -> list[EventPayload]:
    """Return the events of one step: the request, an answer with calls (or text if there are none), and the results."""
    happenings: list[EventPayload] = [StepStarted(step, None, "And then?" if step > 1 else None), RequestStarted(step)]
    ids = [f"c{step}-{number}" for number in range(len(calls))]
    for call_id, (tool, arguments) in zip(ids, calls, strict=True):
        happenings += [CallStarted(step, call_id, tool), CallFinished(call_id, arguments)]
    if not calls:
        happenings.append(TextDelta(step, "Done."))
    happenings.append(ResponseFinished(step, "tool calls" if calls else "answered", Usage(90, 21), 40.0, 210.0))
    return [*happenings, *(ResultReceived(call_id, '{"ok": true}', False, "step mock", 1.0) for call_id in ids)]


def chain_happenings(
    *answers: Sequence[CallSpec], start: RunStarted = STARTED, ending: RunFinished | None = None
) -> list[EventPayload]:
    """Return the events of a run with one step for each answer."""
    happenings: list[EventPayload] = [start]
    for step, calls in enumerate(answers, 1):
        happenings += step_happenings(step, calls)
    return [*happenings, ending or RunFinished("steps done")]


def chain_run(*answers: Sequence[CallSpec], ending: RunFinished | None = None) -> Trajectory:
    """Return the trajectory of `chain_happenings`."""
    return fold(stamped(chain_happenings(*answers, ending=ending)))
