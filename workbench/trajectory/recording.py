"""A recording: one run in one file, with all that is needed to read, replay and regrade it elsewhere.

It consists of JSON lines: a header, the run's events, a result. docs/recordings.md describes version 1 key by key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from workbench.dataclasses import dataclass
from workbench.trajectory.event_lines import EventLineError, event_from_json
from workbench.trajectory.events import Event
from workbench.trajectory.fold import TrajectoryError, TrajectoryFold
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import Trajectory
from workbench.trajectory.typed_json import compact_json, parsed_json, reader_of

VERSION = 1

_FIRST_YEAR, _LAST_YEAR = 1970, 9000
"""Of runs."""

SUFFIX = ".run.jsonl"
"""The end of a recording's file name."""


@dataclass(frozen=True, slots=True)
class RecordedSuite:
    """The suite of a recorded run: its file's name, the SHA-256 of its bytes, and the text of the suite, cut down to
    the run's case where possible."""

    path: str
    hash: str
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Identifies the recorded run. `program` is the version that made it, `started_at` an ISO 8601 time, empty where
    nobody knows, `repeat` counts from 0. `by` is the deciding grader where it differs from that of the case."""

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
    """A recording as read from `path`. `result` is the run's status, error, score and grades as JSON; `None` when it
    was never written because the program was killed or the run is still going on."""

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
    """A file that cannot be read as a recording. The message names the file, the line and the way out."""


def recordings_in(folder: Path) -> list[Path]:
    """Returns the recordings of a folder, sorted by name, without those in subfolders. Raises OSError."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX))


def header_line(header: Header) -> str:
    """Returns the first line of a recording, without the line end."""
    given = {name: value for name in Header.__slots__ if (value := getattr(header, name)) is not None}
    return compact_json({"recording": VERSION, **given})


def result_line(run_id: str, result: Mapping[str, JsonValue]) -> str:
    """Returns the last line of a recording, without the line end."""
    return compact_json({"result": result, "run": run_id})


def read_recording(path: Path) -> Recording:
    """Read a recording. One that breaks off in the middle of a line, or before its result, is read up to there.

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
    """Read the first line of a recording alone. Raises RecordingError as `read_recording` does."""
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
        """Read the next line, counted from 1. The last one may be cut off where the program ended."""
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
    """Returns an ISO 8601 time with its zone, empty where a text is none. Every time zone has one of these years, and
    what may be added to it."""
    try:
        at = datetime.fromisoformat(text)
        if not _FIRST_YEAR <= at.year <= _LAST_YEAR:
            return ""
        return text if at.tzinfo is not None else at.astimezone().isoformat()
    except (ValueError, OverflowError):
        return ""
