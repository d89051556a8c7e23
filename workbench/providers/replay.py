"""A model that plays a recorded run again: the same answers, one for each request, whatever the request says.

A recording is of one case; a folder of them plays the newest one of each.
"""

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
from workbench.trajectory.recording import Recording, RecordingError, read_header, read_recording, recordings_in

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

    @property
    def case_id(self) -> str:
        """The case whose run was recorded."""
        return self._recording.header.case

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
        if finish.reason == "step failed":
            return (
                f"{path} has no answer for request {number}, the recorded chain stopped at a step that failed, and "
                "does not now: its steps have changed since, or another grader decides"
            )
        return (
            f"{path} has no answer for request {number}, the recorded run ended ({finish.reason}) before it: "
            "the case, its mocks or its limits have changed since"
        )


class Replays:
    """The recordings that one batch plays, each read once, and those of a folder found once."""

    def __init__(self, *, own_pace: bool = False) -> None:
        self._own_pace = own_pace
        self._folders: dict[Path, _Newest] = {}
        self._models: dict[tuple[str, Path], ReplayModel] = {}

    def open(self, name: str, path: Path, case_id: str) -> ReplayModel:
        """The model that plays a recording of the case: the file `path`, or the newest of that case in the folder.

        Raises ModelError when there is none, or it cannot be read.
        """
        try:
            file = self._newest_in(path).of(case_id) if path.is_dir() else path
            if (name, file) not in self._models:
                self._models[name, file] = ReplayModel(name, read_recording(file), own_pace=self._own_pace)
        except RecordingError as error:
            raise ModelError(str(error)) from error
        model = self._models[name, file]
        if model.case_id != case_id:
            raise ModelError(
                f"{file} records the case {model.case_id!r}, not {case_id!r}: choose that one with "
                f"--case {model.case_id}, or play a folder that holds a recording of each case"
            )
        return model

    def check(self, path: Path) -> None:
        """Raises ModelError when a file is no recording, or a folder holds none."""
        try:
            if path.is_dir():
                self._newest_in(path)
            else:
                read_recording(path)
        except RecordingError as error:
            raise ModelError(str(error)) from error

    def _newest_in(self, folder: Path) -> _Newest:
        if folder not in self._folders:
            self._folders[folder] = _Newest(folder)
        return self._folders[folder]


class _Newest:
    """The newest recording of each case in a folder, by the header lines. Raises RecordingError when there is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unreadable: list[RecordingError] = []
        found: dict[str, tuple[str, Path]] = {}
        try:
            files = recordings_in(folder)
        except OSError as error:
            raise RecordingError(f"{folder} cannot be read: {error.strerror}") from error
        for file in files:
            try:
                header = read_header(file)
            except RecordingError as error:
                self._unreadable.append(error)
                continue
            found[header.case] = max(found.get(header.case, ("", file)), (header.started_at, file))
        self._files = {case_id: file for case_id, (_, file) in found.items()}
        if not self._files:
            raise RecordingError(f"{folder} holds no recording: *.run.jsonl{self._trouble}")

    def of(self, case_id: str) -> Path:
        """The newest recording of a case; raises RecordingError when there is none."""
        try:
            return self._files[case_id]
        except KeyError:
            raise RecordingError(f"{self._folder} holds no recording of the case {case_id!r}{self._trouble}") from None

    @property
    def _trouble(self) -> str:
        return "".join(f"; {error}" for error in self._unreadable)


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
