"""A batch that the workers of a dask cluster execute.

This program assigns each worker some runs at a time, called a portion. Only this program reports events, so each run is
reported once even if its worker is lost."""

from __future__ import annotations

import asyncio
import importlib
import logging
import pickle
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import field, replace
from itertools import chain, count
from secrets import token_hex
from typing import Any

from workbench.dataclasses import dataclass
from workbench.engine.batch import Batch, QueueKey
from workbench.engine.events import BatchDone, BatchStarted, ClusterNotice, RunDone, RunEvent, StartUp
from workbench.engine.history_recorder import redaction_of
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import RunContext, result_of
from workbench.engine.suite_secrets import literal_secrets
from workbench.evaluation.approval import Approval
from workbench.evaluation.cluster.dask import (
    CLOSE_TIMEOUT_S,
    SILENCE_TIMEOUT_S,
    DaskCluster,
    FromWorker,
    LeasesReturned,
    Portion,
    PortionDone,
    ReturnLeases,
    RunRef,
    StopRuns,
    SuiteText,
    ToWorker,
    UnreachableError,
    WorkerSetup,
)
from workbench.evaluation.cluster.endpoint_limits import (
    MAX_PORTION_BY_LOSSES,
    MAX_PORTIONS_PER_WORKER,
    EndpointLimits,
    EndpointQueue,
    approval_hashes,
    endpoint_queues,
    representative_runs,
)
from workbench.evaluation.options import cluster_address
from workbench.evaluation.plan import ClusterError, Plan, WaitCancelledError
from workbench.evaluation.worker_messages import EventMessage, PauseMessage, ResultMessage
from workbench.grading.grade import RunResult
from workbench.grading.packed import SharedParts, fast_pickle
from workbench.grading.status import Status
from workbench.history.packing import PackedRun
from workbench.history.records import RunWithEvents
from workbench.numerals import seconds_text
from workbench.providers.http.rate_limits import Lease
from workbench.providers.model import RetryPolicy
from workbench.suite.files import absolute
from workbench.trajectory.trajectory import Trajectory

MAX_QUOTED_WORKERS = 8
"""The most workers quoted in one message."""
PREPARE_TIMEOUT_S = 120.0
FIRST_ANSWER_TIMEOUT_S = 30.0
"""The longest wait, in seconds, until a worker answers. All workers that were asked may end before they answer."""
ASK_INTERVAL_S = 0.5
CANCEL_CHECK_INTERVAL_S = 0.1
"""The interval, in seconds, between checks whether the caller still waits."""
END_TIMEOUT_S = 3.0
"""The time, in seconds, for a worker to close servers and connections."""


class WorkerGroup:
    """Exchanges messages with the workers that execute one plan.

    Use each group on one event loop only."""

    def __init__(self, plan: Plan, approval: Approval, retries: RetryPolicy, *, history: bool, events: bool) -> None:
        address = cluster_address(plan.cluster or "")
        self.cluster = DaskCluster(address)
        self.is_local = address.is_local
        self.samples = representative_runs(plan.runs)
        self._suites = {file.path: place for place, file in enumerate(plan.files)}
        suites = []
        for file in plan.files:
            # A worker may run in another folder, so it needs absolute paths.
            suites.append(SuiteText(absolute(file.path), file.text, file.hash, file.is_historical))
        granted = frozenset(self._suites[path] for path in approval.grants if path in self._suites)
        self._setup = WorkerSetup(
            token=token_hex(8),
            suites=tuple(suites),
            samples=tuple(map(self.ref, self.samples)),
            granted=granted,
            approved=frozenset(approval_hashes(approval, self.samples)),
            models=plan.program.models.options,
            execute=plan.execution.wanted,
            execute_all=plan.execution.all_tools,
            concurrency=plan.concurrency,
            original_pace=plan.original_pace,
            renew_judgements=plan.renew_judgements,
            retries=retries,
            history=history,
            events=events,
            is_own_process=address.is_local,
            instructions=tuple(plan.instructions.get(file.path, {}) for file in plan.files),
        )
        self._secrets = plan.program.secrets
        self._plan = plan

    def ref(self, run: PlannedRun) -> RunRef:
        return RunRef.of(run, self._suites[run.file.path])

    async def open_unless_cancelled(self, is_cancelled: Callable[[], bool]) -> frozenset[str]:
        """Call `open`, but give up as soon as `is_cancelled` returns true.

        Raises WaitCancelledError after a cancellation."""
        # `is_cancelled` must be polled: it reads a flag that a signal handler sets.
        opening = asyncio.create_task(self.open())
        while not (await asyncio.wait([opening], timeout=CANCEL_CHECK_INTERVAL_S))[0]:
            if is_cancelled():
                opening.cancel()
                await asyncio.wait([opening], timeout=CLOSE_TIMEOUT_S)
                raise WaitCancelledError("interrupted")
        return await opening

    async def open(self) -> frozenset[str]:
        """Start the cluster or connect to it, and prepare all its workers for the runs.

        Returns the addresses of the workers that can execute the runs. Raises ClusterError."""
        for file in self._plan.files:
            if (where := next(literal_secrets(file, self._secrets), None)) is not None:
                raise ClusterError(f"a secret would be sent to the cluster: {where}")
        self._packed = fast_pickle(self._setup)
        # The scheduler and all its other clients can read the message, so it must not contain a secret.
        if self._secrets.finder.may_contain(_as_text(self._packed)):
            raise ClusterError(
                "a secret in the options would be sent to the cluster: give its variable instead, as in --api-key-env"
            )
        await self.cluster.open()
        try:
            answers = await self._answers()
        except UnreachableError as error:
            await self.cluster.close()
            raise ClusterError(f"the cluster cannot be used: {error}") from error
        except BaseException:
            await self.cluster.close()
            raise
        problems: list[str] = []
        unreachable: list[str] = []
        enlisted: list[str] = []
        for worker, reasons in sorted(answers.items()):
            if isinstance(reasons, UnreachableError):
                unreachable.append(f"worker {worker} cannot be asked: {reasons}")
            elif reasons:
                for why in reasons:
                    problems.append(f"worker {worker}: {why}")
            else:
                enlisted.append(worker)
        # A worker that does not answer is a problem only if no other worker can execute the runs.
        if not problems and not enlisted:
            problems = unreachable or ["no worker of the cluster is left: each ended before it could be asked"]
        if problems:
            await self.close(enlisted)
            shown = problems[:MAX_QUOTED_WORKERS]
            if len(problems) > len(shown):
                shown.append(f"and {len(problems) - len(shown)} more")
            raise ClusterError(*shown)
        return frozenset(enlisted)

    async def _answers(self) -> dict[str, tuple[str, ...] | UnreachableError]:
        """Prepare all workers for the runs, and return their answers by the workers' addresses.

        An answer is a tuple of reasons why the worker cannot execute the runs, and is empty if it can. If all workers
        end before they answer, the workers that replace them are asked."""
        until_s = asyncio.get_running_loop().time() + FIRST_ANSWER_TIMEOUT_S
        while True:
            workers = await self.cluster.workers()
            answers = dict(zip(workers, await asyncio.gather(*map(self._asked, workers)), strict=True))
            answered = any(isinstance(reasons, tuple) for reasons in answers.values())
            if answered or asyncio.get_running_loop().time() > until_s:
                return answers
            await asyncio.sleep(ASK_INTERVAL_S)

    async def _asked(self, worker: str) -> tuple[str, ...] | UnreachableError:
        try:
            return await self.prepare_worker(worker)
        except UnreachableError as error:
            # The worker may have ended in the meantime, which is no problem as long as others answer.
            return error

    async def prepare_worker(self, worker: str) -> tuple[str, ...]:
        """Prepare a worker for the runs.

        Returns the reasons why the worker cannot execute them, or an empty tuple. Raises UnreachableError if the worker
        does not answer."""
        why_not = await self.cluster.unsuitability(worker)
        if why_not is not None:
            return (why_not,)
        reasons: tuple[str, ...] = await self.cluster.call(
            worker, _worker_function("prepare"), self._packed, timeout_s=PREPARE_TIMEOUT_S
        )
        return reasons

    async def exchange(
        self, worker: str, last_number: int, outgoing: Iterable[ToWorker] = ()
    ) -> tuple[tuple[int, FromWorker], ...] | None:
        """Send messages to a worker, and return its messages with numbers above `last_number`.

        Returns `None` if the worker no longer works for this batch."""
        answer: bytes | None = await self.cluster.call(
            worker,
            _worker_function("exchange"),
            self._setup.token,
            last_number,
            fast_pickle(tuple(outgoing)),
            timeout_s=SILENCE_TIMEOUT_S,
        )
        if answer is None:
            return None
        messages: tuple[tuple[int, FromWorker], ...] = pickle.loads(answer)
        return messages

    def submit(self, worker: str, portion: Portion) -> Any:
        """Submit a portion of the runs to a worker, as a task of dask."""
        token = self._setup.token
        key = f"workbench-{token}-{portion.number}"
        return self.cluster.submit(worker, key, _worker_function("run_portion"), token, fast_pickle(portion))

    async def close(self, workers: Iterable[str]) -> None:
        """Tell workers that the batch needs them no longer, and disconnect from the cluster."""
        token = self._setup.token
        last = []
        for worker in workers:
            last.append(self.cluster.call(worker, _worker_function("dismiss"), token, timeout_s=END_TIMEOUT_S))
        # A worker that has already ended must not prevent the dismissal of the others.
        await asyncio.gather(*last, return_exceptions=True)
        await self.cluster.close()


def _worker_function(function: str) -> Callable[..., Any]:
    """Return the function of the module `cluster_worker` with this name, for dask to call in a worker."""
    called: Callable[..., Any] = getattr(importlib.import_module("workbench.evaluation.cluster_worker"), function)
    return called


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5
"""The interval, in seconds, between checks for joined and lost workers."""
NO_WORKER_TIMEOUT_S = 120.0
"""The time, in seconds, that a local cluster may lack workers while they are restarted."""
LEASE_CHECK_INTERVAL_S = 0.25
"""The interval, in seconds, between checks whether a lost worker's part of a limit has become free."""
STOP_TIMEOUT_S = 5.0
"""The time, in seconds, for workers to stop their runs."""

LentLeases = tuple[tuple[EndpointLimits, Lease], ...]
"""The parts of endpoints' limits that are lent to a worker."""


@dataclass(eq=False)
class _AssignedPortion:
    portion: Portion
    queue: EndpointQueue
    runs: dict[str, PlannedRun]
    """The runs of the portion that have not been reported yet."""
    lent: LentLeases
    suspect: bool
    """Whether the worker must not have another portion at the same time."""
    task: Any = None
    following: asyncio.Task[None] | None = None


@dataclass(eq=False)
class _Worker:
    address: str
    listening: asyncio.Task[None] | None = None
    assigned: dict[int, _AssignedPortion] = field(default_factory=dict)
    returning_leases: dict[int, LentLeases] = field(default_factory=dict)
    """The parts of limits that the worker was asked to return, by message number."""
    seen: int = 0
    shared_parts: SharedParts | None = None
    start_ups: dict[int, int] = field(default_factory=dict)

    @property
    def load(self) -> int:
        return sum(out.portion.concurrency for out in self.assigned.values())

    def portions_of(self, queue: EndpointQueue) -> int:
        return sum(out.queue is queue for out in self.assigned.values())

    def may_have_more_of(self, queue: EndpointQueue) -> bool:
        if queue.only_suspects or any(out.suspect for out in self.assigned.values()):
            return not self.assigned
        return self.portions_of(queue) < MAX_PORTIONS_PER_WORKER


class ClusterBatch(Batch):
    """A batch that the workers of a `group` execute."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        queue_of: Callable[[PlannedRun], QueueKey],
        context: RunContext,
        group: WorkerGroup,
        workers: frozenset[str],
        approval: Approval,
    ) -> None:
        super().__init__(name, (), queue_of, context)
        self.runs = plan.runs
        self._group = group
        self._workers = {address: _Worker(address) for address in workers}
        self._refused: set[str] = set()
        self._asked: set[str] = set()
        self._secrets = plan.program.secrets
        self._redaction = redaction_of(plan.runs, self._secrets)
        self._left = len(plan.runs)
        self._stopping = False
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._portions = count(1)
        self._start_ups = count(1)
        self._endpoint_queues, self._endpoints = endpoint_queues(plan, queue_of, group.samples, approval)

    async def run(self) -> None:
        """Execute all runs on the workers.

        Each run ends with exactly one `RunDone` event, even if its worker fails."""
        self._context.listener(BatchStarted(self.name, self.runs))
        try:
            await self._context.ready()
            for worker in self._workers.values():
                self._listen_to(worker)
            self._begin(self._watch())
            while self._left:
                self._assign_portions()
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), LEASE_CHECK_INTERVAL_S)
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._context.listener(BatchDone(self.name))

    async def close(self) -> None:
        """Tell the workers that the batch needs them no longer, and disconnect from the cluster."""
        await self._group.close(tuple(self._workers))

    def stop(self, run_id: str | None = None) -> None:
        """Stop one run, or all runs. Finished runs keep their results.

        Call this method on the engine's loop."""
        for queue in self._endpoint_queues:
            for planned in queue.drop(run_id):
                self._end_run(planned, Status.STOPPED)
        for worker in self._workers.values():
            if run_id is None or any(run_id in out.runs for out in worker.assigned.values()):
                self._begin(self._send(worker, StopRuns(run_id)))
        if run_id is None and not self._stopping:
            self._stopping = True
            self._begin(self._stop_waiting())
        self._news.set()

    async def _stop_waiting(self) -> None:
        await asyncio.sleep(STOP_TIMEOUT_S)
        for worker in tuple(self._workers.values()):
            self._lost(worker, "it did not stop in time")

    def _assign_portions(self) -> None:
        if self._stopping:
            return
        for queue in self._endpoint_queues:
            while queue.length:
                free = [worker for worker in self._workers.values() if worker.may_have_more_of(queue)]
                if not free or not self._assign_portion(queue, min(free, key=lambda worker: worker.load)):
                    break

    def _assign_portion(self, queue: EndpointQueue, worker: _Worker, before: _AssignedPortion | None = None) -> bool:
        """Submit the next portion of a queue to a worker.

        If `before` is given, the new portion reuses the leases of this earlier portion of the worker. Returns false if
        nothing was submitted, because a limit has no share to lend or the leases belong to other endpoints."""
        needed, workers, number = queue.needed(), len(self._workers), next(self._portions)
        if before is not None:
            lent, lease_id, asked = before.lent, before.portion.lease_id, None
            # The leases of the earlier portion are useless if the next runs use other endpoints.
            if tuple(limits for limits, _ in lent) != needed:
                return False
        elif all(limits.can_lend() for limits in needed):
            leases = queue.lend(workers)
            lent, lease_id = tuple(zip(needed, leases, strict=True)), number
            asked = tuple(lease for lease in leases if lease.endpoint)
        else:
            return False
        suspect, runs = queue.only_suspects, queue.pop_portion(workers)
        at_once = lent[0][1].concurrency
        if lent[0][1].endpoint:
            # A lease limits requests, not runs. The portions of a worker share the lease, so a portion may have more
            # runs in progress than the lease allows requests.
            at_once *= MAX_PORTIONS_PER_WORKER
        portion = Portion(number, tuple(map(self._group.ref, runs)), at_once, lease_id, asked)
        out = worker.assigned[number] = _AssignedPortion(
            portion, queue, {run.run_id: run for run in runs}, lent, suspect
        )
        out.task = self._group.submit(worker.address, portion)
        out.following = self._begin(self._follow(worker, out))
        return True

    async def _follow(self, worker: _Worker, portion: _AssignedPortion) -> None:
        try:
            if not await self._group.cluster.result(portion.task):
                self._lost(worker, "it no longer works for this batch")
        except UnreachableError as error:
            if portion.portion.number in worker.assigned:
                self._lost(worker, f"a portion broke: {error}")

    def _listen_to(self, worker: _Worker) -> None:
        worker.listening = self._begin(self._listen(worker))

    async def _listen(self, worker: _Worker) -> None:
        for limits in self._endpoints.values():
            if limits.held_s > 0:
                self._begin(self._send(worker, PauseMessage(limits.endpoint, limits.model, limits.held_s)))
        why = "it no longer works for this batch"
        try:
            while True:
                returns = tuple(map(ReturnLeases, worker.returning_leases))
                received = await self._group.exchange(worker.address, worker.seen, returns)
                if received is None:
                    break
                for number, message in received:
                    if number > worker.seen:
                        worker.seen = number
                        self._handle_message(worker, message)
                if received:
                    await self._context.wait_until_stored()
        except UnreachableError as error:
            why = str(error)
        except Exception:
            # A listener raised an error. The worker is dropped, so that other workers get its runs.
            _logger.exception("worker %s", worker.address)
            why = "its messages could not be handled; the log holds the details"
        self._lost(worker, why)

    async def _send(self, worker: _Worker, message: ToWorker) -> None:
        # The error can be ignored, because `_listen` also detects that the worker is lost, and requeues its runs.
        with suppress(UnreachableError):
            await self._group.exchange(worker.address, worker.seen, [message])

    async def _watch(self) -> None:
        cluster, now_s = self._group.cluster, asyncio.get_running_loop().time
        # The last time at which the cluster had a worker.
        last_s = now_s()
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                addresses = await cluster.workers()
            except UnreachableError as error:
                return self._end_all(f"the scheduler is gone ({error})")
            if addresses or not self._group.is_local:
                last_s = now_s()
            elif now_s() - last_s > NO_WORKER_TIMEOUT_S:
                return self._end_all(f"no worker could be started again for {seconds_text(NO_WORKER_TIMEOUT_S)}")
            for worker in tuple(self._workers.values()):
                if worker.address not in addresses:
                    self._lost(worker, "it is gone")
            # A new worker may later have the address of a worker that has disappeared. So such an address is no longer
            # refused.
            self._refused &= addresses
            for address in addresses - self._workers.keys() - self._refused - self._asked:
                self._asked.add(address)
                self._begin(self._prepare_worker(address))

    def _end_all(self, reason: str) -> None:
        self._context.listener(ClusterNotice(f"{reason}: the missing runs were not made", ends_batch=True))
        self._stopping = True
        self.stop()
        for worker in tuple(self._workers.values()):
            self._lost(worker, reason)

    async def _prepare_worker(self, address: str) -> None:
        try:
            reasons = await self._group.prepare_worker(address)
        except UnreachableError:
            # If the worker still exists, `_watch` asks it again later.
            return
        finally:
            self._asked.discard(address)
        if reasons:
            self._refused.add(address)
            self._context.listener(ClusterNotice(f"worker {address} is not used: {reasons[0]}"))
        elif not self._stopping:
            worker = self._workers[address] = _Worker(address)
            self._listen_to(worker)
            self._news.set()

    def _lost(self, worker: _Worker, reason: str) -> None:
        # Several tasks may detect the loss, and a new worker may already have the address.
        if self._workers.get(worker.address) is not worker:
            return
        del self._workers[worker.address]
        if worker.listening is not None and worker.listening is not asyncio.current_task():
            worker.listening.cancel()
        missing = sum(len(out.runs) for out in worker.assigned.values())
        if missing and not self._stopping:
            _logger.warning("worker %s is lost: %s", worker.address, reason)
            consequence = f"its {missing} unfinished runs go to other workers"
            if missing == 1:
                consequence = "its 1 unfinished run goes to another worker"
            self._context.listener(ClusterNotice(f"worker {worker.address} is lost ({reason}): {consequence}"))
        for out in worker.assigned.values():
            if out.following is not None and out.following is not asyncio.current_task():
                out.following.cancel()
            self._begin(_cancelled(out.task))
            for limits, lease in out.lent:
                limits.lost(lease)
            for run in out.runs.values():
                self._requeue(out.queue, run, worker.address)
        for limits, lease in chain.from_iterable(worker.returning_leases.values()):
            limits.lost(lease)
        worker.assigned.clear()
        worker.returning_leases.clear()
        if not self._workers and self._left and not self._stopping:
            self._context.listener(ClusterNotice("no worker is left, so the runs wait for a new worker"))
        self._news.set()

    def _requeue(self, queue: EndpointQueue, run: PlannedRun, worker: str) -> None:
        if self._stopping:
            self._end_run(run, Status.STOPPED)
        elif not queue.lost(run):
            times = len(MAX_PORTION_BY_LOSSES)
            lost = f"the worker that made it was lost {times} times, the last one {worker} with this run"
            self._end_run(
                run, Status.ERROR, (f"{lost} alone: check the code that the suite imports, and the memory of workers")
            )

    def _handle_message(self, worker: _Worker, message: FromWorker) -> None:
        match message:
            case ResultMessage():
                self._handle_result(worker, message)
            case PortionDone(number=number):
                self._handle_portion_done(worker, number)
            case LeasesReturned(lease_id=number, waits_s=waits_s):
                self._return_leases(worker, number, waits_s)
            case PauseMessage(endpoint=endpoint, model=model, seconds=seconds):
                if (limits := self._endpoints.get((endpoint, model))) is not None:
                    limits.hold(seconds)
                for other in self._workers.values():
                    if other is not worker:
                        self._begin(self._send(other, message))
            case EventMessage(event=StartUp(number=number) as event):
                if number not in worker.start_ups:
                    worker.start_ups[number] = next(self._start_ups)
                self._context.listener(replace(event, number=worker.start_ups[number]))
            case EventMessage(event=event):
                self._context.listener(event)

    def _handle_result(self, worker: _Worker, message: ResultMessage) -> None:
        if message.shared_parts is not None:
            worker.shared_parts = worker.shared_parts or SharedParts(message.shared_parts.key)
            worker.shared_parts.add_parts(message.shared_parts)
        for out in worker.assigned.values():
            if message.run_id in out.runs:
                break
        else:
            # The worker was considered lost in the meantime, so the run was assigned to another worker.
            return
        planned = out.runs[message.run_id]
        result, row, events = message.result, message.row, message.events
        if not isinstance(result, RunResult):
            assert worker.shared_parts is not None
            result = worker.shared_parts.received(
                result, result_of(planned, Status.SKIPPED, Trajectory(planned.run_id))
            )
        if row is not None and self._may_hold_secret(result, row):
            # The worker's row may contain a secret that only this program knows. The program therefore makes a new row
            # from the events.
            events, row = events or row.unpacked_events(), None
        for event in events:
            self._context.listener(RunEvent(event))
        # The run is removed only now, so that another worker gets it if a listener raises an error above.
        del out.runs[message.run_id]
        try:
            self._context.listener(RunDone(result, message.began_ms, message.ended_ms, row))
        finally:
            self._done()

    def _may_hold_secret(self, result: RunResult, row: PackedRun) -> bool:
        events = row.unpacked_events()
        search = self._redaction.search(RunWithEvents(result.run_id, result, events, 0.0, 0.0))
        return search is None or any(map(search, row.unpacked_texts()))

    def _handle_portion_done(self, worker: _Worker, number: int) -> None:
        out = worker.assigned.pop(number, None)
        if out is None:
            return
        # A run remains here only if the worker failed to report it.
        for run in out.runs.values():
            self._requeue(out.queue, run, worker.address)
        queue = out.queue
        # A worker that keeps its leases for the next portion saves time. It must return the leases if another worker
        # has no portion and the limit has no share left to lend.
        all_have_some = all(other is worker or other.portions_of(queue) for other in self._workers.values())
        goes_on = queue.length and not self._stopping and worker.may_have_more_of(queue)
        if not (goes_on and (all_have_some or queue.limits.can_lend()) and self._assign_portion(queue, worker, out)):
            worker.returning_leases[out.portion.lease_id] = out.lent
            self._begin(self._send(worker, ReturnLeases(out.portion.lease_id)))
        self._news.set()

    def _return_leases(self, worker: _Worker, number: int, waits_s: tuple[tuple[float, ...], ...]) -> None:
        waits = iter(waits_s)
        for limits, lease in worker.returning_leases.pop(number, ()):
            limits.return_lease(lease, next(waits) if lease.endpoint else ())
        self._news.set()

    def _end_run(self, planned: PlannedRun, status: Status, error: str | None = None) -> None:
        try:
            self._without_trajectory(planned, status, error)
        finally:
            self._done()

    def _done(self) -> None:
        self._left -= 1
        if not self._left:
            self._news.set()

    def _begin(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _cancelled(task: Any) -> None:
    with suppress(Exception):
        await task.cancel()
