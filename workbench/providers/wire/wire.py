"""The interface of wire formats: bodies of requests, and readers of answers. Connections are handled elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.trajectory.events import ModelEvent
from workbench.trajectory.messages import JsonValue


class SseEvent(NamedTuple):
    """One server-sent event: its name (`message` where the stream gives none) and its data, lines joined by `\n`."""

    event: str
    data: str


class AnswerReader(Protocol):
    """Reads one answer, event by event."""

    @property
    def ended(self) -> bool:
        """Whether the last event of the answer has come. Anything after it is not read."""
        ...

    def feed(self, event: SseEvent) -> Iterator[ModelEvent]:
        """Yields the events of one server-sent event.

        Raises ModelError for an error that the stream reports, and for data that is not JSON.
        """
        ...

    def feed_whole(self, document: JsonValue) -> Iterator[ModelEvent]:
        """Yields the events of an answer that came as one JSON document although a stream was requested.

        Raises ModelError when it reports an error, or is no answer.
        """
        ...

    def finish(self) -> Iterator[ModelEvent | AnswerFinished]:
        """Yields the remaining events at the end of the stream, `AnswerFinished` last.

        Raises ModelError when nothing came, or the answer is not marked as complete.
        """
        ...


class Wire(Protocol):
    """One wire format, set up for one model. `path` is appended to the base URL; `notices` and `seed` as in `Model`."""

    path: str
    notices: tuple[str, ...]
    seed: int | None

    def body(self, request: ModelRequest) -> bytes:
        """Returns the request's body as JSON. The tools are serialised once for many requests that offer the same."""
        ...

    def reader(self, request: ModelRequest) -> AnswerReader:
        """Returns a reader for the answer to that request."""
        ...

    def expect_llama_cpp(self) -> None:
        """Ask llama.cpp's server, from now on, for what only it can tell: its progress with the prompt."""
        ...

    def tool_at(self, request: ModelRequest, error_text: str) -> str | None:
        """Returns the tool (by its name in the suite) that an error of the endpoint complains about, if known."""
        ...
