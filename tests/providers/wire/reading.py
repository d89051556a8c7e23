"""Reads answers in tests: from the text of a stream to the events for the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.config.models import ModelSpec, Provider
from workbench.providers.http.answers import SseParser
from workbench.providers.http.endpoints import wire_of
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    JsonValue,
    Message,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolDefinition,
)

WEATHER = ToolDefinition("get_weather", "The weather in a city.", {"properties": {"city": {"type": "string"}}})
CLOCK = ToolDefinition("get_time")


def a_spec(provider: Provider, base_url: str = "http://localhost:1/v1", /, **params: JsonValue) -> ModelSpec:
    """Return a model of the provider with these parameters."""
    return ModelSpec("mine", provider, "model-1", base_url, params=params)


def a_request(
    *messages: Message,
    tools: Sequence[ToolDefinition] = (WEATHER, CLOCK),
    system: str | None = None,
    calls_before: int = 0,
) -> ModelRequest:
    """Return a request of round 1. Without messages, it has a question."""
    return ModelRequest(1, system, messages or (Message("user", "hi"),), tuple(tools), calls_before)


@dataclass(frozen=True)
class Answer:
    """The events of a reader, combined."""

    events: list[ModelEvent | AnswerFinished]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def ids(self) -> list[str]:
        return [event.call_id for event in self.events if isinstance(event, CallStarted)]

    @property
    def finished(self) -> list[CallFinished]:
        """The finished calls in the order in which they began."""
        done = {event.call_id: event for event in self.events if isinstance(event, CallFinished)}
        return [done[call_id] for call_id in self.ids]

    @property
    def calls(self) -> list[tuple[str, Mapping[str, JsonValue]]]:
        tools = [event.tool for event in self.events if isinstance(event, CallStarted)]
        return [(tool, call.arguments) for tool, call in zip(tools, self.finished, strict=True)]

    def fragments(self, call_id: str) -> str:
        """Return the JSON text of a call's arguments, assembled from its fragments."""
        mine = (event for event in self.events if isinstance(event, CallArgumentsDelta) and event.call_id == call_id)
        return "".join(event.fragment for event in mine)

    @property
    def end(self) -> AnswerFinished:
        assert isinstance(self.events[-1], AnswerFinished)
        return self.events[-1]


def read(provider: Provider, stream: str | bytes, request: ModelRequest | None = None) -> Answer:
    """Return the answer in a stream. Raises the reader's errors."""
    parser = SseParser()
    raw = stream if isinstance(stream, bytes) else stream.encode()
    reader = wire_of(a_spec(provider)).reader(request or a_request())
    for event in [*parser.feed(raw), *parser.close()]:
        reader.feed(event)
    reader.finish()
    return Answer(reader.events)


def read_whole(provider: Provider, document: Any, request: ModelRequest | None = None) -> Answer:
    """Return the answer in a JSON document. Raises the reader's errors."""
    reader = wire_of(a_spec(provider)).reader(request or a_request())
    reader.feed_document(document)
    reader.finish()
    return Answer(reader.events)


def body_of(spec: ModelSpec, request: ModelRequest) -> dict[str, Any]:
    """Return the parsed body of a request."""
    body: dict[str, Any] = json.loads(wire_of(spec).body(request))
    return body


def data(*documents: object) -> str:
    """Return server-sent events with these documents as data. Texts stay as they are."""
    texts = (document if isinstance(document, str) else json.dumps(document) for document in documents)
    return "".join(f"data: {text}\n\n" for text in texts)


def named(*documents: dict[str, Any]) -> str:
    """Return server-sent events named by the type of their documents, as in OpenAI's Responses and at Anthropic."""
    return "".join(f"event: {document['type']}\ndata: {json.dumps(document)}\n\n" for document in documents)
