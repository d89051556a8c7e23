"""Trajectories for tests, as a model's calls would produce them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.trajectory.events import FinishReason, JsonValue, RunFinished, RunStarted, ToolCall, ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

CallSpec = tuple[str, Mapping[str, JsonValue]]
"""A tool and the arguments."""


def trajectory_of(
    *calls: CallSpec | ToolCall,
    answer: str = "",
    tools: Sequence[ToolDefinition] = (),
    reason: FinishReason = "answered",
    latency_ms: float = 10.0,
    loop_ms: float | None = None,
) -> Trajectory:
    """Return a run with these calls in its first round and the answer, if any, in a second one. `loop_ms` defaults to
    `latency_ms`."""
    made = tuple(
        call if isinstance(call, ToolCall) else ToolCall(f"call-{index}", *call) for index, call in enumerate(calls)
    )
    rounds = [Round(1, calls=tuple(CallRecord(call, 1) for call in made), stop_reason="tool calls")]
    rounds.append(Round(2, text=answer, stop_reason="answered", latency_ms=latency_ms))
    return Trajectory(
        run_id="run",
        start=RunStarted("hash", "case", "Case", "model", None, (), tuple(tools)),
        rounds=tuple(rounds),
        finish=RunFinished(reason),
        loop_ms=latency_ms if loop_ms is None else loop_ms,
    )
