"""A worker process: executes runs for the program that started it, and sends back their events."""

from __future__ import annotations

import gc
import pickle
import signal
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Lock

from workbench.config.logs import log_to
from workbench.config.secrets import Secrets
from workbench.engine.events import BatchDone, BatchEvent, BatchStarted, RunDone, RunEvent
from workbench.engine.history_recorder import done_run, redaction_of
from workbench.evaluation.runtime import Runtime
from workbench.evaluation.worker_pool import LENGTH, Happened, Hold, Learned, Made, Make, Message, Setup, Stop, packed
from workbench.grading.grade import RunResult
from workbench.grading.packed import InCommon, PackedResult, Parcel
from workbench.history.packing import PackedRun, RunPacker
from workbench.trajectory.events import Event

OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""The number of new objects that start a collection of the youngest generation."""


def main(descriptor: int) -> None:
    """Serve the program at the other end of this socket until the socket is closed."""
    # Ctrl+C and a closed terminal signal the whole process group, but only the program decides about its runs.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    channel = _Channel(socket.socket(fileno=descriptor))
    # Collections would gain little: runs create many objects but hardly any cycles, and the plan is never garbage.
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    setup = channel.receive()
    gc.freeze()
    if isinstance(setup, Setup):
        log_to(setup.plan.program.folders.log, setup.plan.program.secrets)
        _Worker(channel, setup).serve()


class _Channel:
    """A socket on which any thread sends and one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = Lock()
        self._incoming = connection.makefile("rb")

    def send(self, *messages: Message) -> None:
        """Send messages without interleaving those of another thread; do nothing if the program has ended."""
        data = b"".join(map(packed, messages))
        with self._sending:
            try:
                self._connection.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                # The receiving thread also notices the end of the program and ends the worker.
                return

    def receive(self) -> Message | None:
        """Return the next message; `None` at the end."""
        head = self._incoming.read(LENGTH.size)
        if len(head) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack(head)
        content = self._incoming.read(length)
        if len(content) < length:
            return None
        message: Message = pickle.loads(content)
        return message


class _Worker:
    def __init__(self, channel: _Channel, setup: Setup) -> None:
        plan = setup.plan
        self._channel = channel
        self._secrets = plan.program.secrets
        packer = None
        if setup.history:
            packer = RunPacker(redaction_of(plan.runs, self._secrets))
        self._runs = plan.runs_by_id
        self._runtime = Runtime(
            RunSender(channel.send, self._secrets, packer, hears_events=setup.events).take,
            plan.program,
            own_pace=plan.own_pace,
            judge_anew=plan.judge_anew,
            retries=setup.retries,
            share=setup.share,
            on_hold=lambda url, model, seconds: channel.send(Hold(url, model, seconds)),
        )
        self._batch = self._runtime.open(plan, setup.approval)

    def serve(self) -> None:
        """Handle messages until the socket is closed, then stop the remaining runs."""
        made: set[Future[None]] = set()
        while (message := self._channel.receive()) is not None:
            match message:
                case Make(run_id):
                    future = self._runtime.make(self._batch, self._runs[run_id])
                    made.add(future)
                    future.add_done_callback(made.discard)
                case Stop(run_id):
                    self._runtime.stop_run(self._batch, run_id)
                case Hold(endpoint, model, seconds):
                    self._runtime.hold_endpoint(endpoint, model, seconds)
                case Learned(secrets):
                    self._secrets.take(secrets)
                case _:
                    raise TypeError(f"unknown message to a worker: {message}")
        self._runtime.stop_run(self._batch, None)
        wait(tuple(made), timeout=5.0)
        self._runtime.close()


class RunSender:
    """Sends the events of runs to another process.

    When a run ends, its result is sent, with its row for the history if there is a `packer`, and with its events if the
    program wants them.
    """

    def __init__(
        self, send: Callable[..., object], secrets: Secrets, packer: RunPacker | None, *, hears_events: bool
    ) -> None:
        self._send = send
        self._secrets = secrets
        self._packer = packer
        self._hears_events = hears_events
        self._known: Mapping[str, str] = secrets.replacements
        self._events: dict[str, list[Event]] = {}
        self._in_common = InCommon()

    def take(self, event: BatchEvent) -> None:
        """Send or collect an event, as a listener of the runtime."""
        match event:
            case RunEvent(event=happened):
                self._events.setdefault(happened.run_id, []).append(happened)
            case RunDone(result=result):
                self._tell_done(event, tuple(self._events.pop(result.run_id, ())))
            case BatchStarted() | BatchDone():
                pass
            case _:
                self._send_event(event)

    def _send_event(self, event: BatchEvent) -> None:
        self._send(Happened(event))

    def _tell_done(self, done: RunDone, events: tuple[Event, ...]) -> None:
        # The news are read before the run is packed. Secrets learned during packing are sent with the next run.
        known = self._secrets.replacements
        learned: tuple[Learned, ...] = ()
        if known is not self._known:
            learned = (Learned(known),)
        self._known = known
        row = None
        if self._packer is not None:
            # A run that cannot be packed is sent with its events. The program then also fails to pack the run and
            # reports the error.
            with suppress(TypeError, ValueError, RecursionError):
                row = self._packer.packed(done_run(done, events))
        if not self._hears_events and (row is not None or self._packer is None):
            events = ()
        self._send(*learned, self._made(done, row, events, len(known)))

    def _made(self, done: RunDone, row: PackedRun | None, events: tuple[Event, ...], known: int) -> Made:
        result: Parcel | RunResult = self._in_common.packed(done.result)
        if isinstance(result, PackedResult):
            result = result.parcel
        return Made(
            done.result.run_id,
            result,
            self._in_common.news(),
            *(done.began_ms, done.ended_ms),
            row,
            known,
            events,
        )
