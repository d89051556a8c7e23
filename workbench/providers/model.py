"""The interface of every model to the engine: a request in, a stream of model events out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from workbench.dataclasses import dataclass
from workbench.trajectory.events import (
    CallStarted,
    Deviation,
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


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: the conversation and the tools offered.

    `round` counts from 1; `calls_before` is the number of calls made in earlier rounds, so that call ids stay unique
    within the run."""

    round: int
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    calls_before: int = 0


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The end of a model's answer, always its last event.

    `provider_state` is what the provider expects back with it, `deviations` were repaired in it. `prompt_ms` is how
    long the endpoint says it took for the prompt, `waited_ms` how long the request waited at the endpoint before that,
    as far as known."""

    stop_reason: StopReason
    usage: Usage | None = None
    provider_state: JsonValue = None
    deviations: tuple[Deviation, ...] = ()
    prompt_ms: float | None = None
    waited_ms: float = 0.0

    def response(self, round_number: int, first_token_ms: float | None, latency_ms: float) -> ResponseFinished:
        """Return the event of a run, with both times in milliseconds since the request was sent."""
        first_ms = None if first_token_ms is None else round(max(first_token_ms - self.waited_ms, 0.0), 3)
        return ResponseFinished(
            round_number,
            self.stop_reason,
            self.usage,
            first_ms,
            round(max(latency_ms - self.waited_ms, 0.0), 3),
            self.provider_state,
            self.deviations,
            self.waited_ms,
        )


FIRST_TOKENS = (TextDelta, ReasoningDelta, CallStarted)
"""The events with which an answer begins."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it is sent to an endpoint.

    `headers` have the names of secrets in place of their values."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: JsonValue


class ModelError(Exception):
    """A model could not be asked, or its answer is invalid.

    Causes are an unknown name, a missing key, an unreachable endpoint or a cut stream; the message names the way out.
    `retryable` means that the same request may well succeed a little later; `retry_after_s` is how long the endpoint
    asks to wait before that."""

    def __init__(self, message: str, *, retryable: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class TooMuchError(ModelError):
    """An answer exceeds the limits: a failure of the model, not of the infrastructure."""


@runtime_checkable
class Model(Protocol):
    """One model behind one API."""

    @property
    def name(self) -> str:
        """The name that the user gave it."""
        ...

    @property
    def seed(self) -> int | None:
        """The seed that is sent with every request, if any."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """One sentence for each of the user's settings without effect, such as a parameter that the API lacks."""
        ...

    async def start(self) -> None:
        """Prepare the first request, such as by imports, so that the time is not part of a run.

        May be called more than once. Raises ModelError."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context to hold during each request; entering it waits until the endpoint may be asked again."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request piece by piece, ending with `AnswerFinished`.

        Raises ModelError when that is impossible.

        Closing the generator early releases what the request holds.
        """
        ...


@runtime_checkable
class OverHttp(Protocol):
    """A model that may be behind HTTP."""

    async def http_request(self, request: ModelRequest) -> HttpRequest | None:
        """Return the request that `stream` would send, `None` if that is not HTTP.

        Raises ModelError when the request cannot be sent."""
        ...


async def http_request_of(model: Model, request: ModelRequest) -> HttpRequest | None:
    """Return the request that a model would send, `None` for a model without HTTP.

    Raises ModelError."""
    if not isinstance(model, OverHttp):
        return None
    return await model.http_request(request)


class ModelWithNotices:
    """A model with additional notices for its runs."""

    def __init__(self, model: Model, notices: tuple[str, ...]) -> None:
        self._model = model
        self.name, self.seed = model.name, model.seed
        self.notices = (*model.notices, *notices)

    async def start(self) -> None:
        """Start the model."""
        await self._model.start()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for the model's turn."""
        return self._model.turn()

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request with the model."""
        return self._model.stream(request)

    async def http_request(self, request: ModelRequest) -> HttpRequest | None:
        """Return the HTTP request that the model would send."""
        return await http_request_of(self._model, request)


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff.

    Waits double from `first_wait_s` up to `longest_wait_s`, each spread by up to a quarter so that runs that failed
    together do not retry together. A wait that the endpoint asks for takes precedence, up to `longest_asked_s`.
    `attempts` includes the first one. `sleep` waits seconds, `spread` returns a number in 0..1."""

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    spread: Callable[[], float] = random.random

    def wait_s(self, attempt: int, asked_s: float | None) -> float | None:
        """Return the seconds to wait after failed attempt number `attempt` (from 1); `None` when it was the last."""
        if attempt >= self.attempts:
            return None
        if asked_s is not None:
            return min(max(asked_s, 0.0), self.longest_asked_s)
        grown = min(self.first_wait_s * 2.0 ** (attempt - 1), self.longest_wait_s)
        return grown * (1 - 0.25 * self.spread())


DEFAULT_RETRIES = RetryPolicy()
