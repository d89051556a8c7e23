"""Event sequences of runs, written by hand or drawn by hypothesis."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    Deviation,
    Event,
    EventPayload,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    HoldPlace,
    JsonValue,
    Message,
    MessageAdded,
    Paused,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    ResultSource,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepStarted,
    StopReason,
    TextDelta,
    TextWasReasoning,
    ToolCall,
    ToolDefinition,
    Usage,
)


def stamped(happenings: Sequence[EventPayload], run_id: str = "run") -> list[Event]:
    """Return events with numbers, one millisecond apart."""
    return [Event(run_id, number, float(number), what) for number, what in enumerate(happenings)]


def events_of(rounds: Sequence[tuple[str, int]], finish: RunFinished | None = None, run_id: str = "run") -> list[Event]:
    """Return the events of a run whose rounds each have a text and a number of answered calls to the tool `t`."""
    happenings: list[EventPayload] = [
        RunStarted("hash", "case", "Case", "offline", None, (Message("user", "Go."),), (ToolDefinition("t"),))
    ]
    for number, (text, calls) in enumerate(rounds, start=1):
        ids = [f"c{number}-{index}" for index in range(calls)]
        happenings.append(RequestStarted(number))
        happenings.append(TextDelta(number, text))
        for call_id in ids:
            happenings += [
                CallStarted(number, call_id, "t"),
                CallArgumentsDelta(call_id, "{}"),
                CallFinished(call_id, {}),
            ]
        happenings.append(ResponseFinished(number, "tool calls" if calls else "answered", Usage(3, 5), 1.0, 2.0))
        happenings += [ResultReceived(call_id, "ok", False, "default", 0.1) for call_id in ids]
    happenings.append(finish or RunFinished("answered"))
    return stamped(happenings, run_id)


json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_objects = st.dictionaries(st.text(max_size=6), json_values, max_size=3)
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Lone surrogates too, because a model's JSON may contain them. JSON parsers read a pair as one character.
_texts = st.text(st.characters(), max_size=20).filter(lambda text: not _PAIR.search(text))
_ms = st.floats(0, 1e6)


@st.composite
def _answers(draw: st.DrawFn, number: int) -> tuple[list[EventPayload], list[str]]:
    """Draw the pieces of an answer, and the ids of its calls."""
    pieces: list[EventPayload] = [ReasoningDelta(number, text) for text in draw(st.lists(_texts, max_size=2))]
    pieces += [TextDelta(number, text) for text in draw(st.lists(_texts, max_size=3))]
    if draw(st.booleans()):
        pieces += [TextWasReasoning(number), *(TextDelta(number, text) for text in draw(st.lists(_texts, max_size=1)))]
    ids = [f"c{number}-{index}" for index in range(draw(st.integers(0, 3)))]
    for call_id in ids:
        pieces.append(CallStarted(number, call_id, draw(_texts)))
        pieces += [CallArgumentsDelta(call_id, text) for text in draw(st.lists(_texts, max_size=2))]
        broken = draw(st.booleans())
        pieces.append(
            CallFinished(call_id, {}, draw(_texts), "not an object")
            if broken
            else CallFinished(call_id, draw(_objects))
        )
    return pieces, ids


@st.composite
def _holds(draw: st.DrawFn, at: HoldPlace, number: int, call_id: str | None = None) -> list[EventPayload]:
    """Draw a hold, perhaps with a message to the model, or nothing."""
    if not draw(st.booleans()):
        return []
    said = [MessageAdded(text) for text in draw(st.lists(_texts, max_size=2))]
    return [Paused(draw(_texts), call_id, at, number), *said, Resumed(draw(_ms))]


@st.composite
def _rounds(draw: st.DrawFn, number: int) -> list[EventPayload]:
    """Draw a whole answer with the results of its calls. A person may have changed some of them."""
    happenings, ids = draw(_answers(number))
    usage = draw(st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)))
    reason: StopReason = "tool calls" if ids else "answered"
    state = draw(st.none() | json_values)
    deviations = tuple(Deviation(draw(_texts), draw(_texts), call_id) for call_id in (*ids[:1], None))
    repaired = draw(st.sampled_from([(), deviations]))
    happenings.append(ResponseFinished(number, reason, usage, draw(st.none() | _ms), draw(_ms), state, repaired))
    for call_id in ids:
        happenings += draw(_holds("call", number, call_id))
        if draw(st.booleans()):
            happenings.append(CallEdited(call_id, draw(_objects), draw(_objects)))
        server = draw(st.none() | _texts)
        if server is not None:
            if draw(st.booleans()):
                happenings += [Paused(draw(_texts), call_id), Resumed(draw(_ms))]
            happenings.append(ExecutionStarted(call_id, server))
            if draw(st.booleans()):
                progress = ExecutionProgress(call_id, draw(_ms), draw(st.none() | _ms), draw(st.none() | _texts))
                happenings.append(progress)
        source: ResultSource = "server" if server is not None else draw(st.sampled_from(_UNREAL))
        result = ResultReceived(call_id, draw(_texts), draw(st.booleans()), source, draw(_ms))
        happenings.append(result)
        if draw(st.booleans()):
            edit = ResultEdited(call_id, draw(_texts), draw(st.booleans()), result.content, result.is_error)
            happenings.append(edit)
        happenings += draw(_holds("result", number, call_id))
    return happenings


_UNREAL: list[ResultSource] = ["default", "edited", "skipped", "replayed"]


@st.composite
def scripts(draw: st.DrawFn) -> list[Event]:
    """Draw a whole run: rounds of text, reasoning, calls (some broken) and results, perhaps with retries, pauses,
    progress and steps, and the actions of a person at holds."""
    happenings: list[EventPayload] = [
        RunStarted(
            draw(_texts),
            draw(_texts),
            draw(_texts),
            "offline",
            draw(st.none() | _texts),
            (
                Message("user", draw(_texts)),
                Message("assistant", tool_calls=(ToolCall("h1", "t", draw(_objects)),)),
                Message("tool", draw(_texts), call_id="h1", is_error=draw(st.booleans())),
            ),
            (ToolDefinition("t", draw(_texts), draw(_objects), draw(_objects), draw(st.none() | _texts)),),
            draw(st.none() | st.integers(0, 2**63 - 1)),
            tuple(draw(st.lists(_texts, max_size=2))),
        )
    ]
    forked_after = draw(st.none() | st.integers(0, 3))
    for number in range(1, draw(st.integers(0, 3)) + 1):
        if forked_after == number - 1:
            happenings.append(Forked(draw(_texts), draw(_texts), number, draw(st.none() | st.integers(0, 3))))
        if draw(st.booleans()):
            happenings.append(StepStarted(number, draw(st.none() | _texts), draw(st.none() | _texts)))
        happenings += draw(_holds("request", number))
        happenings.append(RequestStarted(number))
        if draw(st.booleans()):
            # A retry discards the answer, and may reuse its call ids.
            happenings += draw(_answers(number))[0]
            happenings += [
                RequestFailed(number, draw(_texts)),
                RetryScheduled(number, 2, draw(_ms), draw(_texts)),
                RequestStarted(number),
            ]
        happenings += draw(_rounds(number))
        if draw(st.booleans()):
            # So does regenerating a round, but the answer stays beside it.
            happenings += [Regenerated(number), RequestStarted(number), *draw(_rounds(number))]
    happenings.append(draw(st.sampled_from([RunFinished("answered"), RunFinished("error", "no route")])))
    return stamped(happenings)
