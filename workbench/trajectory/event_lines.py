"""Writes events as JSON lines and reads them back as equal events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    MessageAdded,
    Paused,
    PromptProgress,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepStarted,
    TextDelta,
    TextWasReasoning,
)
from workbench.trajectory.typed_json import (
    Milliseconds,
    compact_json,
    escape_lone_surrogates,
    parsed_json,
    reader_of,
    stored_name,
)

EVENT_NAMES: dict[type[EventPayload], str] = {
    RunStarted: "run_started",
    StepStarted: "step_started",
    RequestStarted: "request_started",
    RequestFailed: "request_failed",
    RetryScheduled: "retry_scheduled",
    PromptProgress: "prompt_progress",
    TextDelta: "text_delta",
    ReasoningDelta: "reasoning_delta",
    TextWasReasoning: "text_was_reasoning",
    CallStarted: "call_started",
    CallArgumentsDelta: "call_arguments_delta",
    CallFinished: "call_finished",
    ResponseFinished: "response_finished",
    Paused: "paused",
    Resumed: "resumed",
    CallEdited: "call_edited",
    ResultEdited: "result_edited",
    MessageAdded: "message_added",
    Regenerated: "asked_again",
    Forked: "forked",
    ExecutionStarted: "execution_started",
    ExecutionProgress: "execution_progress",
    ResultReceived: "result_received",
    RunFinished: "run_finished",
}
"""The name of each event in a line."""

_CLASSES = {name: cls for cls, name in EVENT_NAMES.items()}
_LEFT_OUT_WHEN_EMPTY = {"server_outputs", "source_scores", "server_output", "deviations", "code", "waited_ms"}
"""Few runs have them, and lines of versions before them stay as they were."""
_FIELDS = {cls: tuple((stored_name(field), field.name) for field in fields(cls)) for cls in EVENT_NAMES}


class EventLineError(ValueError):
    """A line that is not an event of this version. The message says why, without quoting the line."""


def event_to_line(event: Event) -> str:
    """Returns one event as one line of compact JSON, without the line end.

    Raises TypeError, ValueError or RecursionError when it holds what JSON cannot express.
    """
    payload = event.payload
    cls = type(payload)
    if cls in _DELTAS:
        # Most events are pieces of an answer: a general encoder would take five times as long.
        return (
            f'{{"event":"{EVENT_NAMES[cls]}","run":{_quoted(event.run_id)},"seq":{event.sequence},'
            f'"ms":{event.time_ms!r},{_DELTAS[cls](payload)}}}'
        )
    line: dict[str, Any] = {
        "event": EVENT_NAMES[cls],
        "run": event.run_id,
        "seq": event.sequence,
        "ms": event.time_ms,
    }
    for key, name in _FIELDS[cls]:
        value = getattr(payload, name)
        if value or name not in _LEFT_OUT_WHEN_EMPTY:
            line[key] = value
    return compact_json(line)


def event_from_line(line: str) -> Event:
    """Read what `event_to_line` wrote. Raises EventLineError when the line is not an event."""
    try:
        data = parsed_json(line)
    except ValueError as error:
        raise EventLineError(f"not JSON ({error})") from error
    return event_from_json(data)


def event_from_json(data: object) -> Event:
    """Returns the event of a parsed line. Raises EventLineError when it is not an event."""
    if not isinstance(data, dict) or "event" not in data:
        raise EventLineError("not an event: it must be a JSON object with the key 'event'")
    name = data["event"]
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise EventLineError(f"this version knows no event {name!r:.80}")
    try:
        payload = reader_of(cls)(data)
        run_id, sequence, time_ms = _ENVELOPE(data)
        return Event(run_id, sequence, time_ms, payload)
    except ValueError as error:
        raise EventLineError(f"no whole {name}: {error}") from error


def _quoted(text: str) -> str:
    return escape_lone_surrogates(encode_basestring(text))


def _answer_delta(payload: Any) -> str:
    return f'"round":{payload.round},"text":{_quoted(payload.text)}'


def _arguments_delta(payload: Any) -> str:
    return f'"call_id":{_quoted(payload.call_id)},"fragment":{_quoted(payload.fragment)}'


_DELTAS: dict[type[EventPayload], Callable[[Any], str]] = {
    TextDelta: _answer_delta,
    ReasoningDelta: _answer_delta,
    CallArgumentsDelta: _arguments_delta,
}


class _Envelope(NamedTuple):
    run: str
    seq: int
    ms: Milliseconds


_ENVELOPE = reader_of(_Envelope)
