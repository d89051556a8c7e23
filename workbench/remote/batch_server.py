"""Sends the events of a batch over a socket to any number of viewers."""

from __future__ import annotations

import logging
import os
import queue
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, JudgeAsked, RequestDelayed, RunDone, RunEvent
from workbench.engine.recordings import recording_lines
from workbench.engine.redaction import EventRedaction
from workbench.evaluation.plan import Plan
from workbench.grading.status import Status
from workbench.limits import MAX_VIEWER_BACKLOG_BYTES, MAX_VIEWER_LINE_BYTES, MAX_VIEWERS
from workbench.remote.records import (
    PROTOCOL,
    DetachedBatch,
    ProtocolError,
    batch_event_line,
    begun_line,
    decode_message,
    done_line,
    encode_message,
    event_line,
    greeting,
    write_record,
)
from workbench.trajectory.events import Event
from workbench.trajectory.recording import event_to_line
from workbench.version import __version__

_logger = logging.getLogger(__name__)

# One thread handles all sockets. Threads of the batch only queue lines and wake this thread, so a slow viewer never
# delays the batch. A viewer that is too slow is disconnected.

SILENCE_TIMEOUT_S = 10.0
"""The time limit, in seconds, for a viewer to greet, to read its report, and to read that it was dropped."""

_RECEIVED_BYTES = 1 << 16
_POLL_INTERVAL_S = 1.0


@dataclass(eq=False)
class Viewer:
    """The connection of one viewer.

    `backlog_bytes` is the size of `unsent_lines`. If it exceeds `max_backlog_bytes`, the viewer is too slow and is
    disconnected."""

    connection: socket.socket
    heard_at: float
    """The time when the viewer last read or sent something, on the monotonic clock."""
    received: bytearray = field(default_factory=bytearray)
    unsent_lines: deque[bytes] = field(default_factory=deque)
    backlog_bytes: int = 0
    max_backlog_bytes: int = MAX_VIEWER_BACKLOG_BYTES
    is_watching: bool = False
    has_greeted: bool = False
    wants_report: bool = False
    """Whether the viewer waits for a report that has not been started."""
    is_leaving: bool = False
    """Whether to disconnect the viewer once it has read all waiting lines."""
    is_gone: bool = False


class ViewerServer:
    """Serves viewers on a Unix socket at `address` until it is closed.

    Each viewer first gets the line `hello`, then the lines of `snapshot`, which describe the state so far. The server
    holds the same lock while it calls `snapshot` and in `broadcast`, so a viewer misses no line in between. `stop` is
    called when a viewer asks to stop the batch. Raises OSError if the socket cannot be created."""

    def __init__(
        self, address: Path, hello: bytes, snapshot: Callable[[], Iterable[bytes]], stop: Callable[[], object]
    ) -> None:
        self.lock = threading.RLock()
        self.requests: queue.SimpleQueue[tuple[Viewer, Mapping[str, Any]]] = queue.SimpleQueue()
        """The requests of viewers for reports, which are answered after the batch has ended."""
        self._address = address
        self._hello = hello
        self._snapshot = snapshot
        self._stop = stop
        self._viewers: set[Viewer] = set()
        self._progress = threading.Condition(self.lock)
        self._closing = False
        self._listening = socket.socket(socket.AF_UNIX)
        # A killed process leaves its socket behind. It can be removed safely, because only this process has the lock on
        # the batch.
        address.unlink(missing_ok=True)
        self._listening.bind(str(address))
        # Before this line, the socket has a default mode, but other users cannot open its folder.
        address.chmod(0o600)
        self._listening.listen(MAX_VIEWERS)
        self._listening.setblocking(False)
        self._waking, self._woken = socket.socketpair()
        self._waking.setblocking(False)
        self._woken.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="viewers", daemon=True)
        self._thread.start()

    @property
    def is_watched(self) -> bool:
        """Whether any viewer is watching. Without a viewer, no lines need to be made."""
        with self.lock:
            return any(viewer.is_watching for viewer in self._viewers)

    def broadcast(self, line: bytes) -> None:
        """Queue a line for all watching viewers, and return at once. A viewer that is too slow is disconnected."""
        with self.lock:
            for viewer in self._viewers:
                if viewer.is_watching:
                    self._send_report_piece(viewer, line)
        self._wake()

    def send(self, viewer: Viewer, pieces: Iterable[bytes], patience_s: float = SILENCE_TIMEOUT_S) -> None:
        """Send a report to one viewer, as fast as the viewer reads it.

        A viewer that reads nothing for `patience_s` seconds is disconnected."""
        viewer.wants_report = False
        for piece in pieces:
            with self._progress:
                deadline = time.monotonic() + patience_s
                while viewer.backlog_bytes > MAX_VIEWER_BACKLOG_BYTES // 2 and not viewer.is_gone:
                    before = viewer.backlog_bytes
                    self._progress.wait(_POLL_INTERVAL_S)
                    if viewer.backlog_bytes < before:
                        deadline = time.monotonic() + patience_s
                    if time.monotonic() > deadline:
                        viewer.is_leaving = True
                        return
                if viewer.is_gone:
                    return
                viewer.unsent_lines.append(piece)
                viewer.backlog_bytes += len(piece)
            self._wake()

    def close(self) -> None:
        """Give viewers a limited time to read their unsent lines, and then remove the socket."""
        with self.lock:
            self._closing = True
            for viewer in self._viewers:
                viewer.is_leaving = True
        self._wake()
        self._thread.join(2 * SILENCE_TIMEOUT_S)
        self._address.unlink(missing_ok=True)

    def _wake(self) -> None:
        with suppress(BlockingIOError, OSError):  # the thread is awake already, or has ended
            self._waking.send(b"!")

    def _send_report_piece(self, viewer: Viewer, line: bytes) -> None:
        if viewer.is_leaving:
            return
        if viewer.unsent_lines and viewer.backlog_bytes + len(line) > viewer.max_backlog_bytes:
            # The line that is being sent is completed, so that the reason begins on a line of its own.
            first = viewer.unsent_lines[0]
            line = encode_message(dropped="the viewer read too slowly")
            viewer.unsent_lines, viewer.backlog_bytes, viewer.is_leaving = deque([first]), len(first), True
            viewer.heard_at = time.monotonic()
        viewer.unsent_lines.append(line)
        viewer.backlog_bytes += len(line)

    def _serve(self) -> None:
        try:
            while not (self._closing and not self._viewers):
                for key, what in self._selector.select(_POLL_INTERVAL_S):
                    if key.fileobj is self._listening:
                        self._accept()
                    elif key.fileobj is self._woken:
                        with suppress(BlockingIOError):
                            self._woken.recv(_RECEIVED_BYTES)
                    else:
                        self._attend(key.data, what)
                self._check_viewers()
        except Exception:
            _logger.exception("viewers of the batch are no longer served")
        finally:
            for viewer in tuple(self._viewers):
                self._disconnect(viewer)
            self._selector.close()
            for each in (self._listening, self._waking, self._woken):
                each.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return
        connection.setblocking(False)
        if not _is_own(connection):
            connection.close()
            return
        viewer = Viewer(connection, time.monotonic())
        with self.lock:
            line = self._hello
            if len(self._viewers) >= MAX_VIEWERS:
                line, viewer.is_leaving = encode_message(refused=MAX_VIEWERS.reached()), True
            self._viewers.add(viewer)
            self._give_first(viewer, line)
        self._selector.register(connection, selectors.EVENT_READ, viewer)

    def _give_first(self, viewer: Viewer, line: bytes) -> None:
        viewer.unsent_lines.append(line)
        viewer.backlog_bytes += len(line)

    def _attend(self, viewer: Viewer, position: int) -> None:
        try:
            if position & selectors.EVENT_WRITE:
                self._write(viewer)
            if position & selectors.EVENT_READ:
                self._read(viewer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._disconnect(viewer)

    def _write(self, viewer: Viewer) -> None:
        while viewer.unsent_lines:
            with self.lock:
                line = viewer.unsent_lines[0]
            sent = viewer.connection.send(line)
            with self._progress:
                viewer.backlog_bytes -= sent
                viewer.heard_at = time.monotonic()
                if sent == len(line):
                    viewer.unsent_lines.popleft()
                else:
                    viewer.unsent_lines[0] = line[sent:]
                self._progress.notify_all()

    def _read(self, viewer: Viewer) -> None:
        received = viewer.connection.recv(_RECEIVED_BYTES)
        if not received:
            self._disconnect(viewer)
            return
        viewer.received += received
        viewer.heard_at = time.monotonic()
        while not viewer.is_leaving and (end := viewer.received.find(b"\n")) >= 0:
            line = bytes(viewer.received[:end])
            del viewer.received[: end + 1]
            try:
                self._handle_message(viewer, decode_message(line))
            except ProtocolError as error:
                self._refuse(viewer, f"the viewer's message is invalid: {error}")
        if len(viewer.received) > MAX_VIEWER_LINE_BYTES:
            self._disconnect(viewer)

    def _handle_message(self, viewer: Viewer, message: Mapping[str, Any]) -> None:
        if not viewer.has_greeted:
            if message.get("protocol") != PROTOCOL or (
                message.get("do") != "stop" and message.get("version") != __version__
            ):
                self._refuse(viewer, f"this batch runs in Workbench {__version__}: attach with that version")
                return
            viewer.has_greeted = True
        if message.get("do") == "stop":
            self._stop()
        elif message.get("do") == "watch" and not viewer.is_watching:
            with self.lock:
                lines = [*self._snapshot()]
                # The snapshot may be longer than the limit, so the limit is raised by its length.
                viewer.max_backlog_bytes += sum(map(len, lines))
                viewer.is_watching = True
                for line in lines:
                    self._give_first(viewer, line)
        elif isinstance(report := message.get("report"), dict):
            if viewer.wants_report:
                self._refuse(
                    viewer,
                    "a report for this viewer is already in progress: ask for the next report when it has arrived",
                )
                return
            viewer.wants_report = True
            self.requests.put((viewer, report))

    def _refuse(self, viewer: Viewer, reason: str) -> None:
        with self.lock:
            self._give_first(viewer, encode_message(refused=reason))
            viewer.is_leaving = True

    def _check_viewers(self) -> None:
        now = time.monotonic()
        for viewer in tuple(self._viewers):
            late = now > viewer.heard_at + SILENCE_TIMEOUT_S
            if (viewer.is_leaving and (not viewer.unsent_lines or late)) or (not viewer.has_greeted and late):
                self._disconnect(viewer)
            else:
                wanted = selectors.EVENT_READ
                if viewer.unsent_lines:
                    wanted |= selectors.EVENT_WRITE
                if self._selector.get_key(viewer.connection).events != wanted:
                    self._selector.modify(viewer.connection, wanted, viewer)

    def _disconnect(self, viewer: Viewer) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(viewer.connection)
        viewer.connection.close()
        with self._progress:
            viewer.is_gone = True
            viewer.unsent_lines.clear()
            self._viewers.discard(viewer)
            self._progress.notify_all()


def _is_own(connection: socket.socket) -> bool:
    """Return whether the other end is a process of the same user. If the system cannot tell, return true."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return bool(user == os.getuid())


MAX_OUTPUT_LINES = 200
"""The number of lines stored from the end of the process's output."""

_REPORT_PIECE = 1 << 16
"""The approximate number of characters of a report in one line."""

Pieces = Callable[[Mapping[str, Any]], Iterable[str]]
"""Returns a redacted report in pieces, with a viewer's options. Raises ValueError if the report is unavailable."""


@dataclass
class _RunInProgress:
    """A run in progress, with its unsent `events`, and the `lines` made from earlier events."""

    place: int
    redaction: EventRedaction
    began_s: float
    events: list[Event] = field(default_factory=list)
    """Unsent events. Without viewers, they are not converted to lines."""
    lines: list[bytes] = field(default_factory=list)


class BatchBroadcast:
    """Sends the events of a batch to its viewers, and stores what later viewers need.

    All lines are redacted. Use the object on one thread."""

    def __init__(self, plan: Plan, known: DetachedBatch, stop: Callable[[], object]) -> None:
        """Open the socket and write the record of the batch. Raises OSError if either fails.

        `known` is the record. `stop` is called when a viewer asks to stop the batch."""
        self.known = known
        self._folders = plan.program.folders
        self._secrets = plan.program.secrets
        self._places = plan.places
        self._planned = plan.runs_by_id
        self._lines = recording_lines(self._secrets)
        self._under_way: dict[str, _RunInProgress] = {}
        self._finished_count = 0
        if plan.resumed is not None:
            self._finished_count = plan.resumed.before.count
        self._said: deque[str] = deque(maxlen=MAX_OUTPUT_LINES)
        self._end: bytes | None = None
        hello = greeting(
            history=known.history, batch=known.batch, command=known.command, planned=known.planned, pid=known.pid
        )
        self._server = ViewerServer(Path(known.socket), hello, self._snapshot, stop)
        try:
            write_record(self._folders, known)
        except OSError:
            self._server.close()
            raise

    def on_event(self, event: BatchEvent) -> None:
        """Send an event to all viewers, and store it for later viewers as long as its run is in progress."""
        server = self._server
        with server.lock:
            match event:
                case RunEvent(event=happened):
                    run = self._run(happened.run_id)
                    run.events.append(happened)
                    if server.is_watched:
                        for line in self._unsent_lines(run):
                            server.broadcast(line)
                case RunDone(result=result):
                    run = self._run(result.run_id)
                    if server.is_watched:
                        for line in (*self._unsent_lines(run), *self._rest(run), *self._done(run.place, event)):
                            server.broadcast(line)
                    del self._under_way[result.run_id]
                    self._finished_count += result.status != Status.STOPPED
                case _ if server.is_watched:
                    place = None
                    if isinstance(event, JudgeAsked | RequestDelayed):
                        place = self._places[event.run_id]
                    news = batch_event_line(event, place, self._secrets.redacted)
                    if news is not None:
                        server.broadcast(news)
                case _:
                    pass

    def send_output(self, line: str) -> None:
        """Send a line of the process's terminal output."""
        with self._server.lock:
            self._said.append(line)
            self._server.broadcast(encode_message(said=line))

    def end(self, exit_code: int) -> None:
        """Write the exit code into the record of the batch, and tell the viewers that the batch has ended."""
        ended_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._server.lock:
            self.known = replace(self.known, exit_code=exit_code, ended_at=ended_at, said=tuple(self._said))
        try:
            write_record(self._folders, self.known)
        except OSError:
            _logger.exception("the exit code of batch %d was not recorded", self.known.batch)
        with self._server.lock:
            self._end = encode_message(end=exit_code)
            self._server.broadcast(self._end)

    def serve_reports(self, pieces: Pieces | None) -> None:
        """Send reports to the viewers that watched to the end and ask for a report. Then close the server.

        `pieces` makes a report with a viewer's options; `None` means that there is no report. Blocks until all viewers
        have their reports, or have been silent for some seconds."""
        server, until = self._server, time.monotonic() + SILENCE_TIMEOUT_S
        while server.is_watched and time.monotonic() < until:
            try:
                viewer, wanted = server.requests.get(timeout=_END_POLL_INTERVAL_S)
            except queue.Empty:
                continue
            server.send(viewer, _report_lines(pieces, wanted))
            until = time.monotonic() + SILENCE_TIMEOUT_S
        server.close()

    def _run(self, run_id: str) -> _RunInProgress:
        run = self._under_way.get(run_id)
        if run is None:
            run = self._under_way[run_id] = _RunInProgress(
                self._places[run_id], self._lines.redaction(), time.monotonic()
            )
        return run

    def _unsent_lines(self, run: _RunInProgress) -> Iterator[bytes]:
        while run.events:
            # If the text of an event may end in the middle of a secret, the event is kept back and sent with the next
            # event.
            yield from self._kept(run, run.redaction.add(run.events.pop(0)))

    def _rest(self, run: _RunInProgress) -> Iterator[bytes]:
        return self._kept(run, run.redaction.flush())

    def _kept(self, run: _RunInProgress, events: Iterable[Event]) -> Iterator[bytes]:
        for event in events:
            try:
                line = event_line(run.place, event_to_line(event))
            except (TypeError, ValueError, RecursionError):
                _logger.exception("an event cannot be sent to viewers")
                continue
            run.lines.append(line)
            yield line

    def _done(self, place: int, event: RunDone) -> Iterator[bytes]:
        try:
            yield done_line(place, self._lines.result(self._planned[event.result.run_id], event.result), event)
        except (TypeError, ValueError, RecursionError):
            _logger.exception("the end of a run cannot be sent to viewers")

    def _snapshot(self) -> Iterator[bytes]:
        """Yield the lines that describe the state so far to a new viewer.

        Finished runs are not among them, because viewers read these runs from the history."""
        yield encode_message(over=self._finished_count)
        for line in self._said:
            yield encode_message(said=line)
        for run in self._under_way.values():
            for _ in self._unsent_lines(run):
                pass
            if run.lines:
                yield begun_line(run.place, (time.monotonic() - run.began_s) * 1000)
            yield from run.lines
        if self._end is not None:
            yield self._end


_END_POLL_INTERVAL_S = 0.2


def _report_lines(pieces: Pieces | None, options: Mapping[str, Any]) -> Iterator[bytes]:
    try:
        if pieces is None:
            raise ValueError("there is no report, because the batch was given up")
        held: list[str] = []
        size = 0
        for piece in pieces(options):
            held.append(piece)
            size += len(piece)
            if size >= _REPORT_PIECE:
                yield encode_message(report="".join(held))
                held, size = [], 0
        yield encode_message(report="".join(held))
        yield encode_message(reported=True)
    except ValueError as error:
        yield encode_message(reported=False, why=str(error))
    except Exception:
        _logger.exception("a report for a viewer")
        yield encode_message(reported=False, why="the report could not be written: see the log")
