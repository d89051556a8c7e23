"""A model that plays a recorded run again: the same answers, one for each request, whatever the request says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ModelEvent,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    TextDelta,
)
from workbench.trajectory.recording import Recording, RecordingError, read_recording

_PIECES = (TextDelta, ReasoningDelta, CallStarted, CallArgumentsDelta, CallFinished)


@dataclass
class _Attempt:
    """One recorded request: the pieces of its answer with how many milliseconds after the request each came, and the
    end or the error."""

    began_ms: float
    pieces: list[tuple[float, ModelEvent | AnswerFinished]] = field(default_factory=list)
    error: str | None = None


class ReplayModel:
    """Plays the rounds of a recording; of requests that were made again, only the last attempt.

    A recorded error comes again, and a request beyond the last recorded one is a ModelError. With `own_pace`, pieces
    come as long after the request as they did; `sleep` waits for seconds, `clock` gives monotonic ones.
    """

    seed = None
    notices = ()

    def __init__(
        self,
        name: str,
        recording: Recording,
        *,
        own_pace: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._recording = recording
        self._attempts = _last_attempts(recording.events)
        self._own_pace = own_pace
        self._sleep = sleep
        self._clock = clock

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Nobody has to wait for it."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Play the round of the request's number."""
        attempt = self._attempts.get(request.round)
        if attempt is None:
            raise ModelError(self._why_it_ends(request.round))
        began_s = self._clock()
        for offset_ms, piece in attempt.pieces:
            wait_s = began_s + offset_ms / 1000 - self._clock() if self._own_pace else 0.0
            await self._sleep(max(wait_s, 0.0))
            yield piece
        if attempt.error is not None:
            raise ModelError(attempt.error)
        if not attempt.pieces or not isinstance(attempt.pieces[-1][1], AnswerFinished):
            raise ModelError(self._why_it_ends(request.round))

    def _why_it_ends(self, number: int) -> str:
        """Why there is no whole answer for the request of a round."""
        path, finish = self._recording.path.name, self._recording.trajectory.finish
        if finish is not None and finish.error is not None:
            return finish.error
        if finish is None or finish.reason == "stopped":
            why = "breaks off" if finish is None else "was stopped"
            return f"{path} has no whole answer for request {number}: the recorded run {why} before it"
        return (
            f"{path} has no answer for request {number}, the recorded run ended ({finish.reason}) before it: "
            "the case, its mocks or its limits have changed since"
        )


def open_replay(name: str, file: Path, *, own_pace: bool = False) -> ReplayModel:
    """The model of a recording; raises ModelError when that cannot be read."""
    try:
        return ReplayModel(name, read_recording(file), own_pace=own_pace)
    except RecordingError as error:
        raise ModelError(str(error)) from error


def _last_attempts(events: Iterable[Event]) -> dict[int, _Attempt]:
    """The last attempt of each round's request, by the number of the round."""
    attempts: dict[int, _Attempt] = {}
    current = _Attempt(0.0)
    for event in events:
        what = event.what
        offset_ms = event.time_ms - current.began_ms
        if isinstance(what, RequestStarted):
            current = attempts[what.round] = _Attempt(event.time_ms)
        elif isinstance(what, _PIECES):
            current.pieces.append((offset_ms, what))
        elif isinstance(what, ResponseFinished):
            current.pieces.append((offset_ms, AnswerFinished(what.stop_reason, what.usage, what.carry)))
        elif isinstance(what, RequestFailed):
            current.error = what.error
    return attempts
