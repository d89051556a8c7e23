"""A recording: one run in one file, with all that is needed to read, replay and regrade it elsewhere.

It consists of JSON lines: a header, the run's events, a result. docs/recordings.md describes version 1 key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from workbench.dataclasses import (
    Milliseconds,
    compact_json,
    dataclass,
    escape_lone_surrogates,
    parsed_json,
    reader_of,
    stored_name,
)
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallEdited,
    CallFinished,
    CallStarted,
    Event,
    EventPayload,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    JsonValue,
    MessageAdded,
    Paused,
    PromptProgress,
    ReasoningDelta,
    Regenerated,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepStarted,
    TextDelta,
    TextWasReasoning,
)
from workbench.trajectory.trajectory import Trajectory, TrajectoryError, TrajectoryFold

# Writes events as JSON lines and reads them back as equal events.

EVENT_NAMES: dict[type[EventPayload], str] = {
    RunStarted: "run_started",
    StepStarted: "step_started",
    RequestStarted: "request_started",
    RequestFailed: "request_failed",
    RetryScheduled: "retry_scheduled",
    PromptProgress: "prompt_progress",
    TextDelta: "text_delta",
    ReasoningDelta: "reasoning_delta",
    TextWasReasoning: "text_was_reasoning",
    CallStarted: "call_started",
    CallArgumentsDelta: "call_arguments_delta",
    CallFinished: "call_finished",
    ResponseFinished: "response_finished",
    Paused: "paused",
    Resumed: "resumed",
    CallEdited: "call_edited",
    ResultEdited: "result_edited",
    MessageAdded: "message_added",
    Regenerated: "asked_again",
    Forked: "forked",
    ExecutionStarted: "execution_started",
    ExecutionProgress: "execution_progress",
    ResultReceived: "result_received",
    RunFinished: "run_finished",
}
"""The name of each event in a line."""

_CLASSES = {name: cls for cls, name in EVENT_NAMES.items()}
_FIELDS = {
    cls: tuple((stored_name(field), field.name, field.metadata.get("sparse", False)) for field in fields(cls))
    for cls in EVENT_NAMES
}
"""Of each event the key and the name of its fields, and whether a line leaves an empty one out."""


class EventLineError(ValueError):
    """A line that is not an event of this version.

    The message says why, without quoting the line."""


def event_to_line(event: Event) -> str:
    """Return one event as one line of compact JSON, without the line end.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    payload = event.payload
    cls = type(payload)
    if cls in _DELTAS:
        # Most events are pieces of an answer: a general encoder would take five times as long.
        return (
            f'{{"event":"{EVENT_NAMES[cls]}","run":{_quoted(event.run_id)},"seq":{event.sequence},'
            f'"ms":{event.time_ms!r},{_DELTAS[cls](payload)}}}'
        )
    line: dict[str, Any] = {
        "event": EVENT_NAMES[cls],
        "run": event.run_id,
        "seq": event.sequence,
        "ms": event.time_ms,
    }
    for key, name, is_sparse in _FIELDS[cls]:
        value = getattr(payload, name)
        if value or not is_sparse:
            line[key] = value
    return compact_json(line)


def event_from_line(line: str) -> Event:
    """Read a line of `event_to_line`.

    Raises EventLineError when the line is not an event."""
    try:
        data = parsed_json(line)
    except ValueError as error:
        raise EventLineError(f"not JSON ({error})") from error
    return event_from_json(data)


def event_from_json(data: object) -> Event:
    """Return the event of a parsed line.

    Raises EventLineError when it is not an event."""
    if not isinstance(data, dict) or "event" not in data:
        raise EventLineError("not an event: it must be a JSON object with the key 'event'")
    name = data["event"]
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise EventLineError(f"this version knows no event {name!r:.80}")
    try:
        payload = reader_of(cls)(data)
        run_id, sequence, time_ms = _ENVELOPE(data)
        return Event(run_id, sequence, time_ms, payload)
    except ValueError as error:
        raise EventLineError(f"no whole {name}: {error}") from error


def _quoted(text: str) -> str:
    return escape_lone_surrogates(encode_basestring(text))


def _answer_delta(payload: Any) -> str:
    return f'"round":{payload.round},"text":{_quoted(payload.text)}'


def _arguments_delta(payload: Any) -> str:
    return f'"call_id":{_quoted(payload.call_id)},"fragment":{_quoted(payload.fragment)}'


_DELTAS: dict[type[EventPayload], Callable[[Any], str]] = {
    TextDelta: _answer_delta,
    ReasoningDelta: _answer_delta,
    CallArgumentsDelta: _arguments_delta,
}


class _Envelope(NamedTuple):
    run: str
    seq: int
    ms: Milliseconds


_ENVELOPE = reader_of(_Envelope)


VERSION = 1

_FIRST_YEAR, _LAST_YEAR = 1970, 9000
"""Of runs."""

SUFFIX = ".run.jsonl"
"""The end of a recording's file name."""


@dataclass(frozen=True, slots=True)
class RecordedSuite:
    """The suite of a recorded run: its file's name, the SHA-256 of its bytes, and its text.

    The text is cut down to the run's case if possible."""

    path: str
    hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Identifies the recorded run.

    `program` is the version that made it, `started_at` an ISO 8601 time, empty where nobody knows, `repeat` counts from
    0. `by` is the deciding grader where it differs from that of the case."""

    program: str
    run: str
    started_at: str
    suite: RecordedSuite
    case: str
    model: str
    repeat: int
    by: str | None = None


@dataclass(frozen=True)
class Recording:
    """A recording as read from `path`.

    `result` is the run's status, error, score and grades as JSON; `None` when it was never written because the program
    was killed or the run is still going on."""

    path: Path
    header: Header
    events: tuple[Event, ...]
    trajectory: Trajectory
    result: Mapping[str, JsonValue] | None

    @property
    def complete(self) -> bool:
        """Whether the recording reaches the end of the run."""
        return self.result is not None


class RecordingError(Exception):
    """A file that cannot be read as a recording.

    The message names the file, the line and the way out."""


def recordings_in(folder: Path) -> list[Path]:
    """Return the recordings of a folder, sorted by name, without those in subfolders.

    Raises OSError."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))


def header_line(header: Header) -> str:
    """Return the first line of a recording, without the line end."""
    given = {name: value for name in Header.__slots__ if (value := getattr(header, name)) is not None}
    return compact_json({"recording": VERSION, **given})


def result_line(run_id: str, result: Mapping[str, JsonValue]) -> str:
    """Return the last line of a recording, without the line end."""
    return compact_json({"result": result, "run": run_id})


def read_recording(path: Path) -> Recording:
    """Read a recording.

    One that breaks off in the middle of a line, or before its result, is read up to there.

    Raises RecordingError when the file cannot be read, is not a recording, or comes from a newer version.
    """
    with _opened(path) as file:
        content = file.read()
    reading = _Reading(path)
    *lines, rest = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        reading.take(number, line)
    if rest.strip():
        reading.take(len(lines) + 1, rest, may_be_cut=True)
    return reading.recording


def read_header(path: Path) -> Header:
    """Read the first line of a recording alone.

    Raises RecordingError as `read_recording` does."""
    with _opened(path) as file:
        line = file.readline()
    reading = _Reading(path)
    if line:
        reading.take(1, line)
    return reading.header


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe, named by a foreign suite, could be read for ever.
            raise RecordingError(f"{path} cannot be read: it is a {'folder' if path.is_dir() else 'special file'}")
        with path.open("rb") as file:
            yield file
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecordingError(f"{path} cannot be read: {reason}") from error


class _Reading:
    """Reads the lines of a recording one by one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._header: Header | None = None
        self._events: list[Event] = []
        self._fold = TrajectoryFold()
        self._result: Mapping[str, JsonValue] | None = None

    @property
    def header(self) -> Header:
        if self._header is None:
            raise RecordingError(f"{self._path} is empty, not a recording")
        return self._header

    @property
    def recording(self) -> Recording:
        trajectory = self._fold.trajectory if self._events else Trajectory(self.header.run)
        return Recording(self._path, self.header, tuple(self._events), trajectory, self._result)

    def take(self, number: int, line: bytes, *, may_be_cut: bool = False) -> None:
        """Read the next line, counted from 1.

        The last one may be cut off where the program ended."""
        try:
            data = parsed_json(line.decode("utf-8"))
        except ValueError as error:
            if self._header is None:
                raise RecordingError(f"{self._path} is not a recording: its first line is not JSON") from error
            if may_be_cut:
                return
            raise self._error(number, f"not JSON ({error})") from error
        if not isinstance(data, dict):
            data = {}
        if self._header is None:
            self._header = self._read_header(data)
        elif "recording" in data:
            raise self._error(number, "another run begins here: a recording holds one, so pick its lines by `run`")
        elif self._result is not None:
            raise self._error(number, "follows the result, which is the last line of a recording")
        elif "result" in data:
            self._result = self._read_result(number, data)
        else:
            self._add(number, data)

    def _read_header(self, data: dict[str, object]) -> Header:
        version = data.get("recording")
        if type(version) is int and version > VERSION:
            raise RecordingError(
                f"{self._path} is a recording of version {version}, and this program reads {VERSION}: update Workbench"
            )
        if version != VERSION:
            raise RecordingError(f'{self._path} is not a recording: its first line must hold "recording": {VERSION}')
        try:
            header: Header = reader_of(Header)(data)
        except ValueError as error:
            raise self._error(1, f"no whole header: {error}") from error
        return replace(header, started_at=_known_time(header.started_at))

    def _read_result(self, number: int, data: dict[str, object]) -> Mapping[str, JsonValue]:
        try:
            result: Mapping[str, JsonValue] = reader_of(Mapping[str, JsonValue])(data["result"])
        except ValueError as error:
            raise self._error(number, f"result: {error}") from error
        return result

    def _add(self, number: int, data: dict[str, object]) -> None:
        try:
            event = event_from_json(data)
            self._fold.add(event)
        except (EventLineError, TrajectoryError) as error:
            raise self._error(number, str(error)) from error
        self._events.append(event)

    def _error(self, number: int, message: str) -> RecordingError:
        return RecordingError(f"{self._path}:{number}: {message}")


def _known_time(text: str) -> str:
    """Return an ISO 8601 time with its zone, empty where a text is none.

    Every time zone has one of these years, and any duration may be added to it."""
    try:
        at = datetime.fromisoformat(text)
        if not _FIRST_YEAR <= at.year <= _LAST_YEAR:
            return ""
        if at.tzinfo is not None:
            return text
        return at.astimezone().isoformat()
    except (ValueError, OverflowError):
        return ""
