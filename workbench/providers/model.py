"""What every model looks like to the engine: a request in, a stream of model events out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from workbench.trajectory.events import ModelEvent, StopReason
from workbench.trajectory.messages import Message, ToolDefinition, Usage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request: the conversation so far and the tools on offer. `round` counts from 1; `calls_before` is the number
    of calls made in earlier rounds, so that call ids stay unique within the run."""

    round: int
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...]
    seed: int | None = None
    calls_before: int = 0


@dataclass(frozen=True, slots=True)
class AnswerFinished:
    """The end of a model's answer, always the last thing it says."""

    stop_reason: StopReason
    usage: Usage | None = None


class ModelError(Exception):
    """A model could not be asked: unknown name, missing key, unreachable endpoint. The message names the way out."""


class Model(Protocol):
    """One model behind one API."""

    name: str

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request piece by piece, ending with `AnswerFinished`; raises ModelError when that is impossible.

        Closing the generator early gives back what the request holds.
        """
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
