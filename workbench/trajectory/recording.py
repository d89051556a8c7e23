"""Events as JSON lines, and back: what is written re-reads as equal events."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    Happening,
    Paused,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    TextDelta,
)
from workbench.trajectory.json_text import json_text
from workbench.trajectory.messages import Message, ToolCall, ToolDefinition, Usage

_NAMES: dict[type[Happening], str] = {
    RunStarted: "run_started",
    RequestStarted: "request_started",
    RequestFailed: "request_failed",
    RetryScheduled: "retry_scheduled",
    TextDelta: "text_delta",
    ReasoningDelta: "reasoning_delta",
    CallStarted: "call_started",
    CallArgumentsDelta: "call_arguments_delta",
    CallFinished: "call_finished",
    ResponseFinished: "response_finished",
    Paused: "paused",
    Resumed: "resumed",
    ExecutionStarted: "execution_started",
    ExecutionProgress: "execution_progress",
    ResultReceived: "result_received",
    RunFinished: "run_finished",
}
_CLASSES = {name: cls for cls, name in _NAMES.items()}


class RecordingError(ValueError):
    """A line that is not an event of this version."""


def event_to_line(event: Event) -> str:
    """One event as one line of compact JSON, without the line end."""
    fields = dataclasses.asdict(event.what)
    head = {"event": _NAMES[type(event.what)], "run": event.run_id, "seq": event.sequence, "ms": event.time_ms}
    return json_text(head | fields)


def event_from_line(line: str) -> Event:
    """Read what `event_to_line` wrote; raises RecordingError when the line is not an event."""
    try:
        data = json.loads(line)
        cls = _CLASSES[data.pop("event")]
        run_id, sequence, time_ms = data.pop("run"), data.pop("seq"), data.pop("ms")
        return Event(run_id, sequence, time_ms, _happening(cls, data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(f"not an event: {line[:80]!r} ({error})") from error


def _happening(cls: type[Happening], data: dict[str, Any]) -> Happening:
    if cls is RunStarted:
        data["messages"] = tuple(_message(message) for message in data["messages"])
        data["tools"] = tuple(ToolDefinition(**tool) for tool in data["tools"])
        data["notices"] = tuple(data["notices"])
    elif cls is ResponseFinished and data["usage"] is not None:
        data["usage"] = Usage(**data["usage"])
    return cls(**data)


def _message(data: dict[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in data.pop("tool_calls"))
    return Message(**data, tool_calls=calls)
