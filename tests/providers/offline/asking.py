"""The offline model in tests: tools in short form, one answer, a whole conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.providers.offline.model import OfflineModel
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    JsonValue,
    Message,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolDefinition,
)

Call = tuple[str, Mapping[str, JsonValue]]
Answering = Callable[[str, Mapping[str, JsonValue]], JsonValue]


class ToolFailedError(Exception):
    """Raised by a test's tool to make its call fail."""


@dataclass(frozen=True)
class Answer:
    """One answer of the model, assembled from its pieces."""

    events: tuple[ModelEvent | AnswerFinished, ...]

    @property
    def calls(self) -> list[Call]:
        tools = {event.call_id: event.tool for event in self.events if isinstance(event, CallStarted)}
        return [(tools[event.call_id], event.arguments) for event in self.events if isinstance(event, CallFinished)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))


def tool(
    name: str, description: str = "", /, *, required: Sequence[str] | None = None, **properties: JsonValue
) -> ToolDefinition:
    """Return a tool whose parameters are given by name. All are required unless `required` lists them."""
    names = list(properties) if required is None else list(required)
    return ToolDefinition(name, description, {"type": "object", "properties": properties, "required": [*names]})


def text(description: str = "", **more: JsonValue) -> dict[str, JsonValue]:
    """Return the schema of a text."""
    return {"type": "string", "description": description, **more}


def number(description: str = "", **more: JsonValue) -> dict[str, JsonValue]:
    """Return the schema of a number."""
    return {"type": "number", "description": description, **more}


def choice(*values: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    """Return the schema of one of several values."""
    return {"type": "string", "enum": [*values], **more}


def answer_to(request: ModelRequest) -> Answer:
    """Return the offline model's answer to a request."""

    async def collect() -> tuple[ModelEvent | AnswerFinished, ...]:
        return tuple([piece async for piece in OfflineModel().stream(request)])

    return Answer(asyncio.run(collect()))


def ask(user: str, *tools: ToolDefinition, before: Sequence[Message] = ()) -> Answer:
    """Return the offline model's first answer to a user."""
    return answer_to(ModelRequest(1, None, (*before, Message("user", user)), tools))


def converse(
    user: str, tools: Sequence[ToolDefinition], answering: Answering, *, before: Sequence[Message] = ()
) -> tuple[list[list[Call]], str]:
    """Return the calls of each round of a conversation, and the final answer. Fails if the conversation does not
    end."""
    messages = [*before, Message("user", user)]
    rounds: list[list[Call]] = []
    made = 0
    for number_of_round in range(1, 12):
        answer = answer_to(ModelRequest(number_of_round, None, tuple(messages), tuple(tools), calls_before=made))
        if not answer.calls:
            return rounds, answer.text
        ids = [event.call_id for event in answer.events if isinstance(event, CallStarted)]
        calls = [ToolCall(call_id, *call) for call_id, call in zip(ids, answer.calls, strict=True)]
        messages += [Message("assistant", "", tuple(calls)), *(_result(call, answering) for call in calls)]
        rounds.append(answer.calls)
        made += len(calls)
    raise AssertionError("the conversation does not end")


def _result(call: ToolCall, answering: Answering) -> Message:
    try:
        result = answering(call.tool, call.arguments)
    except ToolFailedError as error:
        return Message("tool", str(error), call_id=call.id, is_error=True)
    return Message("tool", result if isinstance(result, str) else json.dumps(result), call_id=call.id)
