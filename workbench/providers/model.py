"""What every model looks like to the engine: a request in, a stream of model events out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.trajectory.events import ModelEvent, StopReason
from workbench.trajectory.messages import JsonValue, Message, ToolDefinition, Usage

# The most that one answer of a model may hold: generous for any model, and more than any suite can mean.

MOST_CHARACTERS = 2 * 1024 * 1024
"""Text, reasoning and arguments together: some 500,000 tokens."""

MOST_CALLS = 1_000

MOST_ARGUMENTS = 1_000
"""Named arguments of one call."""

MOST_VALUES = 100_000
"""Values in the arguments of all calls, at any depth."""

MOST_STREAM_BYTES = 256 * 1024 * 1024
"""What an endpoint sends for one answer, with all that surrounds it."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: the conversation so far and the tools on offer. `round` counts from 1; `calls_before` is the number
    of calls made in earlier rounds, so that call ids stay unique within the run."""

    round: int
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    calls_before: int = 0


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The end of a model's answer, always the last thing it says. `provider_state` is what the provider wants back with
    it."""

    stop_reason: StopReason
    usage: Usage | None = None
    provider_state: JsonValue = None


class ModelError(Exception):
    """A model could not be asked, or its answer is none: unknown name, missing key, unreachable endpoint, cut stream.

    The message names the way out. `passing` means that the same request may well succeed a little later;
    `retry_after_s` is how long the endpoint asks to wait before that.
    """

    def __init__(self, message: str, *, retryable: bool = False, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class TooMuchError(ModelError):
    """An answer holds more than any suite can mean: the model's failure, and none of the infrastructure."""


@runtime_checkable
class Model(Protocol):
    """One model behind one API."""

    @property
    def name(self) -> str:
        """The name under which the user knows it."""
        ...

    @property
    def seed(self) -> int | None:
        """The seed that is sent with every request, if one is."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What of the user's settings is not done, one sentence each: parameters that the API lacks."""
        ...

    async def start(self) -> None:
        """Do what takes time before the first request, such as importing an SDK. Runs begin after it. May be called
        more than once; raises ModelError."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """To be held around each request: waits until the endpoint may be asked once more."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request piece by piece, ending with `AnswerFinished`; raises ModelError when that is impossible.

        Closing the generator early gives back what the request holds.
        """
        ...


class ModelWithNotices:
    """A model with further notices about the runs that it is asked for."""

    def __init__(self, model: Model, notices: tuple[str, ...]) -> None:
        self._model = model
        self.name, self.seed = model.name, model.seed
        self.notices = (*model.notices, *notices)

    async def start(self) -> None:
        """Start the model."""
        await self._model.start()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """That of the model."""
        return self._model.turn()

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """What the model answers."""
        return self._model.stream(request)
