"""Batches without a terminal: their records, their sockets, and the JSON lines that these sockets transmit."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.config.folders import Folders, history_option
from workbench.dataclasses import compact_json, dataclass, parsed_json, reader_of
from workbench.engine.events import BatchEvent, JudgeAsked, RequestDelayed, RunDone, StartUp
from workbench.history.claims import claim_if_free, is_claimed
from workbench.history.history import History
from workbench.history.packing import grading_text
from workbench.history.records import BatchRow, HistoryError, ResumedBy
from workbench.limits import MAX_SOCKET_PATH_BYTES
from workbench.suite.files import write_atomically
from workbench.trajectory.events import RetryScheduled
from workbench.version import __version__

# The protocol. The batch sends its version, and a viewer answers `"do": "watch"` or `"do": "stop"`. A watching viewer
# first gets `over`, the number of finished runs, which it reads from the history. Then it gets each run in progress
# with its events so far, and after that everything as it happens. The last message is `end` with the exit code. The
# viewer may then ask for the `report`. Lines are made from redacted values.


class ProtocolError(ValueError):
    """A line violates the protocol. The message says how, without quoting the line."""


def encode_message(**message: object) -> bytes:
    """Return a message as a line of JSON."""
    return f"{compact_json(message)}\n".encode()


def decode_message(line: bytes) -> Mapping[str, Any]:
    """Return the message in a line of JSON.

    Raises ProtocolError for a line that is not a JSON object."""
    try:
        message = parsed_json(line.decode())
    except ValueError as error:
        raise ProtocolError(f"the line is not JSON ({error})") from None
    if not isinstance(message, dict):
        raise ProtocolError("the line is not a JSON object")
    return message


def greeting(**more: object) -> bytes:
    """Return the line that each side sends first.

    It has the versions of the protocol and of Workbench, and the keys in `more`."""
    return encode_message(protocol=PROTOCOL, version=__version__, **more)


def begun_line(place: int, ago_ms: float) -> bytes:
    """Return the line that announces a run in progress, which began `ago_ms` milliseconds ago.

    `place` is the run's place in the plan. The run's events follow in other lines."""
    return encode_message(place=place, begun_ago_ms=round(ago_ms))


def event_line(place: int, line: str) -> bytes:
    """Return the line for an event of the run at a place of the plan.

    `line` is the event as a recording stores it."""
    return f'{{"place":{place},"event":{line}}}\n'.encode()


def done_line(place: int, line: str, event: RunDone) -> bytes:
    """Return the line for the end of the run at a place of the plan.

    `line` is the result as the last line of a recording stores it."""
    result = event.result
    more = {"cost_usd": result.cost_usd, "grading": grading_text(result.grading)}
    more |= {"began_ms": event.began_ms, "ended_ms": event.ended_ms}
    return f'{{"place":{place},"done":{line},{compact_json(more)[1:]}\n'.encode()


def batch_event_line(event: BatchEvent, place: int | None, redact: Any) -> bytes | None:
    """Return the line for an event that no recording contains, such as a start of a server.

    Returns `None` if viewers do not show the event. `redact` returns a value without secrets."""
    match event:
        case StartUp(number, what, took_ms, downloads):
            start_up = {"number": number, "what": redact(what), "took_ms": took_ms, "downloads": downloads}
            return encode_message(start_up=start_up)
        case JudgeAsked(_, judge, values, again):
            return encode_message(place=place, judge=redact({"judge": judge, "values": values, "again": again}))
        case RequestDelayed(_, wait_s):
            return encode_message(place=place, put_off=wait_s)
        case _:
            return None


def batch_event_of(message: Mapping[str, Any], run_id: str) -> BatchEvent | None:
    """Return the event in a message from `batch_event_line`; `None` for any other message.

    Raises ValueError or LookupError for an invalid message."""
    if "start_up" in message:
        event: BatchEvent = reader_of(StartUp)(message["start_up"])
        return event
    if "judge" in message:
        asked = message["judge"]
        again = None
        if asked["again"] is not None:
            again = reader_of(RetryScheduled)(asked["again"])
        return JudgeAsked(run_id, str(asked["judge"]), int(asked["values"]), again)
    if "put_off" in message:
        return RequestDelayed(run_id, float(message["put_off"]))
    return None


PROTOCOL = 1
"""The version of the protocol on the sockets."""

_PROCESSES = "process"
"""The name of the file next to which processes claim their batches.

A process holds this claim until its report is written. Its claim on the batch in the history ends earlier."""

_RECORD_LIFETIME_S = 30 * 24 * 3600
"""The time for which the record of an ended batch is stored, in seconds."""


class AttachError(Exception):
    """A batch cannot be watched, or cannot run without a terminal. The message says why, and what to do."""


@dataclass(frozen=True)
class DetachedBatch:
    """The record of a batch that runs, or ran, without a terminal.

    `exit_code` is `None` until the batch has ended, and stays `None` if its process was killed. `said` holds the last
    lines that the process printed, without secrets. Times are ISO 8601, UTC."""

    history: str
    batch: int
    command: ResumedBy
    version: str
    pid: int
    socket: str
    planned: int
    started_at: str
    exit_code: int | None = None
    ended_at: str | None = None
    said: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """The path of the batch's history."""
        return Path(self.history)


def write_record(folders: Folders, detached: DetachedBatch) -> None:
    """Write the record of a batch.

    Raises OSError."""
    own_folder(folders.detached)
    write_atomically(record_file(folders, detached.file, detached.batch), f"{compact_json(detached)}\n".encode())


def claim_process(folders: Folders, history: Path, batch: int) -> None:
    """Lock a batch for this process, until the process ends in any way.

    Other processes can see from the lock that the batch is running. Raises OSError."""
    claim_if_free(own_folder(folders.detached) / _PROCESSES, int(_key(history, batch), 16))


def is_running(folders: Folders, detached: DetachedBatch) -> bool:
    """Return whether the process of a batch is alive."""
    # A killed process leaves no exit code, so only the lock shows whether it is alive.
    key = _key(detached.file, detached.batch)
    return detached.exit_code is None and is_claimed(folders.detached / _PROCESSES, int(key, 16))


def records(folders: Folders) -> list[DetachedBatch]:
    found = filter(None, map(_read, _files(folders)))
    return sorted(found, key=lambda known: known.started_at, reverse=True)


def record_of(folders: Folders, history: Path, batch: int) -> DetachedBatch | None:
    return _read(record_file(folders, history, batch))


def record_file(folders: Folders, history: Path, batch: int) -> Path:
    return folders.detached / f"{_key(history, batch)}.json"


def remove_stale(folders: Folders) -> None:
    """Remove the sockets of killed processes, and the records of batches that ended long ago."""
    for file in _files(folders):
        known = _read(file)
        if known is None or is_running(folders, known):
            continue
        with suppress(OSError):
            if known.exit_code is None:
                Path(known.socket).unlink(missing_ok=True)
            if file.stat().st_mtime < time.time() - _RECORD_LIFETIME_S:
                file.unlink()


def socket_address(folders: Folders, history: Path, batch: int) -> Path:
    """Return the path for a batch's socket, in a folder that only the user can open.

    The folder is created if necessary. Raises AttachError if there is no safe place for it."""
    return socket_folder(folders) / f"{_key(history, batch)}.sock"


def socket_places(folders: Folders) -> list[Path]:
    """Return the folders that may hold sockets, in order of preference."""
    places = [folders.detached]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(runtime) / "toolcall-workbench")
    name = f"toolcall-workbench-{os.getuid()}"
    return [*places, Path(tempfile.gettempdir()) / name, Path("/tmp") / name]


def socket_folder(folders: Folders) -> Path:
    """Return the first of the `socket_places` that is safe and whose path is short enough for a socket.

    The folder is created if necessary. Raises AttachError if no place is suitable."""
    problems = []
    for place in dict.fromkeys(socket_places(folders)):
        if len(os.fsencode(place)) + len("/0123456789ab.sock") > MAX_SOCKET_PATH_BYTES:
            problems.append(f"{place}: the path is too long for a socket")
            continue
        try:
            return own_folder(place)
        except OSError as error:
            problems.append(f"{place}: {error.strerror or error}")
    raise AttachError(
        f"there is no safe place for the socket of a batch: {'; '.join(problems)}. Set XDG_RUNTIME_DIR to a folder of "
        "your own with a short path"
    )


def own_folder(folder: Path) -> Path:
    """Make sure that a folder exists and that only this user can open it, and return it.

    Raises OSError if the path is not a folder, or if another user owns it or could replace it."""
    # Anyone who can write to the socket can stop the batch, and anyone who can replace it can pretend to be the batch.
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise _unsafe("the path is a symbolic link, which is not safe: remove the link", folder)
    if not stat.S_ISDIR(found.st_mode):
        raise _unsafe("the path is a file, not a folder: remove the file", folder)
    if found.st_uid != os.getuid():
        raise _unsafe(f"the folder belongs to another user (id {found.st_uid})", folder)
    # In a folder with the sticky bit, such as /tmp, only the owner of an entry can replace it.
    for above in folder.resolve().parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _unsafe(
                f"all users may replace files in {above}: remove their write permission with chmod o-w", folder
            )
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def _unsafe(reason: str, folder: Path) -> PermissionError:
    return PermissionError(errno.EPERM, reason, str(folder))


def _files(folders: Folders) -> Iterator[Path]:
    with suppress(OSError):
        yield from sorted(folders.detached.glob("*.json"))


def _read(file: Path) -> DetachedBatch | None:
    try:
        known: DetachedBatch = reader_of(DetachedBatch)(parsed_json(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    return known


def _key(history: Path, batch: int) -> str:
    return hashlib.sha256(f"{history.resolve()}#{batch}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class NamedBatch:
    """A batch that the user named, with its history.

    `known` is the record of a batch without a terminal. `running` says whether the process of such a batch is alive."""

    history: Path
    number: int
    known: DetachedBatch | None = None
    running: bool = False

    @property
    def in_another_program(self) -> bool:
        """Whether the batch is running in a program that has no socket, so that it cannot be watched."""
        return not self.running and is_claimed(self.history, self.number)


def running_batches(folders: Folders) -> list[NamedBatch]:
    """Return the batches that are running without a terminal, the newest first."""
    running = []
    for known in records(folders):
        if is_running(folders, known):
            running.append(NamedBatch(known.file, known.batch, known, True))
    return running


def find_batch(folders: Folders, history: Path, which: str | None) -> NamedBatch:
    """Return the batch with this number or name, from the history or among the running batches of other histories.

    If `which` is `None`, return the only batch that runs without a terminal. Raises AttachError if there is not exactly
    one such batch, and HistoryError if the history has no batch `which`."""
    running = running_batches(folders)
    if which is None:
        return _only(running, folders)
    number = which.removeprefix("#")
    error: HistoryError | None = None
    stored: BatchRow | None = None
    try:
        with History(history) as opened:
            stored = opened.batch(which)
    except HistoryError as why:
        error = why
    # A batch of this history that ran without a terminal takes precedence. Otherwise, a number also names a batch of
    # another history, if that batch is still running without a terminal.
    here: list[NamedBatch] = []
    known = None
    if stored is not None:
        known = record_of(folders, history, stored.number)
        here = [each for each in running if _is(each, history, stored.number)]
    if not here and known is None and number.isdecimal():
        here = [each for each in running if each.number == int(number)]
    if len(here) > 1:
        files = ", ".join(str(each.history) for each in here)
        raise AttachError(
            f"running batches of several histories have the number {number}: give --history with one of {files}"
        )
    if here:
        return here[0]
    if stored is None:
        assert error is not None
        raise error
    return NamedBatch(history, stored.number, known)


def _is(each: NamedBatch, history: Path, number: int) -> bool:
    return each.number == number and each.history == history.resolve()


def _only(running: list[NamedBatch], folders: Folders) -> NamedBatch:
    if len(running) == 1:
        return running[0]
    if running:
        *others, last_one = (f"{each.number}{history_option(each.history)}" for each in running)
        which = f"{', '.join(others)} or {last_one}"
        raise AttachError(f"several batches run without a terminal, so name one of them: {which}")
    last = next(iter(records(folders)), None)
    if last is not None:
        attach = f"workbench attach {last.batch}{history_option(last.file)}"
        ended = f"; the last one was batch {last.batch}: '{attach}' shows its result"
    else:
        ended = ": 'workbench run PATH --detach' begins one"
    raise AttachError(f"no batch runs without a terminal{ended}")


def running_in(history: Path) -> list[BatchRow]:
    """Return the batches of a history that some program is running now, the newest first.

    The list is empty if the history cannot be read."""
    running = []
    with suppress(HistoryError), History(history) as opened:
        for batch in opened.each_batch(unended=True):
            if batch.damage is None and is_claimed(history, batch.number):
                running.append(batch)
        return running
    return []
