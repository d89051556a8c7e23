"""Recordings: files with one run each, which can be read, replayed and regraded on another machine.

A recording consists of JSON lines: a header, the events of the run, and a result. `docs/recordings.md` describes
version 1 key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, get_type_hints

from workbench.dataclasses import (
    Milliseconds,
    Reader,
    compact_json,
    dataclass,
    escape_lone_surrogates,
    parsed_json,
    reader_of,
    stored_name,
)
from workbench.json_writer import JsonField, JsonWriter
from workbench.trajectory.events import (
    AgentNoted,
    AgentStarted,
    AnswerPaused,
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
    OwnCallAnswered,
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
    ServerAsked,
    StepStarted,
    TextDelta,
    TextWasReasoning,
    UserEnded,
    UserRefused,
    UserRequestStarted,
    UserSaid,
)
from workbench.trajectory.fold import TrajectoryError, TrajectoryFold
from workbench.trajectory.trajectory import Trajectory

# Events as JSON lines. The names belong to the format of recordings and must not change when a class is renamed.

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
    AnswerPaused: "answer_paused",
    AgentStarted: "agent_started",
    AgentNoted: "agent_noted",
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
    UserRequestStarted: "user_request_started",
    UserRefused: "user_refused",
    UserSaid: "user_said",
    UserEnded: "user_ended",
    ExecutionStarted: "execution_started",
    ExecutionProgress: "execution_progress",
    ServerAsked: "server_asked",
    ResultReceived: "result_received",
    OwnCallAnswered: "own_call_answered",
    RunFinished: "run_finished",
}
"""The name of each event in a line."""

_CLASSES = {name: cls for cls, name in EVENT_NAMES.items()}


_ENVELOPE = (
    JsonField("run", str, "source.run_id"),
    JsonField("seq", int, "source.sequence"),
    JsonField("ms", float, "source.time_ms"),
)
"""The fields that every event has."""


def _json_fields(cls: Any, kind: type) -> list[JsonField]:
    if cls is Event:
        return [JsonField("event", str, repr(EVENT_NAMES[kind])), *_ENVELOPE, *_stored_fields(kind, "source.payload")]
    return _stored_fields(cls, "source")


def _stored_fields(cls: Any, source: str) -> list[JsonField]:
    hints, stored = get_type_hints(cls, include_extras=True), []
    for field in fields(cls):
        absent = ""
        if field.metadata.get("sparse", False):
            # Empty lists are omitted. An empty object is written, because it differs from `None`.
            absent = "not value and value != {}"
        stored.append(JsonField(stored_name(field), hints[field.name], f"{source}.{field.name}", absent))
    return stored


def _fields_without_tools(cls: Any, kind: type) -> list[JsonField]:
    return [field._replace(value="()") if field.key == "tools" else field for field in _json_fields(cls, kind)]


_WRITERS = JsonWriter(_json_fields, is_dataclass, compact_json).by_class(Event)
"""The functions that write an event, by the class of its payload."""

_WRITERS_WITHOUT_TOOLS = JsonWriter(_fields_without_tools, is_dataclass, compact_json).by_class(Event)


class EventLineError(ValueError):
    """A line that is not an event of this version. The message gives the reason without quoting the line."""

    # The message does not quote the line, because a line may hold secrets, and messages reach logs and reports.


def event_to_line(event: Event) -> str:
    """Return an event as a line of compact JSON, without the line end.

    Raises TypeError, ValueError or RecursionError for a value that JSON cannot express."""
    # A piece of an answer may hold half of a surrogate pair, which UTF-8 cannot express.
    return escape_lone_surrogates(unescaped_line(event))


def unescaped_line(event: Event, *, without_tools: bool = False) -> str:
    """Return an event as `event_to_line` does, but do not escape lone surrogates.

    With `without_tools`, write the event as if it offered no tools."""
    writers = _WRITERS_WITHOUT_TOOLS if without_tools else _WRITERS
    return writers[type(event.payload)](event)


def event_from_line(line: str) -> Event:
    """Return the event in a line that `event_to_line` wrote.

    Raises EventLineError for any other line."""
    try:
        data = parsed_json(line)
    except ValueError as error:
        raise EventLineError(f"not JSON ({error})") from error
    return event_from_json(data)


def event_from_json(data: object) -> Event:
    """Return the event in a parsed line.

    Raises EventLineError if the line is not an event."""
    if not isinstance(data, dict) or "event" not in data:
        raise EventLineError("not an event: it must be a JSON object with the key 'event'")
    name = data["event"]
    read = _READERS.get(name) if isinstance(name, str) else None
    if read is None:
        if not isinstance(name, str) or name not in _CLASSES:
            raise EventLineError(f"this version knows no event {name!r:.80}")
        read = _READERS[name] = reader_of(_CLASSES[name])
    try:
        payload = read(data)
        run_id, sequence, time_ms = reader_of(_Envelope)(data)
        return Event(run_id, sequence, time_ms, payload)
    except ValueError as error:
        raise EventLineError(f"incomplete {name} event: {error}") from error


class _Envelope(NamedTuple):
    run: str
    seq: int
    ms: Milliseconds


_READERS: dict[str, Reader] = {}
"""The reader of each event that was read, by its name."""


VERSION = 1
"""The version of the format that this program writes. Newer versions cannot be read."""

# In this range of years, all time zones are defined, and a time plus a duration stays within Python's range.
_FIRST_YEAR, _LAST_YEAR = 1970, 9000

SUFFIX = ".run.jsonl"
"""The ending of the file name of a recording."""


@dataclass(frozen=True, slots=True)
class RecordedSuite:
    """The suite of a recorded run: its file name, the SHA-256 of the file, and its text.

    If possible, the text contains only the case of the run and what the case needs."""

    path: str
    hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a recording, which identifies the run.

    `program` is the version of Workbench that made the run. `started_at` is an ISO 8601 time, or empty if it is
    unknown. `repeat` counts from 0. `by` is the deciding grader if it is not the grader that the case names."""

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
    """A recording that was read from `path`.

    `result` is the status, error, score and grades of the run as JSON. It is `None` if the program was killed or the
    run has not ended."""

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
    """A file that cannot be read as a recording. The message names the file, the line and the remedy."""


def recordings_in(folder: Path) -> list[Path]:
    """Return the paths of the recordings in a folder, sorted by name, without subfolders.

    Raises OSError if the folder cannot be read."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))


def header_line(header: Header) -> str:
    line: dict[str, Any] = {"recording": VERSION}
    for name in Header.__slots__:
        if (value := getattr(header, name)) is not None:
            line[name] = value
    return compact_json(line)


def result_line(run_id: str, result: Mapping[str, JsonValue]) -> str:
    """Return the last line of a recording, without the line end."""
    return compact_json({"result": result, "run": run_id})


def read_recording(path: Path) -> Recording:
    """Read a recording. An incomplete recording is read up to its last whole line.

    Raises RecordingError if the file cannot be read, is not a recording, or comes from a newer version."""
    with _opened(path) as file:
        content = file.read()
    reading = _RecordingReader(path)
    # If no line end follows the last line, the line may be incomplete.
    *lines, rest = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        reading.add_line(number, line)
    if rest.strip():
        reading.add_line(len(lines) + 1, rest, may_be_cut=True)
    return reading.recording


def read_header(path: Path) -> Header:
    """Read only the first line of a recording. Raises RecordingError as `read_recording` does."""
    with _opened(path) as file:
        line = file.readline()
    reading = _RecordingReader(path)
    if line:
        reading.add_line(1, line)
    return reading.header


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.exists() and not path.is_file():
            # A suite by another author may name a device or a pipe, and reading it might never end.
            kind = "folder" if path.is_dir() else "special file"
            raise RecordingError(f"{path} cannot be read: it is a {kind}")
        with path.open("rb") as file:
            yield file
    # A ValueError means that the path contains a null character.
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecordingError(f"{path} cannot be read: {reason}") from error


class _RecordingReader:
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

    def add_line(self, number: int, line: bytes, *, may_be_cut: bool = False) -> None:
        """Read the next line, whose number in the file is `number`, from 1. With `may_be_cut`, ignore invalid JSON.

        Raises RecordingError for a line that cannot follow the lines before it."""
        # A killed program may leave half of the last line.
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
            raise self._error(
                number,
                "another run begins here, but a recording holds one run: keep only the lines with one value of `run`",
            )
        elif self._result is not None:
            raise self._error(number, "this line follows the result, which must be the last line of a recording")
        elif "result" in data:
            self._result = self._read_result(number, data)
        else:
            self._add(number, data)

    def _read_header(self, data: dict[str, object]) -> Header:
        # `isinstance` would accept `true` as version 1.
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
            raise self._error(1, f"incomplete header: {error}") from error
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
    """Return an ISO 8601 time with its zone, or "" if `text` is not a time.

    A time without a zone is taken as local time."""
    try:
        at = datetime.fromisoformat(text)
        if not _FIRST_YEAR <= at.year <= _LAST_YEAR:
            return ""
        if at.tzinfo is not None:
            return text
        return at.astimezone().isoformat()
    except (ValueError, OverflowError):
        return ""
