"""A model that replays a recorded run: it returns the recorded answers in order, whatever the requests say.

A recording has the run of one case. From a folder, the newest recording of each case is replayed. All these recordings
must be of the same model, because mixed results would describe no model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import field
from pathlib import Path

from workbench.dataclasses import dataclass
from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.trajectory.events import (
    AgentNoted,
    AgentStarted,
    AnswerPaused,
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ModelEvent,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    TextDelta,
    TextWasReasoning,
    ToolDefinition,
)
from workbench.trajectory.recording import Recording, RecordingError, read_header, read_recording, recordings_in

MAX_MODELS_NAMED = 8
"""The most models of a folder that a message names; the others are counted."""

_PIECES = (
    TextDelta,
    ReasoningDelta,
    TextWasReasoning,
    AgentStarted,
    AgentNoted,
    AnswerPaused,
    CallStarted,
    CallArgumentsDelta,
    CallFinished,
)


@dataclass
class _Attempt:
    """A recorded request and its answer.

    `pieces` are the events of the answer, each with the milliseconds since the request. `error` is set if the request
    failed."""

    began_ms: float
    pieces: list[tuple[float, ModelEvent | AnswerFinished]] = field(default_factory=list)
    error: str | None = None


class ReplayModel:
    """A model that replays the rounds of a recording.

    If a request was retried, only the last attempt is replayed. A recorded error is raised again. A request beyond the
    recording raises ModelError. With `original_pace`, events arrive at their recorded times. `sleep` waits seconds, and
    `clock` returns monotonic seconds."""

    seed = None
    notices = ()

    def __init__(
        self,
        name: str,
        recording: Recording,
        *,
        original_pace: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._recording = recording
        self._attempts = _last_attempts(recording.events)
        self._original_pace = original_pace
        self._sleep = sleep
        self._clock = clock

    @property
    def recording(self) -> Recording:
        return self._recording

    @property
    def case_id(self) -> str:
        return self._recording.header.case

    async def start(self) -> None:
        """Do nothing, because a replay needs no preparation."""

    def accepts_tool(self, tool: ToolDefinition, *, trusted: bool) -> bool:
        """Return True for every tool, because nothing is sent to a provider."""
        return True

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context without effect, because no limits apply to a replay."""
        return nullcontext()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Yield the recorded answer of the round that is requested.

        Raises ModelError if the recording lacks the whole answer, or if it has an error in place of the answer."""
        attempt = self._attempts.get(request.round)
        if attempt is None:
            raise ModelError(self._why_it_ends(request.round))
        began_s = self._clock()
        for offset_ms, piece in attempt.pieces:
            wait_s = 0.0
            if self._original_pace:
                wait_s = began_s + offset_ms / 1000 - self._clock()
            # A sleep of 0 seconds lets other runs proceed.
            await self._sleep(max(wait_s, 0.0))
            yield piece
        if attempt.error is not None:
            raise ModelError(attempt.error)
        if not attempt.pieces or not isinstance(attempt.pieces[-1][1], AnswerFinished):
            raise ModelError(self._why_it_ends(request.round))

    def _why_it_ends(self, number: int) -> str:
        path, finish = self._recording.path.name, self._recording.trajectory.finish
        if finish is None:
            return f"{path} has no whole answer for request {number}, because the recorded run breaks off earlier"
        if finish.error is not None:
            return finish.error
        if finish.reason == "stopped":
            return f"{path} has no whole answer for request {number}, because the recorded run was stopped earlier"
        if finish.reason == "step failed":
            return (
                f"{path} has no answer for request {number}: the recorded chain stopped at a failed step, which does "
                "not fail now, because the steps have changed since or another grader decides"
            )
        return (
            f"{path} has no answer for request {number}: the recorded run ended ({finish.reason}) before it, so "
            "the case, its mocks or its limits have changed since"
        )


class RecordingPlayer:
    """Opens the recordings that one batch replays. Each file is read once, and each folder is searched once."""

    def __init__(self, *, original_pace: bool = False) -> None:
        self._original_pace = original_pace
        self._folders: dict[Path, _RecordingFolder] = {}
        self._models: dict[tuple[str, Path], ReplayModel] = {}

    def open(self, name: str, path: Path, of_model: str | None, case_id: str) -> ReplayModel:
        """Return the model that replays a recording of the case.

        `path` is a file or a folder. From a folder, the newest recording of the case with the model `of_model` is
        replayed. Raises ModelError if the recording is missing or unreadable. Also raises it if `of_model` is `None`
        and the folder has recordings of several models."""
        try:
            file = path
            if path.is_dir():
                file = self._newest_in(path, of_model, name).of(case_id)
            if (name, file) not in self._models:
                self._models[name, file] = ReplayModel(name, read_recording(file), original_pace=self._original_pace)
        except RecordingError as error:
            raise ModelError(str(error)) from error
        model = self._models[name, file]
        if model.case_id != case_id:
            raise ModelError(
                f"{file} records the case {model.case_id!r}, not {case_id!r}: choose that one with "
                f"--case {model.case_id}, or play a folder that holds a recording of each case"
            )
        return model

    def check(self, name: str, path: Path, of_model: str | None) -> None:
        """Raise ModelError if `open` would raise it for every case."""
        try:
            if path.is_dir():
                self._newest_in(path, of_model, name)
            else:
                read_recording(path)
        except RecordingError as error:
            raise ModelError(str(error)) from error

    def _newest_in(self, path: Path, of_model: str | None, name: str) -> _NewestRecordings:
        if path not in self._folders:
            self._folders[path] = _RecordingFolder(path)
        return self._folders[path].newest(of_model, name)


class _RecordingFolder:
    """The recordings in a folder, found by their header lines alone.

    Raises RecordingError when there are none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._unreadable: list[RecordingError] = []
        found: dict[str, dict[str, tuple[str, Path]]] = {}
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
            cases = found.setdefault(header.model, {})
            # ISO 8601 texts sort in the order of their times.
            cases[header.case] = max(cases.get(header.case, ("", file)), (header.started_at, file))
        if not found:
            raise RecordingError(f"{folder} contains no recording (a file *.run.jsonl){self._trouble}")
        self._models: dict[str, dict[str, Path]] = {}
        for model, cases in sorted(found.items()):
            self._models[model] = {case_id: file for case_id, (_, file) in cases.items()}

    def newest(self, of_model: str | None, name: str) -> _NewestRecordings:
        """Return the newest recording of each case with a model.

        `of_model` may be `None` if the folder has recordings of one model only. Raises RecordingError if the folder has
        no recording of the model, or if `of_model` is missing although there are several. Messages of errors name the
        model that replays as `name`."""
        if of_model is None and len(self._models) > 1:
            first = next(iter(self._models))
            raise RecordingError(
                f"{self._folder} contains recordings of several models, {_listed(self._models)}: choose one, "
                f"as with {name}#{first}"
            )
        if of_model is not None and of_model not in self._models:
            raise RecordingError(
                f"{self._folder} contains no recording of the model {of_model!r}, only of {_listed(self._models)}"
                f"{self._trouble}"
            )
        if of_model is None:
            [files] = self._models.values()
            return _NewestRecordings(files, str(self._folder), self._trouble)
        return _NewestRecordings(self._models[of_model], str(self._folder), f" on {of_model}{self._trouble}")

    @property
    def _trouble(self) -> str:
        return "".join(f"; {error}" for error in self._unreadable)


@dataclass(frozen=True)
class _NewestRecordings:
    """The newest recording of each case in a folder.

    `added` is appended to the message about a case without a recording."""

    files: Mapping[str, Path]
    folder: str
    added: str

    def of(self, case_id: str) -> Path:
        if case_id not in self.files:
            raise RecordingError(f"{self.folder} contains no recording of the case {case_id!r}{self.added}")
        return self.files[case_id]


def _listed(models: Iterable[str]) -> str:
    """Return a phrase with the names of the first models and the number of the others."""
    *most, last = models
    if len(most) >= MAX_MODELS_NAMED:
        return f"{', '.join(most[:MAX_MODELS_NAMED])} and {len(most) + 1 - MAX_MODELS_NAMED} more"
    return f"{', '.join(most)} and {last}" if most else last


def _last_attempts(events: Iterable[Event]) -> dict[int, _Attempt]:
    attempts: dict[int, _Attempt] = {}
    current = _Attempt(0.0)
    for event in events:
        what = event.payload
        offset_ms = event.time_ms - current.began_ms
        if isinstance(what, RequestStarted):
            current = attempts[what.round] = _Attempt(event.time_ms)
        elif isinstance(what, _PIECES) or (isinstance(what, ResultReceived) and what.source == "provider"):
            current.pieces.append((offset_ms, what))
        elif isinstance(what, ResponseFinished):
            end = AnswerFinished(what.stop_reason, what.usage, what.provider_state, what.deviations)
            current.pieces.append((offset_ms, end))
        elif isinstance(what, RequestFailed):
            current.error = what.error
    return attempts
