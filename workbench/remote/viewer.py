"""Watch a batch of another process. Its finished runs are in the history, and its events come over a socket."""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workbench.config.folders import history_option
from workbench.config.read_only import refuse_if_read_only
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, RunDone, RunEvent
from workbench.engine.plan import PlannedRun, parse_grader
from workbench.engine.recordings import result_of_recording
from workbench.grading.grade import RunResult
from workbench.history.history import History
from workbench.history.packing import grading_from
from workbench.history.records import BatchRow, RunRow, SuiteRef
from workbench.limits import MAX_PIPED_BYTES
from workbench.remote.records import (
    PROTOCOL,
    AttachError,
    DetachedBatch,
    ProtocolError,
    batch_event_of,
    decode_message,
    encode_message,
    greeting,
)
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import SuiteFile, cases_by_id, parse_suite
from workbench.suite.variants import UnknownVariantError, model_of, variant_of
from workbench.trajectory.events import Event
from workbench.trajectory.fold import TrajectoryError, fold
from workbench.trajectory.recording import (
    EventLineError,
    Header,
    RecordedSuite,
    Recording,
    RecordingError,
    event_from_json,
)
from workbench.trajectory.trajectory import Trajectory
from workbench.version import __version__

_CONNECT_TIMEOUT_S = 5.0
_STORED_TIMEOUT_S = 2.0
"""Time to wait until a finished run is in the history, in seconds."""

_PLAN_TIMEOUT_S = 60.0
"""Time to wait until a large plan is stored, in seconds."""

_RETRY_INTERVAL_S = 0.02
_RECEIVED_BYTES = 1 << 16


class ConnectionEndedError(AttachError):
    """The connection ended before the batch did. The batch's process was killed, or it dropped this viewer."""


class Connection:
    """A connection to the process of a batch. Both sides send lines of JSON."""

    def __init__(self, known: DetachedBatch, do: str) -> None:
        """Connect, and ask to `watch` or to `stop` the batch.

        Raises AttachError if the process refuses or has another version, and ConnectionEndedError if it cannot be
        reached."""
        if do == "stop":
            refuse_if_read_only(f"stopping batch {known.batch}")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_CONNECT_TIMEOUT_S)
        try:
            if Path(known.socket).lstat().st_uid != os.getuid():
                raise PermissionError(1, "its socket belongs to another user")
            self._socket.connect(known.socket)
            self._lines = self._socket.makefile("rb")
            self._socket.sendall(greeting(do=do))
            self.hello = self.receive()
        except OSError as error:
            self.close()
            raise ConnectionEndedError(f"batch {known.batch} cannot be reached: {error.strerror or error}") from error
        except BaseException:
            self.close()
            raise
        if self.hello.get("protocol") != PROTOCOL or (do != "stop" and self.hello.get("version") != __version__):
            self.close()
            theirs = self.hello.get("version")
            raise AttachError(
                f"batch {known.batch} runs in Workbench {theirs}, and this is {__version__}: attach with that version, "
                f"or stop it with 'workbench batches --stop {known.batch}{history_option(known.file)}'"
            )
        self._socket.settimeout(None)

    def receive(self) -> Mapping[str, Any]:
        """Wait for the next message and return it.

        Raises ConnectionEndedError at the end of the connection, and AttachError for a refusal or an invalid
        message."""
        line = self._lines.readline(MAX_PIPED_BYTES)
        if len(line) == MAX_PIPED_BYTES:
            self.close()
            raise AttachError(f"the batch sent a line of more than {MAX_PIPED_BYTES >> 20} MiB")
        if not line.endswith(b"\n"):
            raise ConnectionEndedError("the process of the batch has closed the connection")
        try:
            message = decode_message(line)
        except ProtocolError as error:
            raise AttachError(f"a message of the batch is invalid: {error}") from None
        if isinstance(why := message.get("refused"), str):
            raise AttachError(why)
        if isinstance(why := message.get("dropped"), str):
            raise ConnectionEndedError(why)
        return message

    def send(self, **message: object) -> None:
        """Send a message.

        Raises ConnectionEndedError if the connection has ended."""
        try:
            self._socket.sendall(encode_message(**message))
        except OSError:
            raise ConnectionEndedError("the process of the batch has closed the connection") from None

    def close(self) -> None:
        """Disconnect. This method may be called repeatedly, and on another thread than `receive`."""
        # `close` alone would not wake another thread that waits in `receive`.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True)
class OutputLine:
    """A line that the batch's process printed."""

    text: str


@dataclass(frozen=True)
class BatchEnded:
    """The batch has ended."""

    exit_code: int


ViewedEvent = BatchEvent | OutputLine | BatchEnded


class BatchView:
    """A batch of another process that this program watches: `with BatchView(known) as view`.

    `plan` holds the batch's runs by place, read from the history. `over` holds the runs that had finished when watching
    began. Iterate over the view for all later events. Events of runs in progress come first, `BatchEnded` comes last.
    Raises AttachError, HistoryError, and ConnectionEndedError if the process has ended or dropped this viewer."""

    def __init__(self, known: DetachedBatch) -> None:
        self.known = known
        self._connection = Connection(known, "watch")
        self._messages: queue.SimpleQueue[Mapping[str, Any] | Exception] = queue.SimpleQueue()
        try:
            self._before = self._snapshot()
            # From now on, a thread receives the messages. Reading a large history takes long, and the batch disconnects
            # a viewer that reads nothing.
            threading.Thread(target=self._take_all, name="viewing", daemon=True).start()
            with History(known.file) as history:
                self.batch = history.batch(f"#{known.batch}")
                rows = _stored_runs(history, known, self._before)
                self.rows = {row.place: row for row in rows}
                self.over = {row.place: row for row in rows if row.figures is not None and not row.missing}
                self.plan = planned_runs(history, self.batch, rows)
        except BaseException:
            self.close()
            raise
        self.begun_ago_ms: dict[int, float] = {}
        """How long ago each run in progress had begun when the viewer was attached, in milliseconds, by place."""
        self._events: dict[int, list[Event]] = {}
        self._ids: dict[int, str] = {place: run.run_id for place, run in self.plan.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop watching. This method may be called on another thread."""
        self._connection.close()

    def __iter__(self) -> Iterator[ViewedEvent]:
        while True:
            message = self._messages.get()
            if isinstance(message, Exception):
                raise message
            try:
                seen = self._seen(message)
            except (ValueError, LookupError, TypeError, EventLineError) as error:
                raise AttachError(f"a message of the batch is invalid: {error}") from error
            if seen is not None:
                yield seen
            if isinstance(seen, BatchEnded):
                return

    def report(self, **options: object) -> Iterator[str]:
        """Yield the report on the ended batch in pieces. `options` are options of the report.

        Raises AttachError if there is no report."""
        self._connection.send(report=options)
        while "reported" not in (message := self._connection.receive()):
            yield str(message.get("report", ""))
        if not message["reported"]:
            raise AttachError(str(message.get("why")))

    def _take_all(self) -> None:
        # Errors are put into the queue too. The thread that reads the queue raises them.
        try:
            while True:
                message = self._connection.receive()
                self._messages.put(message)
                if "end" in message:
                    return
        except Exception as error:  # noqa: BLE001
            self._messages.put(error)

    def _snapshot(self) -> int:
        over = self._connection.receive().get("over")
        if not isinstance(over, int):
            raise AttachError("a message of the batch is invalid")
        return over

    def _seen(self, message: Mapping[str, Any]) -> ViewedEvent | None:
        if "said" in message:
            return OutputLine(str(message["said"]))
        if "end" in message:
            return BatchEnded(int(message["end"]))
        place = message.get("place")
        run_id = ""
        if isinstance(place, int):
            run_id = self._ids[place]
        if "event" in message:
            event = replace(event_from_json(message["event"]), run_id=run_id)
            self._events.setdefault(self._place(place), []).append(event)
            return RunEvent(event)
        if "begun_ago_ms" in message:
            self.begun_ago_ms[self._place(place)] = float(message["begun_ago_ms"])
            return None
        if "done" in message:
            return self._done(self._place(place), message)
        return batch_event_of(message, run_id)

    def _place(self, place: object) -> int:
        if not isinstance(place, int):
            raise ValueError("the message names no run")
        return place

    def _done(self, place: int, message: Mapping[str, Any]) -> RunDone:
        events = tuple(self._events.pop(place, ()))
        row, planned = self.rows[place], self.plan[place]
        result = _result(row, planned, events, message)
        return RunDone(result, message.get("began_ms"), message.get("ended_ms"))


def planned_runs(history: History, batch: BatchRow, rows: Sequence[RunRow]) -> dict[int, PlannedRun]:
    """Return the runs of a batch by place, as the history stores them, without secrets.

    The id of each run is its place. These runs can be watched but not executed."""
    files: dict[SuiteRef, SuiteFile] = {}
    cases: dict[SuiteRef, dict[str, Case]] = {}
    for suite in batch.suites:
        file = parse_suite(history.suite_text(suite), suite.file)
        # Redaction may have made the suite's text invalid. Then the suite has no cases here.
        if file.suite is None:
            file = replace(file, suite=Suite.model_construct(format=1, name=suite.name, cases=()))
        files[suite], cases[suite] = file, cases_by_id(file.suite)
    return {row.place: _planned(row, files[row.suite], cases[row.suite].get(row.case_id)) for row in rows}


def _planned(row: RunRow, file: SuiteFile, case: Case | None) -> PlannedRun:
    model, suite = row.model, file.suite
    assert suite is not None
    if case is None:
        case = Case.model_construct(id=row.case_id, name=row.case_name)
    try:
        variant_of(suite, model)
    except UnknownVariantError:
        model = model_of(model)
    by = parse_grader(row.by)
    return PlannedRun(str(row.place), file, case, model, row.repeat, row.model_of_suite, by)


def _stored_runs(history: History, known: DetachedBatch, ended_count: int) -> Sequence[RunRow]:
    """Wait until the history has stored the batch's plan, and return the batch's runs.

    The function also waits for `ended_count` finished runs, but only for a short time."""
    # The batch sends events at once, but stores its plan and its runs in the history a moment later.
    began = time.monotonic()
    while True:
        rows, waited_s = history.runs(known.batch), time.monotonic() - began
        if len(rows) >= known.planned or waited_s > _PLAN_TIMEOUT_S:
            settled = sum(not row.missing for row in rows) >= ended_count
            if settled or waited_s > _STORED_TIMEOUT_S:
                return rows
        time.sleep(_RETRY_INTERVAL_S)


def _result(row: RunRow, planned: PlannedRun, events: tuple[Event, ...], message: Mapping[str, Any]) -> RunResult:
    suite = RecordedSuite(row.suite.path, row.suite.hash, "")
    header = Header(__version__, planned.run_id, "", suite, row.case_id, row.model, row.repeat, row.by)
    try:
        trajectory = Trajectory(planned.run_id)
        if events:
            trajectory = fold(events)
        result = result_of_recording(Recording(row.suite.file, header, events, trajectory, message["done"]["result"]))
    except (TrajectoryError, RecordingError) as error:
        raise ValueError(str(error)) from error
    return replace(
        result,
        suite=str(row.suite.file),
        case_name=row.case_name,
        cost_usd=message.get("cost_usd"),
        grading=grading_from(message.get("grading")),
    )
