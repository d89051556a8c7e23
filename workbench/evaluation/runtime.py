"""What outlives a batch, the engine's thread with endpoints and servers, and the one place where plans begin to run.

The command line, the app and the Python API all start runs here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.config.read_only import refuse_if_read_only
from workbench.engine.agent_loop import ExecutionQuestion, Leave
from workbench.engine.batch import Batch, LaneOf, Spares, lanes_of
from workbench.engine.checkpoint import Command
from workbench.engine.events import (
    BatchListener,
    CostLimitReached,
    EndpointSaid,
    ExecutionAsked,
    HistorySaid,
    JudgeAsked,
    RequestPutOff,
    StartUps,
    ToolsListed,
    in_turn,
    timed,
)
from workbench.engine.history_recorder import HistoryRecorder, settings_of_batch
from workbench.engine.judges import Asking, JudgementCache, Questions, RunJudge
from workbench.engine.model_specs import Specs
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import RunContext, make_run, nothing_to_await
from workbench.engine.recordings import Recordings
from workbench.engine.server_calls import Serving
from workbench.engine.thread import EngineThread
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.history.writer import BatchHandle, HistoryWriter
from workbench.providers.built_in import BuiltInModels
from workbench.providers.model import DEFAULT_RETRIES, Model, ModelError, ModelWithNotices, RetryPolicy
from workbench.suite.trust import needs_trust
from workbench.tools.audit import AuditLog
from workbench.tools.pool import ServerPool
from workbench.trajectory.events import RetryScheduled

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.engine.stepper import Steppers, Until
    from workbench.evaluation.cluster.batch import ClusterBatch, Crew
    from workbench.evaluation.cost_limit import Spending
    from workbench.evaluation.early_stop import Sparing
    from workbench.evaluation.reruns import RerunCourse
    from workbench.evaluation.worker_pool import WorkerPool
    from workbench.providers.http.endpoints import Endpoints
    from workbench.providers.http.rate_limits import Leases

# How the runs of a runtime reach their models and judges.


class RuntimeModels:
    """Opens models and judges, with one connection to each endpoint and one memory of judgements for all batches.

    The options are those of `Runtime`. To be used on the engine's thread."""

    def __init__(
        self,
        program: Program,
        listener: BatchListener,
        retries: RetryPolicy,
        *,
        starting: Callable[[str], AbstractContextManager[None]],
        judge_anew: bool,
        pace_ms: float,
        own_pace: bool,
        share: int,
        on_hold: Callable[[str, str, float], object],
        leases: Leases | None,
    ) -> None:
        self._secrets = program.secrets
        self._listener = listener
        self._retries = retries
        self._starting = starting
        self._pace_ms, self._own_pace = pace_ms, own_pace
        self._share, self._on_hold, self._leases = share, on_hold, leases
        self._judgements = JudgementCache(program.folders.judgements, program.secrets, anew=judge_anew)
        self._connected = False

    def opening(self, approval: Approval, concurrency: int) -> Callable[[PlannedRun], Model]:
        """Return what opens the model of each run of a batch."""
        built_in = BuiltInModels(pace_ms=self._pace_ms, own_pace=self._own_pace)
        return lambda planned: self._open(planned, approval, concurrency, built_in)

    def judges(self, approval: Approval, concurrency: int) -> Callable[[PlannedRun], RunJudge]:
        """Return what gives each run of a batch its judge."""
        specs = approval.specs
        under_way: Questions = {}

        def judge_of(planned: PlannedRun) -> RunJudge:
            def open_model(spec: ModelSpec) -> Model:
                return self._open_endpoint(
                    planned, spec, specs.environment_at(planned.file.path), approval, concurrency
                )

            def tell(judge: str, values: int, again: RetryScheduled | None) -> None:
                self._listener(JudgeAsked(planned.run_id, judge, values, again))

            asking = Asking(open_model, self._retries, under_way=under_way, tell=tell)
            return RunJudge(partial(specs.judge_of, planned.file.path), self._judgements, asking)

        return judge_of

    def hold(self, base_url: str, model: str, seconds: float) -> None:
        """Ask a model nothing for this time."""
        self._endpoints.hold(base_url, model, seconds)

    async def close(self) -> None:
        """Close all connections."""
        if self._connected:
            await self._endpoints.close()

    @cached_property
    def _endpoints(self) -> Endpoints:
        from workbench.providers.http.endpoints import Endpoints  # on use: built-in models need no HTTP

        self._connected = True
        return Endpoints(
            self._secrets,
            starting=self._starting,
            on_hold=self._on_hold,
            leases=self._leases,
            share=self._share,
            tell=lambda text: self._listener(EndpointSaid(text)),
        )

    def _open(self, planned: PlannedRun, approval: Approval, concurrency: int, built_in: BuiltInModels) -> Model:
        if planned.own_model is not None:
            return planned.own_model(planned)
        specs = approval.specs
        environment: Mapping[str, str] = {}
        unread: ConfigError | None = None
        try:
            # For every model: what is secret in a `.env` must be known before anything is said.
            environment = specs.environment_at(planned.file.path)
        except ConfigError as error:
            unread = error
        try:
            spec = specs.of(planned)
        except ConfigError as error:
            raise ModelError(str(error)) from error
        if unread is not None and (spec is not None or needs_trust(planned.suite, planned.file.path).environment):
            raise ModelError(str(unread)) from unread
        if spec is None:
            folder = planned.file.path.parent if planned.model_of_suite else Path()
            model = built_in.open(planned.asked_model, folder, planned.case.id)
            return ModelWithNotices(model, unread.problems) if unread is not None else model

        def put_off(wait_s: float) -> None:
            self._listener(RequestPutOff(planned.run_id, wait_s))

        return self._open_endpoint(planned, spec, environment, approval, concurrency, put_off)

    def _open_endpoint(
        self,
        planned: PlannedRun,
        spec: ModelSpec,
        environment: Mapping[str, str],
        approval: Approval,
        concurrency: int,
        put_off: Callable[[float], object] | None = None,
    ) -> Model:
        why_not = approval.why_not_asked(planned.file.path, spec)
        if why_not is not None:
            raise ModelError(why_not)
        limits = spec.shared_by(self._share, concurrency)
        return self._endpoints.open(limits, environment, put_off)


_logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

CLOSE_TIMEOUT_S = 8.0
SETTLING_TIMEOUT_S = 1.0


class Runtime:
    """Runs plans until it is closed.

    Holds what outlives a batch: the engine's thread, connections to endpoints, servers, remembered judgements and the
    writer of the history. May be used from any thread.

    `listener` is called on the engine's thread. `pace_ms` slows the offline model down to something an eye can follow;
    0 is as fast as it goes. `own_pace` plays recordings as fast as they were made. With `asks`, real executions that
    nothing covers are asked about by the event `ExecutionAsked`; without it they are refused. With `judge_anew`, judges
    are asked about what they judged before. `history` is the file in which all batches are recorded. Without
    `hears_events`, the listener does without the events of runs that other processes make.

    In a worker process, `share` is how many of them divide the limits of endpoints, or `leases` are the parts that it
    has of them, and `on_hold` is called with base URL, model and seconds when an endpoint asks for a pause.
    """

    def __init__(
        self,
        listener: BatchListener,
        program: Program,
        *,
        pace_ms: float = 0,
        own_pace: bool = False,
        asks: bool = False,
        judge_anew: bool = False,
        retries: RetryPolicy = DEFAULT_RETRIES,
        history: Path | None = None,
        hears_events: bool = True,
        share: int = 1,
        on_hold: Callable[[str, str, float], object] = lambda _url, _model, _seconds: None,
        leases: Leases | None = None,
    ) -> None:
        refuse_if_read_only("runs were to be made, or servers started")
        self._listener = listener
        self._hears_events = hears_events
        self._program = program
        self._retries = retries
        self._ask = self._asked if asks else None
        self._questions: dict[tuple[str, str], asyncio.Future[Leave]] = {}
        self._raised: dict[str, asyncio.Future[float | None]] = {}
        """The answers to come of batches that have reached their limits on cost."""
        self._start_ups = StartUps(listener)
        self._models = RuntimeModels(
            program,
            listener,
            retries,
            starting=self._start_ups.watch,
            judge_anew=judge_anew,
            pace_ms=pace_ms,
            own_pace=own_pace,
            share=share,
            on_hold=on_hold,
            leases=leases,
        )
        self._history = HistoryWriter(history, lambda text: listener(HistorySaid(text))) if history else None
        self._handles: dict[str, BatchHandle] = {}
        self._batches: dict[Batch, asyncio.Task[None]] = {}
        self._batch_numbers = count(1)
        self._servers = ServerPool(
            program,
            starting=self._start_ups.watch,
            listed=lambda suite_file, server, change: listener(ToolsListed(suite_file, server, change)),
        )
        self._engine = EngineThread()
        self.serving = Serving(self._servers, self._engine, program)
        """Starts, stops and calls servers by hand."""

    def start(
        self,
        plan: Plan,
        approval: Approval,
        *,
        listener: BatchListener | None = None,
        record: Recordings | None = None,
        until: Until = "end",
        given_up: Callable[[], bool] = lambda: False,
    ) -> str:
        """Begin a batch and return its name at once.

        Each run ends in one `RunDone`, the batch in one `BatchDone`.

        Runs use what the approval holds; nothing of suites and settings is read after it. `listener`
        hears of this batch alone, `record` records its runs.
        `until` is how far they go before they are held, where somebody can answer (`asks`).

        Raises HistoryError when a batch that is resumed is running already, here or elsewhere, and when it cannot be
        written, and ClusterError when the plan's cluster cannot make its runs. Blocks for that; a cluster is waited for
        until it is `given_up` (GivenUpError).
        """
        name = f"batch-{next(self._batch_numbers)}"
        events = self._hears_events or record is not None or listener is not None
        crew = self._crew(plan, approval, events=events)
        opening = None if crew is None else self._engine.submit(crew.open_unless(given_up))
        members = frozenset[str]() if opening is None else opening.result()
        try:
            recorder = self._history_recorder(plan, approval.specs)
        except BaseException:
            if crew is not None:
                self._engine.submit(crew.close(members)).result()
            raise
        if recorder is not None:
            self._handles[name] = recorder.handle

        def lane_of(planned: PlannedRun) -> LaneOf:
            return _lane_of(planned, approval.specs, plan.concurrency)

        sparing = _sparing(plan, lane_of)
        spending = self._spending(plan, name)
        context = replace(
            self._context(plan, approval, self._listeners(plan, recorder, record, listener, sparing, spending)),
            # A program that is killed after the first run leaves the plan behind.
            ready=lambda: asyncio.to_thread(self.settle_history),
            stored=recorder.stored if recorder is not None else nothing_to_await,
        )
        if crew is not None:
            from workbench.evaluation.cluster.batch import ClusterBatch  # on use, as in `_crew`

            spread = ClusterBatch(name, plan, lane_of, context, crew, members, approval)
            self._engine.submit(self._run(spread, until, spread))
            return name
        workers = self._workers(plan, approval, events=events)
        make = make_run if workers is None else workers.make
        spares: tuple[Spares, ...] = tuple(each for each in (sparing, spending) if each is not None)
        batch = Batch(name, plan.runs, lane_of, context, make, spares)
        self._engine.submit(self._run(batch, until, workers))
        return name

    def open(self, plan: Plan, approval: Approval, runs: Sequence[PlannedRun] = (), at_once: int = 1) -> Batch:
        """Return a batch that waits for `make`, or to be run by itself, with so many of its `runs` at a time.

        Its history, if it has one, is the business of who asks for runs."""
        context = self._context(plan, approval, timed(self._listener))
        return Batch("", runs, lambda planned: LaneOf("", at_once), context)

    def on_engine(self, work: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Run a coroutine where the runs are made.

        Returns a future that any other thread can wait for."""
        return self._engine.submit(work)

    def make(self, batch: Batch, planned: PlannedRun) -> Future[None]:
        """Begin one run of an open batch.

        Returns at once; the run ends in one `RunDone`."""
        return self._engine.submit(batch.make(planned))

    def _context(self, plan: Plan, approval: Approval, listener: BatchListener) -> RunContext:
        """What the runs of a plan share."""
        return RunContext(
            listener=listener,
            servers=self._servers,
            open_model=self._models.opening(approval, plan.concurrency),
            grant_of=approval.grant,
            execution=plan.execution,
            ask=self._ask,
            audit=AuditLog(self._program.folders.audit_log, self._program.secrets),
            retries=self._retries,
            price_of=approval.specs.price_of,
            judge_of=self._models.judges(approval, plan.concurrency),
            control_of=self._steppers.begin if self._ask is not None else lambda _planned, _grading: None,
        )

    def _spending(self, plan: Plan, name: str) -> Spending | None:
        """Return the guard of a plan's limit on cost.

        It asks the user, if there is one, before it goes beyond."""
        if plan.cost_limit is None:
            return None
        from workbench.evaluation.cost_limit import Spending  # on use: few batches have a limit

        return Spending(plan.cost_limit, partial(self._asked_for_more, name) if self._ask is not None else None)

    async def _asked_for_more(self, name: str, limit_usd: float, spent_usd: float) -> float | None:
        answer: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
        self._raised[name] = answer
        self._listener(CostLimitReached(name, limit_usd, spent_usd))
        return await answer

    def raise_cost_limit(self, batch: str, usd: float | None) -> None:
        """Answer `CostLimitReached`: the limit to go on with, or `None` to make no more runs.

        Returns at once. Does nothing when the question is no longer open."""

        async def answered() -> None:
            answer = self._raised.pop(batch, None)
            if answer is not None and not answer.done():
                answer.set_result(usd)

        if self._engine.alive:
            self._engine.submit(answered())

    def _workers(self, plan: Plan, approval: Approval, *, events: bool) -> WorkerPool | None:
        """Return the worker processes for a plan that is to be spread over some."""
        processes = min(plan.processes, len(plan.runs))
        if processes < 2:
            return None
        from workbench.evaluation.worker_pool import (
            Setup,  # on use: most evaluations have one process
            WorkerPool,
        )

        sent = replace(plan, resumed=None, specs=None, shard=None, reruns=None, cost_limit=None)
        setup = Setup(sent, approval, processes, self._retries, self._history is not None, events)
        return WorkerPool(setup, processes, self._listener, self._program.secrets)

    def _crew(self, plan: Plan, approval: Approval, *, events: bool) -> Crew | None:
        """Return the workers of the cluster of a plan, if it has one."""
        if plan.cluster is None:
            return None
        from workbench.evaluation.cluster.batch import Crew  # on use: few batches have a cluster

        return Crew(plan, approval, self._retries, history=self._history is not None, events=events)

    def _listeners(
        self,
        plan: Plan,
        recorder: HistoryRecorder | None,
        record: Recordings | None,
        listener: BatchListener | None,
        sparing: Sparing | RerunCourse | None,
        spending: Spending | None,
    ) -> BatchListener:
        """Return all listeners of a batch.

        Each event goes to one after the other, on the engine's thread, in this order:

        1. The clock puts into `RunDone` when the run began and ended, before anything that may be slow.
        2. The steppers forget a run that is over, so that nobody who hears of its end can still hold it.
        3. What spares runs, or keeps a limit on cost, knows first of all that others wait for.
        4. The history gets what belongs into it: what the screen shows as done is on its way to the disk.
        5. The recordings, for the same reason.
        6. The listener of the runtime, and that of the batch.
        """
        return timed(
            in_turn(
                *([self._steppers.take] if self._ask is not None else []),
                *([sparing.take] if sparing is not None else []),
                *([spending.take] if spending is not None else []),
                *([recorder.take] if recorder is not None else []),
                *([record.listener(plan.runs)] if record is not None else []),
                self._listener,
                *([listener] if listener is not None else []),
            )
        )

    def _history_recorder(self, plan: Plan, specs: Specs) -> HistoryRecorder | None:
        if self._history is None:
            return None
        return HistoryRecorder(
            self._history,
            plan.runs,
            settings_of_batch(
                plan.runs,
                specs,
                plan.execution,
                plan.concurrency,
                compares=plan.compares,
                until=plan.until.settings if plan.until is not None else None,
                shard=plan.shard,
                min_score=plan.min_score,
                confirms=plan.reruns.batch if plan.reruns is not None else None,
                cost_limit_usd=plan.cost_limit.usd if plan.cost_limit is not None else None,
            ),
            self._program.secrets,
            home=self._program.environment.home,
            going_on=plan.resumed.handle if plan.resumed is not None else None,
            shard=plan.shard,
        )

    def number_of(self, batch: str) -> int | None:
        """Return the number of a batch in the history; `None` until it is known, and without a history."""
        handle = self._handles.get(batch)
        return handle.number if handle is not None else None

    def handle_of(self, batch: str) -> BatchHandle | None:
        """Return what the history knows a batch by; `None` without a history."""
        return self._handles.get(batch)

    def missing_in_history(self, batch: str) -> int:
        """Return how many finished runs of a batch the history lacks; final once the runtime is closed."""
        handle = self._handles.get(batch)
        return self._history.missing(handle) if self._history is not None and handle is not None else 0

    def began_at(self, batch: str) -> str | None:
        """Return when a batch began according to the history, ISO 8601; `None` without a history."""
        handle = self._handles.get(batch)
        return handle.started_at if handle is not None else None

    def settle_history(self) -> None:
        """Wait until everything that has happened so far is in the history.

        Blocks for at most a second."""
        if self._history is not None:
            self._history.settle(SETTLING_TIMEOUT_S)

    def stop(self, run_id: str) -> None:
        """Stop one run; it ends as `stopped`.

        Returns at once."""
        self._stop_soon(run_id)

    def stop_batch(self, name: str) -> None:
        """Stop every run of one batch.

        Returns at once."""
        self._stop_soon(None, name)

    def stop_all(self) -> None:
        """Stop every run of every batch.

        Returns at once."""
        self._stop_soon(None)

    def stop_run(self, batch: Batch, run_id: str | None) -> None:
        """Stop one run of an open batch, or all of them.

        Returns at once."""

        async def stop() -> None:
            batch.stop(run_id)

        self._engine.submit(stop())

    def hold_endpoint(self, base_url: str, model: str, seconds: float) -> None:
        """Ask a model nothing for this time: its endpoint has told another process to wait.

        Returns at once."""

        async def hold() -> None:
            self._models.hold(base_url, model, seconds)

        self._engine.submit(hold())

    def allow(self, run_id: str, call_id: str, leave: Leave) -> None:
        """Answer `ExecutionAsked`.

        Returns at once. Does nothing when the question is no longer open."""
        if self._engine.alive:
            self._engine.submit(self._answer(run_id, call_id, leave))

    def hold_at(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Hold all runs, those under way too, at these breakpoints and no others.

        Returns at once."""
        self._steppers.breakpoints = tuple(breakpoints)

    def go_on(self, run_id: str, until: Until, hold: int | None) -> Future[str | None]:
        """Let a run continue `until` a stop.

        `hold` is the sequence number of the `Paused` that the caller has seen, `None` for a run that is not held. The
        future gives the reason when the run cannot, such as being held elsewhere."""

        async def go_on() -> str | None:
            return self._steppers.go_on(run_id, until, hold)

        return self._engine.submit(go_on())

    def do(self, run_id: str, command: Command, hold: int) -> Future[str | None]:
        """Apply a command to a run that is held at `hold`.

        The future gives the reason when that is impossible."""

        async def do() -> str | None:
            return self._steppers.do(run_id, command, hold)

        return self._engine.submit(do())

    def _stop_soon(self, run_id: str | None, batch: str | None = None) -> None:
        if self._engine.alive:
            self._engine.submit(self._stop(run_id, batch))

    def close(self) -> None:
        """Stop all runs, close all servers and connections, write the rest of the history and end the thread.

        Blocks for at most about fifteen seconds. May be called more than once; nothing can be started afterwards."""
        if not self._engine.alive:
            return
        try:
            self._engine.submit(self._close()).result(CLOSE_TIMEOUT_S)
        except concurrent.futures.TimeoutError:
            _logger.error("closing took longer than %g s", CLOSE_TIMEOUT_S)
        finally:
            self._engine.close(timeout_s=1.0)
            if self._history is not None:
                self._history.close()

    async def _run(self, batch: Batch, until: Until, workers: WorkerPool | ClusterBatch | None) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._ask is not None:
            self._steppers.expect(batch.runs, until)
        self._batches[batch] = task
        try:
            await batch.run()
        except Exception:
            # A listener that raises: nobody waits for this task, and closing must still come to the servers.
            _logger.exception("%s broke", batch.name)
        finally:
            if workers is not None:
                await workers.close()
            del self._batches[batch]

    async def _stop(self, run_id: str | None, name: str | None = None) -> None:
        for batch in tuple(self._batches):
            if name in (None, batch.name):
                batch.stop(run_id)

    async def _close(self) -> None:
        await self._stop(None)
        await asyncio.gather(*self._batches.values())
        await self._servers.close()
        await self._models.close()

    @cached_property
    def _steppers(self) -> Steppers:
        from workbench.engine.stepper import Steppers  # on use: only where somebody can answer, runs can be held

        return Steppers(self._listener)

    async def _asked(self, question: ExecutionQuestion) -> Leave:
        key = (question.run_id, question.call.id)
        self._questions[key] = asyncio.get_running_loop().create_future()
        self._listener(ExecutionAsked(question))
        try:
            return await self._questions[key]
        finally:
            del self._questions[key]

    async def _answer(self, run_id: str, call_id: str, leave: Leave) -> None:
        answer = self._questions.get((run_id, call_id))
        if answer is not None and not answer.done():
            answer.set_result(leave)


def _sparing(plan: Plan, lane_of: Callable[[PlannedRun], LaneOf]) -> Sparing | RerunCourse | None:
    """What spares runs of a plan that stops early.

    No run begins that is further ahead than can be under way at the same time."""
    if plan.reruns is not None:
        return plan.reruns.course()
    if plan.until is None:
        return None
    from workbench.evaluation.early_stop import Sparing, watch_of  # on use: most plans make all their runs

    watch = watch_of(plan)
    ahead = sum(lane.concurrency for lane in lanes_of(plan.runs, lane_of))
    return Sparing(plan, watch, ahead) if watch is not None else None


def _lane_of(planned: PlannedRun, specs: Specs, concurrency: int) -> LaneOf:
    try:
        spec = specs.of(planned)
    except ConfigError:
        return LaneOf("", concurrency)  # the run will say what is wrong
    if spec is None:
        return LaneOf(planned.asked_model, concurrency)
    return LaneOf(f"{spec.model} at {spec.base_url}", spec.concurrency or concurrency)
