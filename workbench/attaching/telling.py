"""Tells viewers of a batch what happens in it: takes its events, keeps what somebody who attaches later needs to have
seen all so far, and takes secrets out at this door."""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.attaching.records import Detached, write_record
from workbench.attaching.server import SILENT_S, Server
from workbench.attaching.wire import begun_line, done_line, event_line, greeting, news_line, packed
from workbench.batches.events import BatchEvent, JudgeAsked, RequestPutOff, RunDone, RunEvent
from workbench.batches.recordings import recording_lines
from workbench.batches.redacting import EventDoor
from workbench.dataclasses import dataclass
from workbench.evaluation.plan import Plan
from workbench.trajectory.event_lines import event_to_line
from workbench.trajectory.events import Event

_logger = logging.getLogger(__name__)

MAX_SAID_LINES = 200
"""How many of the last lines of its process are kept."""

_REPORT_PIECE = 1 << 16
"""About how many characters of a report stand in one line."""

Pieces = Callable[[Mapping[str, Any]], Iterable[str]]
"""Gives a report as a viewer wants it, without secrets. Raises ValueError where there is none like that."""


@dataclass
class _UnderWay:
    """A run that is not over: its events, and of those that were told, the lines."""

    place: int
    door: EventDoor
    began_s: float
    events: list[Event] = field(default_factory=list)
    """Not told so far: what nobody watches is not made into lines."""
    lines: list[bytes] = field(default_factory=list)


class Telling:
    """A batch of this process while others look on. To be used on one thread."""

    def __init__(self, plan: Plan, known: Detached, stop: Callable[[], object]) -> None:
        """Raises OSError where the socket cannot be made, or what is known not be written down."""
        self.known = known
        self._folders = plan.program.folders
        self._secrets = plan.program.secrets
        self._places = plan.places
        self._planned = {run.run_id: run for run in plan.runs}
        self._lines = recording_lines(self._secrets)
        self._under_way: dict[str, _UnderWay] = {}
        self._over = plan.resumed.before.count if plan.resumed is not None else 0
        self._said: deque[str] = deque(maxlen=MAX_SAID_LINES)
        self._end: bytes | None = None
        hello = greeting(
            history=known.history, batch=known.batch, command=known.command, planned=known.planned, pid=known.pid
        )
        self._server = Server(Path(known.socket), hello, self._snapshot, stop)
        try:
            write_record(self._folders, known)
        except OSError:
            self._server.close()
            raise

    def take(self, event: BatchEvent) -> None:
        """Tell what happened."""
        server = self._server
        with server.lock:
            match event:
                case RunEvent(event=happened):
                    run = self._run(happened.run_id)
                    run.events.append(happened)
                    if server.watched:
                        for line in self._told(run):
                            server.tell(line)
                case RunDone(result=result):
                    run = self._run(result.run_id)
                    if server.watched:
                        for line in (*self._told(run), *self._rest(run), *self._done(run.place, event)):
                            server.tell(line)
                    del self._under_way[result.run_id]
                    self._over += result.status != "stopped"
                case _ if server.watched:
                    place = self._places[event.run_id] if isinstance(event, JudgeAsked | RequestPutOff) else None
                    news = news_line(event, place, self._secrets.redacted)
                    if news is not None:
                        server.tell(news)
                case _:
                    pass

    def said(self, line: str) -> None:
        """Tell a line that the process would have written to its terminal."""
        with self._server.lock:
            self._said.append(line)
            self._server.tell(packed(said=line))

    def end(self, exit_code: int) -> None:
        """Tell that the batch has ended, and write that down. What is told later is not kept."""
        ended_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._server.lock:
            self.known = replace(self.known, exit_code=exit_code, ended_at=ended_at, said=tuple(self._said))
        try:
            write_record(self._folders, self.known)
        except OSError:
            _logger.exception("the exit code of batch %d was not written down", self.known.batch)
        with self._server.lock:
            self._end = packed(end=exit_code)
            self._server.tell(self._end)

    def serve_reports(self, pieces: Pieces | None) -> None:
        """Give everybody who has watched to the end the report, as each wants it; then let go. Takes no longer than the
        slowest of them needs who goes on reading."""
        server, until = self._server, time.monotonic() + SILENT_S
        while server.watched and time.monotonic() < until:
            try:
                viewer, wanted = server.requests.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            server.send(viewer, _report_lines(pieces, wanted))
            until = time.monotonic() + SILENT_S
        server.close()

    def _run(self, run_id: str) -> _UnderWay:
        run = self._under_way.get(run_id)
        if run is None:
            run = self._under_way[run_id] = _UnderWay(self._places[run_id], self._lines.door(), time.monotonic())
        return run

    def _told(self, run: _UnderWay) -> Iterator[bytes]:
        """What of a run was not told so far, as lines, as far as it may leave."""
        while run.events:
            # One that waits for the next piece comes with that.
            yield from self._kept(run, run.door.take(run.events.pop(0)))

    def _rest(self, run: _UnderWay) -> Iterator[bytes]:
        return self._kept(run, run.door.rest())

    def _kept(self, run: _UnderWay, events: Iterable[Event]) -> Iterator[bytes]:
        for event in events:
            try:
                line = event_line(run.place, event_to_line(event))
            except (TypeError, ValueError, RecursionError):
                _logger.exception("an event cannot be told")
                continue
            run.lines.append(line)
            yield line

    def _done(self, place: int, done: RunDone) -> Iterator[bytes]:
        try:
            yield done_line(place, self._lines.result(self._planned[done.result.run_id], done.result), done)
        except (TypeError, ValueError, RecursionError):
            _logger.exception("the end of a run cannot be told")

    def _snapshot(self) -> Iterator[bytes]:
        """What somebody needs who begins to watch; what is over is in the history."""
        yield packed(over=self._over)
        for line in self._said:
            yield packed(said=line)
        for run in self._under_way.values():
            for _ in self._told(run):
                pass
            if run.lines:
                yield begun_line(run.place, (time.monotonic() - run.began_s) * 1000)
            yield from run.lines
        if self._end is not None:
            yield self._end


_LOOK_S = 0.2


def _report_lines(pieces: Pieces | None, wanted: Mapping[str, Any]) -> Iterator[bytes]:
    try:
        if pieces is None:
            raise ValueError("there is no report: the batch was given up")
        held: list[str] = []
        size = 0
        for piece in pieces(wanted):
            held.append(piece)
            size += len(piece)
            if size >= _REPORT_PIECE:
                yield packed(report="".join(held))
                held, size = [], 0
        yield packed(report="".join(held))
        yield packed(reported=True)
    except ValueError as error:
        yield packed(reported=False, why=str(error))
    except Exception:
        _logger.exception("a report for a viewer")
        yield packed(reported=False, why="it could not be made: the log says why")
