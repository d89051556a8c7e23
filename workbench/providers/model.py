"""The interface between models and the engine: a request in, a stream of model events out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from workbench.dataclasses import dataclass
from workbench.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARS, MAX_ANSWER_VALUES, MAX_CALL_ARGUMENTS, Limit
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Deviation,
    EventPayload,
    JsonValue,
    Message,
    ModelEvent,
    ReasoningDelta,
    ResponseFinished,
    StopReason,
    TextDelta,
    ToolDefinition,
    Usage,
)
from workbench.trajectory.external_run import ExternalRun
from workbench.trajectory.media import Media


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model: the conversation and the tools on offer.

    `round` counts from 1. `calls_before` is the number of calls in earlier rounds, from which unique ids of new calls
    are made."""

    round: int
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    calls_before: int = 0


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The last event of a model's answer.

    `provider_state` is data that the provider requires back with the answer. `deviations` are the deviations from the
    API's format that were repaired. `prompt_ms` is the time for processing the prompt, as the endpoint reported.
    `waited_ms` is the time for which the request waited at the endpoint before this processing, 0 if unknown. A
    `paused` answer must be sent back, and the model then continues it. `cost_usd` is the cost that an agent reports.
    `run` is the whole run of an agent that has its own loop."""

    stop_reason: StopReason
    usage: Usage | None = None
    provider_state: JsonValue = None
    deviations: tuple[Deviation, ...] = ()
    prompt_ms: float | None = None
    waited_ms: float = 0.0
    paused: bool = False
    cost_usd: float | None = None
    run: ExternalRun | None = None

    def response(self, round_number: int, first_token_ms: float | None, latency_ms: float) -> ResponseFinished:
        """Convert this event to an event of the run.

        `first_token_ms` and `latency_ms` are milliseconds since the request was sent. The wait at the endpoint is
        subtracted from both."""
        # The time spent waiting for other requests is subtracted, because it is not a property of the model.
        first_ms: float | None = None
        if first_token_ms is not None:
            first_ms = round(max(first_token_ms - self.waited_ms, 0.0), 3)
        return ResponseFinished(
            round_number,
            self.stop_reason,
            self.usage,
            first_ms,
            round(max(latency_ms - self.waited_ms, 0.0), 3),
            self.provider_state,
            self.deviations,
            self.waited_ms,
            self.cost_usd,
        )


FIRST_TOKEN_EVENTS = (TextDelta, ReasoningDelta, CallStarted)
"""The kinds of events that count as the first token."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it is sent to an endpoint.

    `headers` have the names of secrets in place of their values."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: JsonValue


class ModelError(Exception):
    """A model could not be used, or its answer is invalid.

    Causes are, for example, an unknown name, a missing key, an unreachable endpoint or a cut stream. The message names
    the remedy. `retryable` means that the same request may succeed a little later. `retry_after_s` is the wait in
    seconds that the endpoint asks for."""

    def __init__(self, message: str, *, retryable: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class AnswerTooLargeError(ModelError):
    """An answer exceeds the limits. The run then fails because of the model, not because of the infrastructure."""


class AnswerSize:
    """The size of one answer while it arrives, checked against the limits."""

    def __init__(self) -> None:
        self._characters = self._calls = self._values = 0

    def add(self, event: EventPayload) -> None:
        """Count a piece of the answer.

        Raises AnswerTooLargeError when the answer exceeds a limit."""
        match event:
            case TextDelta(text=piece) | ReasoningDelta(text=piece) | CallArgumentsDelta(fragment=piece):
                self._characters = _counted(self._characters, len(piece), MAX_ANSWER_CHARS)
            case CallStarted():
                self._calls = _counted(self._calls, 1, MAX_ANSWER_CALLS)
            case CallFinished(arguments=arguments):
                _counted(0, len(arguments), MAX_CALL_ARGUMENTS)
                values = _values_in(dict(arguments), MAX_ANSWER_VALUES)
                self._values = _counted(self._values, values, MAX_ANSWER_VALUES)


def _counted(before: int, more: int, limit: Limit) -> int:
    if before + more > limit:
        raise AnswerTooLargeError(limit.reached())
    return before + more


def _values_in(value: JsonValue, maximum: int) -> int:
    """Count the values nested in a value, at any depth. Counting stops when there are more than `maximum`."""
    # This is a loop with a stack, because the model decides how deeply the JSON is nested, and Python's recursion is
    # limited.
    count, waiting = 0, [value]
    while waiting and count <= maximum:
        value = waiting.pop()
        if isinstance(value, dict):
            value = [*value.values()]
        if isinstance(value, list):
            count += len(value)
            waiting.extend(value)
    return count


@runtime_checkable
class Model(Protocol):
    """One model behind one API."""

    @property
    def name(self) -> str:
        """The name of the model in the user's settings."""
        ...

    @property
    def seed(self) -> int | None:
        """The seed that is sent with every request; `None` if no seed is sent."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """A sentence for each setting of the user that has no effect, such as a parameter that the API lacks."""
        ...

    async def start(self) -> None:
        """Prepare the first request, for example by importing libraries.

        This time does not count as time of a run. The method may be called more than once. Raises ModelError."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which one request is made. Entering it waits until the limits allow the request."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Yield the events of the answer to a request; the last one is `AnswerFinished`.

        Closing the generator early ends the request and releases its connection. Raises ModelError."""
        ...


@runtime_checkable
class HttpModel(Protocol):
    """A model that can report its HTTP requests."""

    async def http_request(self, request: ModelRequest) -> HttpRequest | None:
        """Return the request that `stream` would send; `None` for a model without HTTP.

        Raises ModelError when the request cannot be sent."""
        ...


@runtime_checkable
class AcceptsProviderTools(Protocol):
    """A model that may be able to use the tools that its provider runs."""

    def accepts_tool(self, tool: ToolDefinition, *, trusted: bool) -> bool:
        """Return whether a tool that model providers run can be offered to the model.

        `trusted` means that the user has allowed providers to run the tool."""
        ...


def accepts_tool(model: Model, tool: ToolDefinition, *, trusted: bool = True) -> bool:
    """Return whether a tool can be offered to a model.

    A tool that model providers run needs a model whose API supports the tool. `trusted` means that the user has allowed
    providers to run the tool."""
    if tool.provider is None:
        return True
    return isinstance(model, AcceptsProviderTools) and model.accepts_tool(tool, trusted=trusted)


@runtime_checkable
class AcceptsMedia(Protocol):
    """A model that may accept images or sounds in messages."""

    def accepts_media(self, media: Media) -> bool:
        """Return whether the model accepts an image or a sound."""
        ...


def accepts_media(model: Model, media: Media) -> bool:
    """Return whether a model accepts an image or a sound.

    A model that does not accept it reads a placeholder instead."""
    return isinstance(model, AcceptsMedia) and model.accepts_media(media)


async def http_request_of(model: Model, request: ModelRequest) -> HttpRequest | None:
    """Return the request that a model would send; `None` for a model without HTTP.

    Raises ModelError."""
    if not isinstance(model, HttpModel):
        return None
    return await model.http_request(request)


class ModelWithNotices:
    """Wraps a model to add notices about its runs."""

    def __init__(self, model: Model, notices: tuple[str, ...]) -> None:
        self._model = model
        self.name, self.seed = model.name, model.seed
        self.notices = (*model.notices, *notices)

    async def start(self) -> None:
        await self._model.start()

    def turn(self) -> AbstractAsyncContextManager[None]:
        return self._model.turn()

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        return self._model.stream(request)

    async def http_request(self, request: ModelRequest) -> HttpRequest | None:
        return await http_request_of(self._model, request)

    def accepts_tool(self, tool: ToolDefinition, *, trusted: bool) -> bool:
        return accepts_tool(self._model, tool, trusted=trusted)

    def accepts_media(self, media: Media) -> bool:
        return accepts_media(self._model, media)


@dataclass(frozen=True)
class RetryPolicy:
    """Decides how often and when failed requests are retried: exponential backoff with jitter.

    Waits double from `first_wait_s` up to `max_wait_s`, and are shortened at random by up to a quarter. A wait that the
    endpoint asks for takes precedence, up to `max_requested_wait_s`. `attempts` includes the first attempt. `sleep`
    waits seconds, and `spread` returns a random number from 0 to 1."""

    attempts: int = 5
    first_wait_s: float = 0.5
    max_wait_s: float = 8.0
    max_requested_wait_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random

    def wait_s(self, attempt: int, asked_s: float | None) -> float | None:
        """Return the seconds to wait before the next attempt; `None` if there is no further attempt.

        `attempt` is the number of the failed attempt, from 1. `asked_s` is the wait that the endpoint asks for."""
        if attempt >= self.attempts:
            return None
        if asked_s is not None:
            return min(max(asked_s, 0.0), self.max_requested_wait_s)
        grown = min(self.first_wait_s * 2.0 ** (attempt - 1), self.max_wait_s)
        # Without the jitter, runs that failed together would retry together.
        return grown * (1 - 0.25 * self.spread())


DEFAULT_RETRIES = RetryPolicy()
