"""Runs a batch of planned runs, with a limit of concurrent runs for each model."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from typing import Protocol

from workbench.dataclasses import dataclass
from workbench.engine.events import BatchDone, BatchStarted, RunDone
from workbench.engine.model_specs import cost_of
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import RunContext, result_of, run_planned
from workbench.grading.status import Status
from workbench.trajectory.trajectory import Trajectory

_logger = logging.getLogger(__name__)


@dataclass
class ModelQueue:
    """The waiting runs of one model at one endpoint.

    `concurrency` limits how many of its runs are in progress at a time."""

    concurrency: int
    waiting: deque[PlannedRun] = field(default_factory=deque)


@dataclass(frozen=True)
class QueueKey:
    """Identifies the queue of a run.

    `key` is the model with its endpoint. `concurrency` is the limit of concurrent runs."""

    key: str
    concurrency: int


def model_queues(runs: Iterable[PlannedRun], queue_of: Callable[[PlannedRun], QueueKey]) -> tuple[ModelQueue, ...]:
    """Sort runs into queues, in the order of the runs.

    If the runs of a queue have different concurrency limits, the smallest limit applies."""
    queues: dict[str, ModelQueue] = {}
    for run in runs:
        found = queue_of(run)
        queue = queues.setdefault(found.key, ModelQueue(found.concurrency))
        queue.concurrency = min(queue.concurrency, found.concurrency)
        queue.waiting.append(run)
    return tuple(queues.values())


class SkipRule(Protocol):
    """A rule that may skip a run right before the run starts."""

    @property
    def status(self) -> Status: ...

    async def skip_reason(self, planned: PlannedRun) -> str | None:
        """Return the reason why a run is skipped, or `None` to start it now.

        The call may wait until other runs have ended."""
        ...


@dataclass
class _Running:
    task: asyncio.Task[None]
    is_stopped: bool = False


class Batch:
    """Planned runs that are started together.

    `run_one` executes each run, in this process or another. Before each run, the `skip_rules` decide in order whether
    to skip it."""

    def __init__(
        self,
        name: str,
        runs: Sequence[PlannedRun],
        queue_of: Callable[[PlannedRun], QueueKey],
        context: RunContext,
        skip_rules: Sequence[SkipRule] = (),
    ) -> None:
        self.name = name
        self.runs = tuple(runs)
        self._context = context
        self._skip_rules = skip_rules
        self._queues = model_queues(runs, queue_of)
        self._running: dict[str, _Running] = {}

    async def run(self) -> None:
        """Execute all runs.

        Each run ends with exactly one `RunDone` event, even if the run is stopped or fails unexpectedly."""
        self._context.listener(BatchStarted(self.name, self.runs))
        try:
            await asyncio.gather(self._context.servers.begin_batch(), self._context.ready())
            # Workers take runs from a queue, so that ten thousand runs do not need ten thousand tasks.
            workers = []
            for queue in self._queues:
                for _ in range(min(queue.concurrency, len(queue.waiting))):
                    workers.append(self._work(queue))
            await asyncio.gather(*workers)
        finally:
            self._context.servers.drop_spares()
            self._context.listener(BatchDone(self.name))

    def stop(self, run_id: str | None = None) -> None:
        """Stop one run, or all runs if `run_id` is `None`.

        Finished runs keep their results. Call this method on the engine's loop."""
        for queue in self._queues:
            for planned in tuple(queue.waiting):
                if run_id in (None, planned.run_id):
                    queue.waiting.remove(planned)
                    self._without_trajectory(planned, Status.STOPPED)
        for running_id, running in self._running.items():
            # A second cancellation would interrupt the shutdown of an agent or a server, and leak its process.
            if run_id in (None, running_id) and not running.is_stopped:
                running.is_stopped = True
                running.task.cancel()

    async def _work(self, queue: ModelQueue) -> None:
        while queue.waiting:
            planned = queue.waiting.popleft()
            await self.run_one(planned)
            if queue.waiting:
                await self._context.wait_until_stored()

    async def run_one(self, planned: PlannedRun) -> None:
        """Execute one run in the current task.

        The run ends with exactly one `RunDone` event, even if it is stopped or fails unexpectedly."""
        task = asyncio.current_task()
        assert task is not None
        running = self._running[planned.run_id] = _Running(task)
        try:
            await self._run_unless_skipped(planned)
        except asyncio.CancelledError:
            self._without_trajectory(planned, Status.STOPPED)
        except Exception as error:
            _logger.exception("run %s of case %s broke", planned.run_id, planned.case.id)
            broken = f"unexpected {type(error).__name__}: {error}; the log holds the details"
            self._without_trajectory(planned, Status.ERROR, broken)
        finally:
            del self._running[planned.run_id]
        # The cancellation that stopped the run ends here, so that the task continues with the next run. Any other
        # cancellation ends the task.
        if running.is_stopped:
            task.uncancel()
        if task.cancelling():
            raise asyncio.CancelledError

    async def _run_unless_skipped(self, planned: PlannedRun) -> None:
        for skip_rules in self._skip_rules:
            if (why_not := await skip_rules.skip_reason(planned)) is not None:
                self._without_trajectory(planned, skip_rules.status, why_not)
                return
        await run_planned(planned, self._context)

    def _without_trajectory(self, planned: PlannedRun, status: Status, error: str | None = None) -> None:
        trajectory = Trajectory(planned.run_id)
        result = result_of(planned, status, trajectory, error=error)
        # After an unexpected failure, the tokens of some requests may be unknown, so the cost of the run is unknown
        # too.
        cost_usd = None if status == Status.ERROR else cost_of(trajectory, None)
        self._context.listener(RunDone(replace(result, cost_usd=cost_usd)))
