"""A worker of a dask cluster, which executes portions of a plan's runs with the resources of its machine.

dask calls the module's functions by name. A worker cannot call the program, so its messages wait until the program
fetches them."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count, islice

from workbench.config.folders import user_folders
from workbench.config.logs import log_to
from workbench.config.program import create_program
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.engine.batch import Batch
from workbench.engine.events import BatchEvent, RunDone, ToolsListed
from workbench.engine.history_recorder import run_with_events
from workbench.engine.plan import ExecutionRules, PlannedRun
from workbench.engine.redaction import RunRedaction, SuiteParts
from workbench.evaluation.approval import Needs
from workbench.evaluation.cluster.dask import (
    PROGRAM_SIGNALS,
    SILENCE_TIMEOUT_S,
    FromWorker,
    LeasesReturned,
    Portion,
    PortionDone,
    ReturnLeases,
    RunRef,
    StopRuns,
    SuiteText,
    ToWorker,
    WorkerSetup,
    quiet_logs,
)
from workbench.evaluation.cluster.endpoint_limits import approval_hashes, missing_resources, unreachable_models
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.evaluation.trust import trust_store
from workbench.evaluation.worker_messages import OBJECTS_BETWEEN_COLLECTIONS, PauseMessage, RunSender
from workbench.grading.packed import fast_pickle
from workbench.history.packing import PackedRun, RunPacker, Search
from workbench.history.records import RunWithEvents
from workbench.providers.http.rate_limits import Lease, Leases
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile, cases_by_id, parse_suite
from workbench.trajectory.events import Event

_logger = logging.getLogger(__name__)

FIRST_SILENCE_TIMEOUT_S = 600.0
"""The longest wait, in seconds, for the program's first request. Later, the limit is `SILENCE_TIMEOUT_S`."""
LONG_POLL_S = 1.0
"""The time, in seconds, that a request from the program waits for a message."""
POLL_INTERVAL_S = 0.02
MAX_MESSAGES = 200
"""The most messages in one answer."""

# One worker process may work for several programs, each with its own token.
_NODES: dict[str, Node] = {}
_NUMBERS = count(1)
"""Messages are numbered across all nodes. A confirmation for an earlier node therefore never confirms a message of a
later node."""


async def prepare(setup: bytes) -> tuple[str, ...]:
    """Prepare this worker for runs. Returns the reasons why it cannot execute them, or an empty tuple.

    `setup` is a pickled `WorkerSetup`."""
    try:
        unpickled: WorkerSetup = pickle.loads(setup)
        if unpickled.is_own_process:
            _set_up_own_process()
        return await asyncio.to_thread(_prepared, unpickled)
    except Exception as error:  # noqa: BLE001 (dask would log it together with the setup, in which the suites are)
        return (NO_SECRETS.redact(f"{type(error).__name__}: {error}"),)


async def exchange(token: str, last_number: int, data: bytes) -> bytes | None:
    """Handle messages from the program, and return this worker's messages with numbers above `last_number`.

    If there are no messages yet, the call waits for some. It returns `None` if this worker no longer works for the
    batch."""
    node = _NODES.get(token)
    if node is None or not node.requests.record_request():
        return None
    messages: tuple[ToWorker, ...] = pickle.loads(data)
    for message in messages:
        node.handle_message(message)
    return await node.messages_after(last_number)


def run_portion(token: str, portion: bytes) -> bool:
    """Execute all runs of a portion, as a task of dask.

    Returns whether this worker still works for the batch."""
    from distributed import secede

    # This task only waits for the engine's thread. `secede` takes it out of dask's thread pool, so that it does not
    # block other tasks.
    secede()
    node = _NODES.get(token)
    if node is None:
        return False
    try:
        node.run_portion(pickle.loads(portion))
    except Exception as error:  # noqa: BLE001 (raised below, where nothing else of it travels)
        problem = node.redact(f"{type(error).__name__}: {error}")
    else:
        return True
    raise RuntimeError(problem)


async def dismiss(token: str) -> None:
    """Stop this worker's work for a batch."""
    node = _NODES.pop(token, None)
    if node is not None:
        await asyncio.to_thread(node.close)


def _set_up_own_process() -> None:
    """Set up a worker process that was started for one batch.

    The process ignores Ctrl+C, which the program handles, and keeps standard output free for reports."""
    if threading.current_thread() is threading.main_thread():
        for number in PROGRAM_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PROGRAM_SIGNALS)
    # A server or a module that prints would otherwise write into the report on standard output.
    os.dup2(2, 1)
    quiet_logs()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def _prepared(setup: WorkerSetup) -> tuple[str, ...]:
    # The program prepares a worker again after a lost connection, so a node from before may still be open.
    before = _NODES.pop(setup.token, None)
    if before is not None:
        before.close()
    node = Node(setup)
    problems = tuple(map(node.redact, node.problems))
    if not problems:
        node.begin()
        _NODES[setup.token] = node
    return problems


class RequestWatch:
    """Records whether the program still sends requests to this worker.

    After a silence above the limit, all later requests count as too late. By then, the program may have lent the
    worker's shares of limits to other workers. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until_s = clock() + FIRST_SILENCE_TIMEOUT_S

    @property
    def is_silent(self) -> bool:
        """Whether the program has been silent for longer than the limit."""
        return self._clock() > self._until_s

    def record_request(self) -> bool:
        """Record a request from the program. Returns whether it came within the limit."""
        now_s = self._clock()
        if in_time := now_s <= self._until_s:
            self._until_s = now_s + SILENCE_TIMEOUT_S
        return in_time


class Node:
    """Executes runs of one batch on a worker of a cluster."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        program = create_program(user_folders(), os.environ, setup.models)
        log_to(program.folders.log, program.secrets, only_workbench=not setup.is_own_process)
        self._secrets = program.secrets
        self._files = tuple(map(_suite_of, setup.suites))
        for file in self._files:
            program.secrets.exempt(file.text)
        self._cases: list[Mapping[str, Case]] = []
        self.problems: list[str] = []
        """The reasons why the node cannot work."""
        for file in self._files:
            self._cases.append(cases_by_id(file.suite))
            if file.suite is None:
                self.problems += map(str, file.errors)
        self._plan = Plan(
            runs=(),
            program=program,
            files=self._files,
            execution=ExecutionRules(setup.execute, setup.execute_all, trust_store(program.folders).is_exempt),
            concurrency=setup.concurrency,
            original_pace=setup.original_pace,
            renew_judgements=setup.renew_judgements,
            instructions=dict(zip((file.path for file in self._files), setup.instructions, strict=False)),
        )
        self._redacted_cases: dict[str, Case] = {}
        self._outbox: deque[tuple[int, FromWorker]] = deque()
        self._saying = threading.Lock()
        self.requests = RequestWatch()
        self._batches: dict[int, Batch] = {}
        self._stopped: set[str | None] = set()
        """Ids of runs to stop; `None` means all runs. The ids are kept, because a run's portion may arrive later."""
        self._lent: dict[int, tuple[Lease, ...]] = {}
        self._closed = False
        if not self.problems:
            self._samples = tuple(map(self._run, setup.samples))
            needs = Needs.of_runs(self._samples, program)
            self._approval = needs.approved({self._files[place].path for place in setup.granted})
            self.problems += self._refused()

    def redact(self, text: str) -> str:
        return self._secrets.redact(text)

    def _refused(self) -> list[str]:
        refused = []
        for hashed, message in approval_hashes(self._approval, self._samples).items():
            if hashed not in self._setup.approved:
                refused.append(f"refused, because it differs from the approval: {message}")
        problems = (
            *unreachable_models(self._approval, self._samples),
            *missing_resources(self._approval, self._samples),
        )
        return refused or list(dict.fromkeys(problems))

    def begin(self) -> None:
        """Get ready to execute portions. The node closes itself when the program no longer sends requests."""
        setup = self._setup

        def on_endpoint_pause(url: str, model: str, seconds: float) -> None:
            self._send(PauseMessage(url, model, seconds))

        self._leases = Leases(on_endpoint_pause, lambda: not self.requests.is_silent)
        redaction = _PackingRedaction(RunRedaction(SuiteParts(self._secrets), self._redacted_cases))
        self._runtime = Runtime(
            _RedactingSender(self._send, self._secrets, redaction, setup).on_event,
            self._plan.program,
            original_pace=setup.original_pace,
            renew_judgements=setup.renew_judgements,
            retries=setup.retries,
            leases=self._leases,
            on_endpoint_pause=on_endpoint_pause,
        )
        threading.Thread(target=self._watch, name="cluster watch", daemon=True).start()

    def handle_message(self, message: ToWorker) -> None:
        match message:
            case StopRuns(run_id=run_id):
                self._stopped.add(run_id)
                for batch in tuple(self._batches.values()):
                    self._runtime.stop_run(batch, run_id)
            case PauseMessage(endpoint=endpoint, model=model, seconds=seconds):
                self._runtime.pause_endpoint(endpoint, model, seconds)
            case ReturnLeases(lease_id=number):
                self._runtime.run_on_engine(self._give_back(number))

    async def messages_after(self, last_number: int) -> bytes | None:
        """Return the messages with numbers above `last_number`.

        The program has received the earlier messages, so they are deleted. If there are no messages yet, the call waits
        for some. It returns `None` if the program's request came too late."""
        with self._saying:
            while self._outbox and self._outbox[0][0] <= last_number:
                self._outbox.popleft()
        for _ in range(int(LONG_POLL_S / POLL_INTERVAL_S)):
            if self._outbox:
                break
            await asyncio.sleep(POLL_INTERVAL_S)
        if not self.requests.record_request():
            return None
        with self._saying:
            return fast_pickle(tuple(islice(self._outbox, MAX_MESSAGES)))

    def run_portion(self, portion: Portion) -> None:
        """Execute the runs of a portion, and block until all of them are reported."""
        self._runtime.run_on_engine(self._run_portion(portion)).result()

    async def _run_portion(self, portion: Portion) -> None:
        runs = tuple(map(self._run, portion.runs))
        batch = self._runtime.open(self._plan, self._approval, runs, portion.concurrency)
        for run in runs:
            self._redacted_cases[run.run_id] = run.case
        self._batches[portion.number] = batch
        if portion.leases is not None:
            self._leases.add(portion.lease_id, portion.leases)
            self._lent[portion.lease_id] = portion.leases
        # The request to stop a run may have arrived before the portion that contains the run.
        for run_id in tuple(self._stopped):
            batch.stop(run_id)
        try:
            await batch.run()
        finally:
            del self._batches[portion.number]
            for run in runs:
                self._redacted_cases.pop(run.run_id, None)
            self._send(PortionDone(portion.number))

    async def _give_back(self, number: int) -> None:
        leases = self._lent.pop(number, None)
        if leases is not None:
            self._send(LeasesReturned(number, await self._leases.return_leases(number, leases)))

    def close(self) -> None:
        """Stop the remaining runs, and close servers and connections. This may block for some seconds."""
        if not self._closed:
            self._closed = True
            for batch in tuple(self._batches.values()):
                self._runtime.stop_run(batch, None)
            self._runtime.close()

    def _watch(self) -> None:
        while not self._closed:
            time.sleep(POLL_INTERVAL_S * 10)
            if self.requests.is_silent:
                _logger.warning("the program sends no more requests: stopping")
                if _NODES.get(self._setup.token) is self:
                    del _NODES[self._setup.token]
                self.close()

    def _send(self, *messages: FromWorker) -> None:
        with self._saying:
            for message in messages:
                self._outbox.append((next(_NUMBERS), message))

    def _run(self, ref: RunRef) -> PlannedRun:
        return ref.planned(self._files[ref.suite], self._cases[ref.suite][ref.case])


def _suite_of(text: SuiteText) -> SuiteFile:
    return replace(parse_suite(text.text, text.path), hash=text.hash, is_historical=text.is_historical)


class _PackingRedaction:
    def __init__(self, redaction: RunRedaction) -> None:
        self._redaction = redaction
        self._passed: RunWithEvents | None = None
        self._packer = RunPacker(self)

    def search(self, run: RunWithEvents) -> Search | None:
        return self._redaction.search(run)

    def redacted(self, run: RunWithEvents) -> RunWithEvents:
        self._passed = self._redaction.redacted(run)
        return self._passed

    def pack(self, run: RunWithEvents) -> tuple[RunWithEvents, PackedRun | None]:
        self._passed = row = None
        try:
            row = self._packer.packed(run)
        except (TypeError, ValueError, RecursionError):
            self._passed = self._redaction.redacted(run)
        return self._passed or run, row


class _RedactingSender(RunSender):
    """Redacts the events of runs before they are sent to another machine. The secrets themselves are never sent."""

    def __init__(
        self, send: Callable[..., object], secrets: Secrets, redaction: _PackingRedaction, setup: WorkerSetup
    ) -> None:
        super().__init__(send, secrets, None, receives_events=setup.events)
        self._redaction = redaction
        self._history = setup.history

    def _send_event(self, event: BatchEvent) -> None:
        # The worker stores the lists of tools itself, so the program does not get them.
        if not isinstance(event, ToolsListed):
            super()._send_event(self._secrets.redacted(event))

    def _send_done(self, event: RunDone, events: tuple[Event, ...]) -> None:
        run, row = self._redaction.pack(run_with_events(event, events))
        events = ()
        if self._receives_events or (row is None and self._history):
            events = run.events
        if not self._history:
            row = None
        self._send(self._made(replace(event, result=run.result), row, events, known=0))
