"""Messages between the program and other processes that execute runs of its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchDone, BatchEvent, BatchStarted, RunDone, RunEvent
from workbench.engine.history_recorder import run_with_events
from workbench.grading.grade import RunResult
from workbench.grading.packed import PackedResult, SharedParts, SharedPartsUpdate, TransferredResult
from workbench.history.packing import PackedRun, RunPacker
from workbench.trajectory.events import Event

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""The number of new objects that start a collection of the youngest generation."""


@dataclass(frozen=True)
class PauseMessage:
    """A message from a worker: an endpoint asked for a pause of some seconds.

    The program passes it on to all other workers."""

    endpoint: str
    model: str
    seconds: float


@dataclass(frozen=True)
class EventMessage:
    """A message from a worker: an event outside of any run, such as the start of a server."""

    event: BatchEvent


@dataclass(frozen=True)
class SecretsMessage:
    """A message from a worker: secret values, each with the text that replaces it.

    The worker sends this message before a run that may contain the values, and the program passes it on to all other
    workers."""

    secrets: Mapping[str, str]


@dataclass(frozen=True)
class ResultMessage:
    """A message from a worker: a run has ended.

    Runs are sent only as a whole, so a worker that dies leaves no partial run. `result` is compressed if possible.
    Values that several results share are then in `shared_parts`, which the reader of the result needs. `row` is the run
    as the history stores it, redacted with the first `known` secrets that the worker learned. `events` are sent if the
    program wants them, or if there is no row."""

    run_id: str
    result: TransferredResult | RunResult
    shared_parts: SharedPartsUpdate | None
    began_ms: float | None
    ended_ms: float | None
    row: PackedRun | None = None
    known: int = 0
    events: tuple[Event, ...] = ()


class RunSender:
    """Sends the events of runs to another process.

    A run is sent as one message when it ends. The message has its result, its row for the history if there is a
    `packer`, and its events if `receives_events` is set."""

    def __init__(
        self, send: Callable[..., object], secrets: Secrets, packer: RunPacker | None, *, receives_events: bool
    ) -> None:
        self._send = send
        self._secrets = secrets
        self._packer = packer
        self._receives_events = receives_events
        self._known: Mapping[str, str] = secrets.replacements
        self._events: dict[str, list[Event]] = {}
        self._in_common = SharedParts()

    def on_event(self, event: BatchEvent) -> None:
        """Send an event at once, or collect it until its run ends. The runtime calls this method."""
        match event:
            case RunEvent(event=happened):
                self._events.setdefault(happened.run_id, []).append(happened)
            case RunDone(result=result):
                self._send_done(event, tuple(self._events.pop(result.run_id, ())))
            case BatchStarted() | BatchDone():
                pass
            case _:
                self._send_event(event)

    def _send_event(self, event: BatchEvent) -> None:
        self._send(EventMessage(event))

    def _send_done(self, event: RunDone, events: tuple[Event, ...]) -> None:
        # Secrets are read before the run is packed. Any secret that packing finds is sent with the next run.
        known = self._secrets.replacements
        learned: tuple[SecretsMessage, ...] = ()
        if known is not self._known:
            learned = (SecretsMessage(known),)
        self._known = known
        row = None
        if self._packer is not None:
            # A run that cannot be packed is sent with its events. The program cannot pack it either, and reports the
            # error.
            with suppress(TypeError, ValueError, RecursionError):
                row = self._packer.packed(run_with_events(event, events))
        if not self._receives_events and (row is not None or self._packer is None):
            events = ()
        self._send(*learned, self._made(event, row, events, len(known)))

    def _made(self, event: RunDone, row: PackedRun | None, events: tuple[Event, ...], known: int) -> ResultMessage:
        result: TransferredResult | RunResult = self._in_common.packed(event.result)
        if isinstance(result, PackedResult):
            result = result.for_transfer
        return ResultMessage(
            event.result.run_id,
            result,
            self._in_common.new_parts(),
            *(event.began_ms, event.ended_ms),
            row,
            known,
            events,
        )
