"""The runtime starts every plan, and owns what is shared by all batches: the engine's thread, connections and servers.

The command line, the app and the Python API all start their runs here."""

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

from workbench.config.models import ConfigError, ModelSpec, Price
from workbench.config.program import Program
from workbench.config.read_only import refuse_if_read_only
from workbench.engine.batch import Batch, QueueKey, SkipRule, model_queues
from workbench.engine.checkpoint import Command, RunControl
from workbench.engine.conversation import ConditionEvaluator, ConversationUser, RecordedUser, UnavailableUser
from workbench.engine.engine_thread import EngineThread
from workbench.engine.events import (
    BatchListener,
    CostLimitReached,
    EndpointNotice,
    HistoryProblem,
    JudgeAsked,
    PermissionRequested,
    RequestDelayed,
    StartUpReporter,
    ToolsListed,
    combined_listener,
    with_times,
)
from workbench.engine.executor import PermissionAnswer, PermissionQuestion
from workbench.engine.garbage import garbage_collected_rarely
from workbench.engine.history_recorder import HistoryRecorder, settings_of_batch
from workbench.engine.judges import JudgeAccess, JudgementCache, PendingJudgements, RunJudge
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import PlannedRun
from workbench.engine.planned_run import RunContext, RunGrading, ignore_wait
from workbench.engine.player_cache import PlayerCache
from workbench.engine.recorder import Recorder
from workbench.engine.recordings import Recordings
from workbench.engine.server_calls import ServerControl
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.history.writer import BatchHandle, HistoryWriter
from workbench.providers.built_in import REPLAY, BuiltInModels
from workbench.providers.model import DEFAULT_RETRIES, Model, ModelError, ModelWithNotices, RetryPolicy
from workbench.suite.settings import judged_checks
from workbench.suite.trust import needs_trust
from workbench.tools.audit import AuditLog
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import RetryScheduled

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.engine.stepper import Steppers, StepTarget
    from workbench.evaluation.cluster.batch import ClusterBatch, WorkerGroup
    from workbench.evaluation.cost_limit import CostGuard
    from workbench.evaluation.early_stop import EarlyStopper
    from workbench.evaluation.reruns import RerunListener
    from workbench.providers.http.endpoints import EndpointModel, Endpoints
    from workbench.providers.http.rate_limits import Leases


_ModelOfSuite = tuple[Path, str, bool]
"""A suite, the name of a model with its variant, and whether the suite chose the model."""


def _model_of(planned: PlannedRun) -> _ModelOfSuite:
    return planned.file.path, planned.model, planned.model_of_suite


class RuntimeModels:
    """Opens models, judges and simulated users for all batches.

    Batches share one connection to each endpoint and one cache of judgements. `Runtime` explains the arguments. Use
    this object on the engine's thread."""

    def __init__(
        self,
        program: Program,
        listener: BatchListener,
        retries: RetryPolicy,
        *,
        starting: Callable[[str], AbstractContextManager[object]],
        renew_judgements: bool,
        pace_ms: float,
        original_pace: bool,
        on_endpoint_pause: Callable[[str, str, float], object],
        leases: Leases | None,
    ) -> None:
        self._secrets = program.secrets
        self._listener = listener
        self._retries = retries
        self._starting = starting
        self._pace_ms, self._original_pace = pace_ms, original_pace
        self._on_endpoint_pause, self._leases = on_endpoint_pause, leases
        self._judgements = JudgementCache(program.folders.judgements, program.secrets, ignore_existing=renew_judgements)
        self._user_messages = PlayerCache(program.folders.user_messages, program.secrets)
        self._connected = False

    def opening(self, approval: Approval, concurrency: int) -> Callable[[PlannedRun], Model]:
        """Return a function that opens the model of a run, if the model is approved."""
        built_in = BuiltInModels(pace_ms=self._pace_ms, original_pace=self._original_pace)
        # The approval does not change during a batch, so each model is opened once.
        opened: dict[_ModelOfSuite, EndpointModel] = {}

        def open_model(planned: PlannedRun) -> Model:
            if planned.own_model is not None:
                return planned.own_model(planned)
            if (model := opened.get(_model_of(planned))) is not None:
                return self._with_pauses(planned, model)
            return self._open(planned, approval, concurrency, built_in, opened)

        return open_model

    def judges(self, approval: Approval, concurrency: int, *, always: bool) -> Callable[[PlannedRun], RunJudge | None]:
        """Return a function that returns the judge of a run.

        For a run whose case needs no judge, it returns `None`, unless `always` is set."""
        specs = approval.specs
        under_way: PendingJudgements = {}

        def judge_of(planned: PlannedRun) -> RunJudge | None:
            if not always and not judged_checks(planned.suite, planned.case):
                return None

            def open_model(spec: ModelSpec) -> Model:
                environment = specs.environment_at(planned.file.path)
                return self._open_endpoint(planned, spec, environment, approval, concurrency)

            def on_request(judge: str, values: int, again: RetryScheduled | None) -> None:
                self._listener(JudgeAsked(planned.run_id, judge, values, again))

            asking = JudgeAccess(open_model, self._retries, in_flight=under_way, on_request=on_request)
            return RunJudge(partial(specs.judge_of, planned.file.path), self._judgements, asking)

        return judge_of

    def users(
        self, approval: Approval, concurrency: int
    ) -> Callable[[PlannedRun, Recorder, ConditionEvaluator], ConversationUser | None]:
        """Return a function that returns the simulated or recorded user of a run's conversation.

        The returned function returns `None` if a script plays the user."""
        specs = approval.specs
        recorded = BuiltInModels()

        def user_of(planned: PlannedRun, recorder: Recorder, conditions: ConditionEvaluator) -> ConversationUser | None:
            table = planned.case.conversation
            assert table is not None
            name, folder = specs.replayed_users, Path()
            if name is None and planned.asked_model.startswith(REPLAY):
                name = planned.asked_model
                if planned.model_of_suite:
                    folder = planned.file.path.parent
            try:
                if name is not None:
                    origin = recorded.recording(name, folder, planned.case.id).trajectory
                    return RecordedUser(origin, recorder)
                spec = specs.user_of(planned.file.path, planned.case)
            except (ConfigError, ModelError) as error:
                return UnavailableUser(str(error))
            if spec is None:
                return None
            # This import is lazy, because few suites have users that a model plays.
            from workbench.engine.player import Player, PlayerModel

            def open_model() -> Model:
                environment = specs.environment_at(planned.file.path)
                return self._open_endpoint(planned, spec, environment, approval, concurrency)

            model = PlayerModel(spec, open_model, self._retries, self._user_messages)
            return Player(table, model, recorder, conditions, planned.repeat)

        return user_of

    def pause(self, endpoint: str, model: str, seconds: float) -> None:
        """Send no request to a model for some seconds."""
        self._endpoints.pause(endpoint, model, seconds)

    async def close(self) -> None:
        if self._connected:
            await self._endpoints.close()

    @cached_property
    def _endpoints(self) -> Endpoints:
        # This import is lazy, because built-in models need no HTTP.
        from workbench.providers.http.endpoints import Endpoints

        self._connected = True
        return Endpoints(
            self._secrets,
            starting=self._starting,
            on_endpoint_pause=self._on_endpoint_pause,
            leases=self._leases,
            on_notice=lambda text: self._listener(EndpointNotice(text)),
        )

    def _open(
        self,
        planned: PlannedRun,
        approval: Approval,
        concurrency: int,
        built_in: BuiltInModels,
        opened: dict[_ModelOfSuite, EndpointModel],
    ) -> Model:
        specs = approval.specs
        environment: Mapping[str, str] = {}
        unread: ConfigError | None = None
        try:
            # Even if no key is needed, the secrets in a `.env` must be registered before anything is written.
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
            folder = Path()
            if planned.model_of_suite:
                folder = planned.file.path.parent
            model = built_in.open(planned.asked_model, folder, planned.case.id)
            if unread is not None:
                return ModelWithNotices(model, unread.problems)
            return model
        endpoint = self._open_endpoint(planned, spec, environment, approval, concurrency)
        opened[_model_of(planned)] = endpoint
        return self._with_pauses(planned, endpoint)

    def _with_pauses(self, planned: PlannedRun, model: EndpointModel) -> Model:
        return model.with_pause_callback(lambda wait_s: self._listener(RequestDelayed(planned.run_id, wait_s)))

    def _open_endpoint(
        self,
        planned: PlannedRun,
        spec: ModelSpec,
        environment: Mapping[str, str],
        approval: Approval,
        concurrency: int,
    ) -> EndpointModel:
        why_not = approval.model_refusal(planned.file.path, spec)
        if why_not is not None:
            raise ModelError(why_not)
        limited = replace(spec, concurrency=spec.concurrency or concurrency)
        return self._endpoints.open(limited, environment)


_logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

CLOSE_TIMEOUT_S = 8.0
SETTLING_TIMEOUT_S = 1.0

GIVE_WAY_S = 0.01
"""The longest time that the history waits for the engine before it packs a run. If the engine always computes, the
history still keeps up with a hundred runs a second, and then holds back new runs (`wait_until_stored`)."""


class Runtime:
    """Runs plans until it is closed.

    All batches of a runtime share the engine's thread, connections to endpoints, servers, the cache of judgements and
    the writer of the history. Every method may be called from any thread.

    `listener` is called on the engine's thread. `pace_ms` slows the offline model down for a watching user; 0 is full
    speed. `original_pace` plays recordings at the original pace. With `asks`, an execution without permission is
    announced by the event `PermissionRequested` and waits for `allow`; otherwise, it is refused. With
    `renew_judgements`, judges are asked again about values that they have already judged. `history` is the file that
    records all batches. Without `receives_events`, runs in other processes send only their results. If `person` is set,
    a human answers as the user in every conversation.

    In a worker of a cluster, `leases` holds the worker's share of each limit. `on_endpoint_pause` is called with base
    URL, model and seconds when an endpoint asks for a pause."""

    def __init__(
        self,
        listener: BatchListener,
        program: Program,
        *,
        pace_ms: float = 0,
        original_pace: bool = False,
        asks: bool = False,
        renew_judgements: bool = False,
        retries: RetryPolicy = DEFAULT_RETRIES,
        history: Path | None = None,
        receives_events: bool = True,
        on_endpoint_pause: Callable[[str, str, float], object] = lambda _url, _model, _seconds: None,
        leases: Leases | None = None,
        person: ConversationUser | None = None,
    ) -> None:
        refuse_if_read_only("runs are made or servers are started")
        self._listener = listener
        self._receives_events = receives_events
        self._program = program
        self._retries = retries
        self._person = person
        self._ask = None
        if asks:
            self._ask = self._asked
        self._questions: dict[tuple[str, str], asyncio.Future[PermissionAnswer]] = {}
        self._raised: dict[str, asyncio.Future[float | None]] = {}
        """The answers to questions about a higher cost limit that the user has not answered yet, by batch."""
        self._start_ups = StartUpReporter(listener)
        self._models = RuntimeModels(
            program,
            listener,
            retries,
            starting=self._start_ups.watch,
            renew_judgements=renew_judgements,
            pace_ms=pace_ms,
            original_pace=original_pace,
            on_endpoint_pause=on_endpoint_pause,
            leases=leases,
        )
        self._engine = EngineThread()
        self._history = None
        if history:
            self._history = HistoryWriter(
                history,
                lambda text: listener(HistoryProblem(text)),
                give_way=lambda: self._engine.wait_until_idle(GIVE_WAY_S),
            )
        self._handles: dict[str, BatchHandle] = {}
        self._batches: dict[Batch, asyncio.Task[None]] = {}
        self._batch_numbers = count(1)
        self._servers = ServerPool(
            program,
            starting=self._start_ups.watch,
            on_listing=lambda suite_file, server, change: listener(ToolsListed(suite_file, server, change)),
        )
        self.serving = ServerControl(self._servers, self._engine, program)
        """Starts, stops and calls servers on the user's request."""

    def start(
        self,
        plan: Plan,
        approval: Approval,
        *,
        listener: BatchListener | None = None,
        recordings: Recordings | None = None,
        until: StepTarget = "end",
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> str:
        """Begin a batch, and return its name.

        Each run ends with one `RunDone` event, the batch with one `BatchDone`. Runs use what the approval contains, and
        read no suite or settings again. `listener` receives only the events of this batch, and `recordings` stores its
        runs as recordings. `until` is the point at which runs pause for the user. This requires a runtime with `asks`.

        Blocks until the history and the cluster are ready. Raises WaitCancelledError if `is_cancelled` ends the wait
        for a cluster. Raises HistoryError if a resumed batch is already running in another program or the history
        cannot be written. Raises ClusterError if the plan's cluster cannot execute its runs."""
        name = f"batch-{next(self._batch_numbers)}"
        events = self._receives_events or recordings is not None or listener is not None
        group = self._worker_group(plan, approval, events=events)
        # The cluster is opened first, so that the history does not record a batch that the cluster cannot run.
        members = frozenset[str]()
        if group is not None:
            members = self._engine.submit(group.open_unless_cancelled(is_cancelled)).result()
        try:
            recorder = self._history_recorder(plan, approval.specs)
        except BaseException:
            if group is not None:
                self._engine.submit(group.close(members)).result()
            raise
        if recorder is not None:
            self._handles[name] = recorder.handle

        def queue_of(planned: PlannedRun) -> QueueKey:
            return _queue_of(planned, approval.specs, plan.concurrency)

        skip_listener = _skip_listener(plan, queue_of)
        cost_guard = self._cost_guard(plan, name)
        stored = ignore_wait
        if recorder is not None:
            stored = recorder.wait_until_stored
        listeners = self._listeners(plan, recorder, recordings, listener, skip_listener, cost_guard)
        context = replace(
            self._context(plan, approval, listeners),
            # The batch is stored before its first run, so that it can be resumed even if the program is killed early.
            ready=lambda: asyncio.to_thread(self.flush_history),
            wait_until_stored=stored,
        )
        if group is not None:
            # This import is lazy, because few batches have a cluster.
            from workbench.evaluation.cluster.batch import ClusterBatch

            spread = ClusterBatch(name, plan, queue_of, context, group, members, approval)
            self._engine.submit(self._run(spread, until, spread))
            return name
        skip_rules: tuple[SkipRule, ...] = tuple(each for each in (skip_listener, cost_guard) if each is not None)
        batch = Batch(name, plan.runs, queue_of, context, skip_rules)
        self._engine.submit(self._run(batch, until, None))
        return name

    def open(self, plan: Plan, approval: Approval, runs: Sequence[PlannedRun] = (), at_once: int = 1) -> Batch:
        """Open a batch that the caller runs on the engine's thread.

        The caller either starts runs one by one with `start_run`, or awaits the batch's `run`, which starts `runs`,
        `at_once` at a time. The runs are not recorded."""
        context = self._context(plan, approval, with_times(self._listener))
        return Batch("", runs, lambda planned: QueueKey("", at_once), context)

    def run_on_engine(self, coroutine: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Run a coroutine on the engine's thread, and return a future for its result.

        Any other thread may wait for the future."""
        return self._engine.submit(coroutine)

    def start_run(self, batch: Batch, planned: PlannedRun) -> Future[None]:
        """Begin one run of an open batch, and return at once. The run ends with one `RunDone` event."""
        return self._engine.submit(batch.run_one(planned))

    def _context(self, plan: Plan, approval: Approval, listener: BatchListener) -> RunContext:
        control_of: Callable[[PlannedRun, RunGrading], RunControl | None] = _no_control
        if self._ask is not None:
            control_of = self._steppers.begin
        return RunContext(
            listener=listener,
            servers=self._servers,
            open_model=self._models.opening(approval, plan.concurrency),
            grant_of=approval.grant,
            execution=plan.execution,
            ask=self._ask,
            audit=AuditLog(self._program.folders.audit_log, self._program.secrets),
            retries=self._retries,
            price_of=_prices(approval.specs),
            # The condition of a breakpoint may need a judge, even if the case has no judged check.
            judge_of=self._models.judges(approval, plan.concurrency, always=self._ask is not None),
            user_of=self._users(plan, approval),
            control_of=control_of,
            earlier_instructions=plan.instructions,
            environment_of=approval.specs.environment_at,
            passed_variables=approval.specs.passed_variables,
        )

    def _users(
        self, plan: Plan, approval: Approval
    ) -> Callable[[PlannedRun, Recorder, ConditionEvaluator], ConversationUser | None]:
        if (person := self._person) is not None:
            return lambda _planned, _recorder, _decisions: person
        return self._models.users(approval, plan.concurrency)

    def _cost_guard(self, plan: Plan, name: str) -> CostGuard | None:
        """Return the guard that enforces a plan's cost limit; `None` without a limit.

        If the runtime can ask the user, the guard asks for a higher limit when the limit is reached."""
        if plan.cost_limit is None:
            return None
        # This import is lazy, because few batches have a limit.
        from workbench.evaluation.cost_limit import CostGuard

        ask = None
        if self._ask is not None:
            ask = partial(self._asked_for_more, name)
        return CostGuard(plan.cost_limit, ask)

    async def _asked_for_more(self, name: str, limit_usd: float, spent_usd: float) -> float | None:
        answer: asyncio.Future[float | None] = asyncio.get_running_loop().create_future()
        self._raised[name] = answer
        self._listener(CostLimitReached(name, limit_usd, spent_usd))
        return await answer

    def raise_cost_limit(self, batch: str, usd: float | None) -> None:
        """Answer a `CostLimitReached` event with a new limit, or with `None` to begin no more runs.

        Returns at once, and does nothing if the event was already answered or its batch has ended."""

        async def answered() -> None:
            answer = self._raised.pop(batch, None)
            if answer is not None and not answer.done():
                answer.set_result(usd)

        if self._engine.alive:
            self._engine.submit(answered())

    def _worker_group(self, plan: Plan, approval: Approval, *, events: bool) -> WorkerGroup | None:
        if plan.cluster is None:
            return None
        # This import is lazy, because few batches have a cluster.
        from workbench.evaluation.cluster.batch import WorkerGroup

        return WorkerGroup(plan, approval, self._retries, history=self._history is not None, events=events)

    def _listeners(
        self,
        plan: Plan,
        recorder: HistoryRecorder | None,
        record: Recordings | None,
        listener: BatchListener | None,
        skip_listener: EarlyStopper | RerunListener | None,
        cost_guard: CostGuard | None,
    ) -> BatchListener:
        """Return one listener that passes each event to all listeners of a batch.

        The listeners are called on the engine's thread, in this order:

        1. The clock adds the start and end of a run to `RunDone` before a slow listener can delay it.
        2. The steppers, which pause runs at breakpoints, forget a finished run, so that no listener can pause it.
        3. Early stopping and the cost limit are next, because other runs wait for them.
        4. The history follows, so that every run that the screen shows as done is being written to disk.
        5. The recordings follow, for the same reason.
        6. The listeners of the runtime and of the batch are last."""
        listeners: list[BatchListener] = []
        if self._ask is not None:
            listeners.append(self._steppers.on_event)
        for each in (skip_listener, cost_guard, recorder):
            if each is not None:
                listeners.append(each.on_event)
        if record is not None:
            listeners.append(record.listener(plan.runs))
        listeners.append(self._listener)
        if listener is not None:
            listeners.append(listener)
        return with_times(combined_listener(*listeners))

    def _history_recorder(self, plan: Plan, specs: ModelSpecs) -> HistoryRecorder | None:
        if self._history is None:
            return None
        until = confirms = limit_usd = going_on = None
        if plan.until is not None:
            until = plan.until.settings
        if plan.reruns is not None:
            confirms = plan.reruns.batch
        if plan.cost_limit is not None:
            limit_usd = plan.cost_limit.usd
        if plan.resumed is not None:
            going_on = plan.resumed.handle
        settings = settings_of_batch(
            plan.runs,
            specs,
            plan.execution,
            plan.concurrency,
            compares=plan.compares,
            until=until,
            shard=plan.shard,
            min_score=plan.min_score,
            confirms=confirms,
            cost_limit_usd=limit_usd,
        )
        return HistoryRecorder(
            self._history,
            plan.runs,
            settings,
            self._program.secrets,
            home=self._program.environment.home,
            resumed=going_on,
            shard=plan.shard,
        )

    def batch_number(self, batch: str) -> int | None:
        """Return the number of a batch in the history; `None` without a history, or if the batch is not stored yet."""
        handle = self._handles.get(batch)
        if handle is None:
            return None
        return handle.number

    def handle_of(self, batch: str) -> BatchHandle | None:
        """Return the handle of a batch in the history; `None` without a history."""
        return self._handles.get(batch)

    def missing_in_history(self, batch: str) -> int:
        """Return the number of finished runs that the history lacks. The number is final once the runtime is closed."""
        handle = self._handles.get(batch)
        if self._history is None or handle is None:
            return 0
        return self._history.missing(handle)

    def began_at(self, batch: str) -> str | None:
        """Return the time at which a batch began, as the history stores it (ISO 8601); `None` without a history."""
        handle = self._handles.get(batch)
        if handle is None:
            return None
        return handle.started_at

    def flush_history(self) -> None:
        """Wait for at most a second until the history has stored all events so far."""
        if self._history is not None:
            self._history.wait_until_written(SETTLING_TIMEOUT_S)

    def stop(self, run_id: str) -> None:
        """Stop one run, which ends as `stopped`. Returns at once."""
        self._stop_soon(run_id)

    def stop_batch(self, name: str) -> None:
        """Stop every run of one batch. Returns at once."""
        self._stop_soon(None, name)

    def stop_all(self) -> None:
        """Stop every run of every batch. Returns at once."""
        self._stop_soon(None)

    def stop_run(self, batch: Batch, run_id: str | None) -> None:
        """Stop one run of an open batch, or all its runs. Returns at once."""

        async def stop() -> None:
            batch.stop(run_id)

        self._engine.submit(stop())

    def pause_endpoint(self, endpoint: str, model: str, seconds: float) -> None:
        """Send no request to a model for some seconds, because its endpoint asked another process to wait.

        Returns at once."""

        async def hold() -> None:
            self._models.pause(endpoint, model, seconds)

        self._engine.submit(hold())

    def allow(self, run_id: str, call_id: str, answer: PermissionAnswer) -> None:
        """Answer a `PermissionRequested` event, and return at once.

        Nothing happens if the question was answered or its run has ended."""
        if self._engine.alive:
            self._engine.submit(self._answer(run_id, call_id, answer))

    def set_breakpoints(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Set the breakpoints at which all runs pause, including runs in progress. Returns at once."""
        self._steppers.breakpoints = tuple(breakpoints)

    def continue_run(self, run_id: str, until: StepTarget, hold: int | None) -> Future[str | None]:
        """Let a paused run continue up to the point `until`.

        `hold` is the sequence number of the `Paused` event that the caller has seen, or `None` for a run that is not
        paused. The future returns the reason if the run cannot continue, for example because it has paused elsewhere
        since then; otherwise `None`."""

        async def go_on() -> str | None:
            return self._steppers.continue_until(run_id, until, hold)

        return self._engine.submit(go_on())

    def apply_command(self, run_id: str, command: Command, hold: int) -> Future[str | None]:
        """Apply a command to a run that paused with the event number `hold`.

        The future returns the reason if the command cannot be applied; otherwise `None`."""

        async def do() -> str | None:
            return self._steppers.apply(run_id, command, hold)

        return self._engine.submit(do())

    def _stop_soon(self, run_id: str | None, batch: str | None = None) -> None:
        if self._engine.alive:
            self._engine.submit(self._stop(run_id, batch))

    def close(self) -> None:
        """Stop all runs, close servers and connections, complete the history and end the thread.

        This blocks for at most about fifteen seconds, and may be called repeatedly. Afterwards, nothing can be
        started."""
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

    async def _run(self, batch: Batch, until: StepTarget, workers: ClusterBatch | None) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self._ask is not None:
            self._steppers.prepare(batch.runs, until)
        self._batches[batch] = task
        try:
            with garbage_collected_rarely():
                await batch.run()
        except Exception:
            # A listener raised an error. No caller awaits this task, and the servers must still be closed.
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
        # This import is lazy, because only an interactive program can pause runs.
        from workbench.engine.stepper import Steppers

        return Steppers(self._listener)

    async def _asked(self, question: PermissionQuestion) -> PermissionAnswer:
        key = (question.run_id, question.call.id)
        self._questions[key] = asyncio.get_running_loop().create_future()
        self._listener(PermissionRequested(question))
        try:
            return await self._questions[key]
        finally:
            del self._questions[key]

    async def _answer(self, run_id: str, call_id: str, answer: PermissionAnswer) -> None:
        question = self._questions.get((run_id, call_id))
        if question is not None and not question.done():
            question.set_result(answer)


def _no_control(_planned: PlannedRun, _grading: RunGrading) -> None:
    return None


def _skip_listener(plan: Plan, queue_of: Callable[[PlannedRun], QueueKey]) -> EarlyStopper | RerunListener | None:
    """Return the listener that skips runs of a plan that may end early; `None` if the plan runs every case.

    With early stopping, a run may not begin too far ahead of the first unfinished run in the plan. The largest distance
    is the number of runs that can be in progress at once."""
    if plan.reruns is not None:
        return plan.reruns.evidence()
    if plan.until is None:
        return None
    # This import is lazy, because few plans stop early.
    from workbench.evaluation.early_stop import EarlyStopper, early_stopping_of_plan

    watch = early_stopping_of_plan(plan)
    if watch is None:
        return None
    return EarlyStopper(plan, watch, ahead=sum(queue.concurrency for queue in model_queues(plan.runs, queue_of)))


def _prices(specs: ModelSpecs) -> Callable[[PlannedRun], Price | None]:
    found: dict[_ModelOfSuite, Price | None] = {}

    def price_of(planned: PlannedRun) -> Price | None:
        if planned.own_model is not None:
            return None
        key = _model_of(planned)
        if key not in found:
            found[key] = specs.price_of(planned)
        return found[key]

    return price_of


def _queue_of(planned: PlannedRun, specs: ModelSpecs, concurrency: int) -> QueueKey:
    try:
        spec = specs.of(planned)
    except ConfigError:
        # When the run starts, it reports this error.
        return QueueKey("", concurrency)
    if spec is None:
        return QueueKey(planned.asked_model, concurrency)
    return QueueKey(f"{spec.model} at {spec.endpoint}", spec.concurrency or concurrency)
