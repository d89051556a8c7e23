"""A pool of worker processes for the runs of a plan, because one interpreter limits the runs per second."""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import field, replace
from itertools import count

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, BatchListener, RunDone, RunEvent, StartUp
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import RunContext, result_of
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.grading.grade import RunResult
from workbench.grading.packed import InCommon, News, Parcel, pickled
from workbench.grading.status import Status
from workbench.history.packing import PackedRun
from workbench.providers.model import RetryPolicy
from workbench.trajectory.events import Event
from workbench.trajectory.trajectory import Trajectory

# Messages are pickles over a socket pair, each preceded by its length. Unpickling runs code. This is safe here because
# both ends are the same program and no other process holds an end.

LENGTH = struct.Struct("!Q")


@dataclass(frozen=True)
class Setup:
    """The first message to a worker: the plan, its approval, and the number of workers that share endpoints' limits.

    `history` is true if runs are stored, `events` if the program wants their events.
    """

    plan: Plan
    approval: Approval
    share: int
    retries: RetryPolicy
    history: bool
    events: bool


@dataclass(frozen=True)
class Make:
    """A message to a worker: execute this run of the plan."""

    run_id: str


@dataclass(frozen=True)
class Stop:
    """A message to a worker: stop this run."""

    run_id: str


@dataclass(frozen=True)
class Hold:
    """A message from a worker, passed on to all others: an endpoint asks for a pause of some seconds."""

    endpoint: str
    model: str
    seconds: float


@dataclass(frozen=True)
class Happened:
    """A message from a worker: an event outside of any run, such as the start of a server."""

    event: BatchEvent


@dataclass(frozen=True)
class Learned:
    """A message with values to redact, and their replacements.

    A worker sends it before the run that may contain the values. The program passes it on to all other workers.
    """

    secrets: Mapping[str, str]


@dataclass(frozen=True)
class Made:
    """A message from a worker: a run has ended.

    A run is sent as a whole, so a worker that dies leaves no partial run. `result` is packed if possible, and `news`
    are the shared parts needed to unpack it. `row` is the run for the history, redacted with the first `known` forms of
    secrets. `events` are sent if the program wants them, or if there is no row.
    """

    run_id: str
    result: Parcel | RunResult
    news: News | None
    began_ms: float | None
    ended_ms: float | None
    row: PackedRun | None = None
    known: int = 0
    events: tuple[Event, ...] = ()


Message = Setup | Make | Stop | Hold | Happened | Learned | Made


def packed(message: Message) -> bytes:
    """Return the bytes of a message."""
    content = pickled(message)
    return LENGTH.pack(len(content)) + content


_logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 6.0
"""The time, in seconds, for a worker to stop runs and close servers."""


class WorkerLostError(Exception):
    """A worker process ended while it executed a run; the message has the reason."""


@dataclass(eq=False)
class _Worker:
    process: asyncio.subprocess.Process
    writer: asyncio.StreamWriter
    making: dict[str, asyncio.Future[Made]] = field(default_factory=dict)
    """The runs in progress in the worker, by id."""
    start_ups: dict[int, int] = field(default_factory=dict)
    """The worker's start-up numbers, mapped to the numbers in this process."""
    in_common: InCommon | None = None
    """The shared values of the worker's packed results."""
    alone: bool = False
    """Whether the worker was started for one run only."""

    def send(self, message: Message) -> None:
        self.writer.write(packed(message))


class WorkerPool:
    """Executes runs in up to `processes` worker processes, each with its own connections and servers.

    A worker is started when all others are busy. Use it on one event loop. `listener` receives events outside of any
    run. Secrets that workers learn are added to `secrets`.
    """

    def __init__(self, setup: Setup, processes: int, listener: BatchListener, secrets: Secrets) -> None:
        self._setup = packed(setup)
        self._processes = processes
        self._listener = listener
        self._secrets = secrets
        self._workers: list[_Worker] = []
        self._readers: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()
        self._numbers = count(1)

    async def make(self, planned: PlannedRun, context: RunContext) -> None:
        """Execute one run in a worker; pass its events to the listener when the run ends.

        If the worker dies, the run is repeated in a separate worker, because another run may have killed the first
        worker. Cancelling the awaiting task stops the run.
        """
        try:
            worker = await self._free_worker()
            made = await self._made_by(worker, planned.run_id)
        except WorkerLostError as error:
            _logger.error("run %s of case %s: %s", planned.run_id, planned.case.id, error)
            worker = await self._started(alone=True)
            try:
                made = await self._made_by(worker, planned.run_id)
            except WorkerLostError as again:
                broken = f"{again}, and so did a second one for this run alone: check what the suite imports"
                context.listener(RunDone(result_of(planned, Status.ERROR, Trajectory(planned.run_id), error=broken)))
                return
            finally:
                worker.writer.close()
        self._tell(made, worker, planned, context)

    def _tell(self, made: Made, worker: _Worker, planned: PlannedRun, context: RunContext) -> None:
        result, row, events = made.result, made.row, made.events
        if not isinstance(result, RunResult):
            assert worker.in_common is not None
            result = worker.in_common.arrived(result, result_of(planned, Status.SKIPPED, Trajectory(planned.run_id)))
        if row is not None and made.known < len(self._secrets.replacements):
            # If this program knows more secrets than the worker did, the worker's row is dropped and the run is
            # redacted here.
            events, row = events or row.unpacked_events(), None
        for event in events:
            context.listener(RunEvent(event))
        context.listener(RunDone(result, made.began_ms, made.ended_ms, row))

    async def close(self) -> None:
        """End all workers, by force if they do not end in time."""
        for worker in self._workers:
            worker.writer.close()
        if not self._readers:
            return
        _, late = await asyncio.wait(self._readers, timeout=CLOSE_TIMEOUT_S)
        if late:
            # Workers that have ended were already removed.
            for worker in self._workers:
                _logger.error("worker process %d did not end within %g s", worker.process.pid, CLOSE_TIMEOUT_S)
                worker.process.kill()
            await asyncio.gather(*late)

    async def _made_by(self, worker: _Worker, run_id: str) -> Made:
        made: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        worker.making[run_id] = made
        worker.send(Make(run_id))
        is_stopped = False
        while True:
            try:
                return await asyncio.shield(made)
            except asyncio.CancelledError:
                # Keep waiting because the worker still sends all events up to the stop. A second stop has no effect.
                if not is_stopped:
                    worker.send(Stop(run_id))
                is_stopped = True
            except WorkerLostError:
                if is_stopped:
                    raise asyncio.CancelledError from None
                raise

    async def _free_worker(self) -> _Worker:
        """Return the worker with the fewest runs, or a new worker if all are busy and the limit allows it."""
        async with self._starting:
            shared = [worker for worker in self._workers if not worker.alone]
            least = min(shared, key=lambda worker: len(worker.making), default=None)
            if least is None or (least.making and len(shared) < self._processes):
                least = await self._started()
            return least

    async def _started(self, *, alone: bool = False) -> _Worker:
        ours, theirs = socket.socketpair()
        # The worker gets the `sys.path` of this process and therefore imports the same modules. `-P` excludes the
        # current folder.
        begin = f"from workbench.evaluation.worker import main; main({theirs.fileno()})"
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {begin}"),
                stdin=asyncio.subprocess.DEVNULL,
                # Output of a suite's Python code must not appear in a report.
                stdout=2,
                pass_fds=[theirs.fileno()],
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        worker = _Worker(process, writer, alone=alone)
        writer.write(self._setup)
        worker.send(Learned(self._secrets.replacements))
        self._workers.append(worker)
        task = asyncio.create_task(self._read(worker, reader))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)
        return worker

    async def _read(self, worker: _Worker, reader: asyncio.StreamReader) -> None:
        """Handle the messages of a worker until it ends."""
        try:
            while True:
                (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                message: Message = pickle.loads(await reader.readexactly(length))
                self._take(worker, message)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except Exception:
            # A listener raised an error. The worker is ended, so no caller waits forever for its runs.
            _logger.exception("worker process %d", worker.process.pid)
        self._workers.remove(worker)
        worker.writer.close()
        code = await worker.process.wait()
        lost = WorkerLostError(f"the worker process that made it ended ({_how(code)})")
        for made in worker.making.values():
            made.set_exception(lost)

    def _take(self, worker: _Worker, message: Message) -> None:
        match message:
            case Made(run_id=run_id, news=news):
                if news is not None:
                    worker.in_common = worker.in_common or InCommon(news.key)
                    worker.in_common.take(news)
                worker.making.pop(run_id).set_result(message)
            case Learned(secrets):
                before = self._secrets.replacements
                self._secrets.take(secrets)
                if self._secrets.replacements is not before:
                    self._learned(worker)
            case Hold():
                for other in self._workers:
                    if other is not worker:
                        other.send(message)
            case Happened(StartUp(number=number) as event):
                if number not in worker.start_ups:
                    worker.start_ups[number] = next(self._numbers)
                self._listener(replace(event, number=worker.start_ups[number]))
            case Happened(event):
                self._listener(event)
            case _:
                raise TypeError(f"unknown message from a worker: {message}")

    def _learned(self, worker: _Worker) -> None:
        for other in self._workers:
            if other is not worker:
                other.send(Learned(self._secrets.replacements))


def _how(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"
