"""A scripted model for tests of the engine."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace

from tests.providers.server import MARK
from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    JsonValue,
    ModelEvent,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)


@dataclass(frozen=True)
class Say:
    """One answer: text, calls as (tool, arguments), and the reason of its end."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, JsonValue]]] = ()
    broken_call: str | None = None
    reasoning: str = ""
    stop_reason: StopReason | None = None


@dataclass(frozen=True)
class Fail:
    """Sends some text, then the endpoint fails."""

    error: Exception
    text: str = ""


@dataclass(frozen=True)
class Hang:
    """Sends some text, then waits until it is cancelled."""

    text: str = ""


@dataclass(frozen=True)
class BreakOff:
    """Stops in the middle, without an end of the answer."""

    text: str = ""


@dataclass(frozen=True)
class Cut:
    """Sends everything except the end of the answer, then fails."""

    answer: Say
    error: Exception


@dataclass
class ScriptedModel:
    """Plays its answers in order, one for each request, and records the requests."""

    answers: Sequence[Say | Fail | Hang | BreakOff | Cut]
    name: str = "scripted"
    seed: int | None = None
    notices: tuple[str, ...] = ()
    renumber: bool = True
    """Whether call ids continue to count from round to round, as they should."""
    requests: list[ModelRequest] = field(default_factory=list)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self) -> None:
        pass

    def turn(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        answer = self.answers[len(self.requests)]
        self.requests.append(request)
        if isinstance(answer, Say):
            if MARK in answer.text:
                marks = (re.search("CRITERIA ([0-9a-f]{16})", message.content) for message in request.messages)
                answer = replace(answer, text=answer.text.replace(MARK, next(found[1] for found in marks if found)))
            for event in _said(answer, request if self.renumber else replace(request, calls_before=0)):
                yield event
            return
        if isinstance(answer, Cut):
            for event in _said(answer.answer, request)[:-1]:
                yield event
            raise answer.error
        if answer.text:
            yield TextDelta(request.round, answer.text)
        if isinstance(answer, Fail):
            raise answer.error
        if isinstance(answer, Hang):
            self.hanging.set()
            await asyncio.Event().wait()


def _said(answer: Say, request: ModelRequest) -> list[ModelEvent | AnswerFinished]:
    events: list[ModelEvent | AnswerFinished] = []
    if answer.reasoning:
        events.append(ReasoningDelta(request.round, answer.reasoning))
    events += [TextDelta(request.round, word) for word in answer.text.split(" ") if word]
    calls = list(answer.calls)
    for number, (tool, arguments) in enumerate(calls, start=request.calls_before):
        call_id = f"call-{number}"
        text = json.dumps(arguments)
        events += [
            CallStarted(request.round, call_id, tool),
            CallArgumentsDelta(call_id, text[: len(text) // 2]),
            CallArgumentsDelta(call_id, text[len(text) // 2 :]),
            CallFinished(call_id, arguments),
        ]
    if answer.broken_call is not None:
        call_id = f"call-{request.calls_before + len(calls)}"
        events += [
            CallStarted(request.round, call_id, answer.broken_call),
            CallArgumentsDelta(call_id, '{"city": '),
            CallFinished(call_id, {}, '{"city": ', "it ends too early"),
        ]
    has_calls = bool(calls) or answer.broken_call is not None
    events.append(AnswerFinished(answer.stop_reason or ("tool calls" if has_calls else "answered"), Usage(10, 4)))
    return events


NO_ROUTE = Fail(ModelError("cannot reach the endpoint: connection refused"))
