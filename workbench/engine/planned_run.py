"""Executes one planned run: opens the model and the tools, runs the agent loop, and grades the trajectory."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workbench.checks.check import CallPython, CheckContext, Judge, VerdictCache
from workbench.checks.clock import Clock, clock_at, fixed_clock
from workbench.checks.patterns import CheckError, SpentTime
from workbench.config.models import ConfigError, Price
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.engine.agent_loop import RunRequest, StepNotJudgedError, record_failed_start, run_case
from workbench.engine.checkpoint import RunControl
from workbench.engine.conversation import ConditionEvaluator, Conversation, ConversationUser
from workbench.engine.events import BatchListener, RunDone, RunEvent
from workbench.engine.executor import AskPermission, Permission
from workbench.engine.judges import RunJudge, grade_with_judge
from workbench.engine.model_specs import cost_of
from workbench.engine.own_calls import OwnCalls
from workbench.engine.plan import (
    AGENT_NOT_FORKED,
    DEFAULT_EXECUTION,
    SUBJECT_NOT_STEPPED,
    EarlierInstructions,
    ExecutionRules,
    PlannedRun,
)
from workbench.engine.recorder import Recorder
from workbench.grading.deferred_result import DeferredResult, GradesCallback, replace_fields
from workbench.grading.grade import NOT_GRADED_REASON, Grade, GradingError, RunResult, StepGrade
from workbench.grading.run import GradedRun, grade_by_deciding_grader, grade_step
from workbench.grading.status import Status
from workbench.numerals import seconds_text
from workbench.providers.model import DEFAULT_RETRIES, Model, ModelError, RetryPolicy
from workbench.suite.case_images import ImageError, images_of
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Subject
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import changed_tools
from workbench.tools.answer import ServerError, ToolsError, UntrustedError
from workbench.tools.audit import Audit, AuditLog, Caller
from workbench.tools.grant import Grant
from workbench.tools.python_code import in_thread
from workbench.tools.server_pool import ServerPool
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import Event, RunFinished
from workbench.trajectory.media import Media
from workbench.trajectory.system_prompt import time_text
from workbench.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from workbench.engine.agents.agent_model import AgentModel
    from workbench.engine.subject import SubjectRun

_logger = logging.getLogger(__name__)

GRADING_TIMEOUT_S = 30.0
"""The time limit for grading one run, because a suite's Python check may never end."""

QUICK_CALLS = 10
"""The number of calls up to which a run is graded without a thread.

Grading so few calls takes well under a millisecond."""


async def ignore_wait() -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The services and settings that all runs of a batch share."""

    listener: BatchListener
    servers: ServerPool
    open_model: Callable[[PlannedRun], Model]
    """Opens the model of a run; raises ModelError."""
    grant_of: Callable[[Path], Grant | None]
    """Returns the grant of the suite at a path; `None` for an untrusted suite."""
    execution: ExecutionRules = DEFAULT_EXECUTION
    ask: AskPermission | None = None
    """Asks a person about executions that `execution` does not allow. If it is `None`, the executions are refused."""
    audit: AuditLog | None = None
    """The log of executions. Without a log, nothing is executed."""
    retries: RetryPolicy = DEFAULT_RETRIES
    price_of: Callable[[PlannedRun], Price | None] = lambda _planned: None
    """Returns the price of a run's model; `None` if it is unknown."""
    judge_of: Callable[[PlannedRun], RunJudge | None] = lambda _planned: None
    user_of: Callable[[PlannedRun, Recorder, ConditionEvaluator], ConversationUser | None] = lambda *_run: None
    """Returns the user of a conversation without a script: a played user or a recorded user."""
    control_of: Callable[[PlannedRun, RunGrading], RunControl | None] = lambda _planned, _grading: None
    """Returns the control that may hold a run."""
    earlier_instructions: EarlierInstructions = field(default_factory=dict)
    """The server instructions sent to earlier runs of a resumed batch. New runs get the same instructions."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """Returns the current time, for runs whose clock has no fixed time."""
    environment_of: Callable[[Path], Mapping[str, str]] = lambda _suite: {}
    """Returns the environment variables for a suite. Agents chosen by the user get their keys from these variables."""
    passed_variables: Callable[[], tuple[str, ...]] = tuple
    """Returns the names of variables that every started command gets."""
    ready: Callable[[], Awaitable[None]] = ignore_wait
    """Awaited before the first run begins."""
    wait_until_stored: Callable[[], Awaitable[None]] = ignore_wait
    """Awaited after each run, before the next run starts in its place."""


async def run_planned(planned: PlannedRun, context: RunContext) -> None:
    """Execute one run, and send its events and its result to the listener.

    Cancelling the task stops the run."""
    result = await _result_of(planned, context)
    cost_usd = cost_of(result.trajectory, context.price_of(planned))
    if cost_usd != result.cost_usd:
        result = replace_fields(result, cost_usd=cost_usd)
    context.listener(RunDone(result))


async def _result_of(planned: PlannedRun, context: RunContext) -> RunResult:
    case, settings = planned.case, planned.settings
    if case.skip is not None:
        return result_of(planned, Status.SKIPPED, Trajectory(planned.run_id), error=case.skip)
    clock = _clock_of(planned, settings.clock, context)
    request = RunRequest(case, settings, planned.model, planned.file.hash, planned.fork)
    if clock is not None:
        request = replace(request, clock=str(clock))
    model: Model | None = None
    subject: SubjectRun | None = None
    agent: AgentModel | None = None
    try:
        if case.images:
            request = replace(request, images=await _images_of(planned))
        performer = planned.subject
        if performer is None:
            model = context.open_model(planned)
            if planned.suite.servers:
                # Servers and models may take seconds to start, so they start at the same time.
                tools = await _open_tools_and_model(planned, context, model, clock)
            else:
                await model.start()
                tools = await _open_tools(planned, context, clock)
        elif performer.python is not None:
            model, request = await _python_subject(planned, performer, context, request)
            tools = await _open_tools(planned, context, clock)
        elif performer.is_agent:
            model = agent = _agent(planned, performer, context, request)
            request = replace(_with_limits(request, planned, performer), agent_output=agent.output)
            tools = await _open_tools(planned, context, clock)
            try:
                await agent.begin(tools)
            except BaseException:
                tools.close()
                raise
        else:
            subject = _subject_run(planned, performer, context)
            tools = await _open_tools(planned, context, clock)
    except asyncio.CancelledError:
        return result_of(
            planned, Status.STOPPED, record_failed_start(request, RunFinished("stopped"), _recorder(planned, context))
        )
    except (ModelError, ToolsError) as error:
        finish = RunFinished("error", str(error))
        if isinstance(error, ServerError):
            finish = replace(finish, server_output=error.output)
        failed = record_failed_start(request, finish, _recorder(planned, context))
        return result_of(planned, Status.ERROR, failed, error=str(error))
    try:
        return await _run_and_grade(planned, context, request, tools, model, subject, clock)
    finally:
        try:
            if agent is not None:
                await agent.close()
        finally:
            tools.close()


def _clock_of(planned: PlannedRun, written: str | None, context: RunContext) -> Clock | None:
    """Return the fixed time that a run's model and tools see; `None` if the suite sets no `clock`.

    `written` is the clock in the suite. A fork keeps the clock of the original run."""
    if planned.fork is not None and planned.fork.origin.start is not None:
        told = planned.fork.origin.start.clock
        return None if told is None else fixed_clock(told)
    return None if written is None else clock_at(written, context.now())


async def _images_of(planned: PlannedRun) -> tuple[Media, ...]:
    """Return the images of a case with their content.

    Raises ToolsError."""
    try:
        return await in_thread(lambda: images_of(planned.case, planned.file.path.absolute().parent))
    except ImageError as error:
        # A fork sends the images of the original run, and reports missing images when it sends a request.
        if planned.fork is not None:
            return ()
        raise ToolsError(str(error)) from error


async def _open_tools_and_model(planned: PlannedRun, context: RunContext, model: Model, clock: Clock | None) -> Toolbox:
    opening = asyncio.ensure_future(_open_tools(planned, context, clock))
    try:
        await asyncio.gather(opening, model.start())
    except BaseException:
        opening.cancel()
        opening.add_done_callback(_close_opened)
        raise
    return opening.result()


def _close_opened(opening: asyncio.Future[Toolbox]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


async def _run_and_grade(
    planned: PlannedRun,
    context: RunContext,
    request: RunRequest,
    tools: Toolbox,
    model: Model | None,
    subject: SubjectRun | None,
    clock: Clock | None,
) -> RunResult:
    # The run's time begins here. The time to start models and servers does not count as time of a run.
    recorder = _recorder(planned, context)
    judge = context.judge_of(planned)
    price = context.price_of(planned)
    grading = RunGrading(planned, tools.call_python, judge, clock, lambda trajectory: cost_of(trajectory, price))
    ask = None if judge is None else judge.judge
    audit = _audit(planned, context)
    own_calls: OwnCalls | None = None
    if any(planned.case.own_calls()):
        own_calls = OwnCalls(planned.case, planned.settings.limits.timeout_s, tools, recorder, audit, ask)
    if model is None:
        assert subject is not None
        from workbench.engine.subject import run_subject  # imported here: few suites have a subject

        # A subject performs the whole run by itself, so the run cannot be held, and no tool is executed here.
        return await grading.result(await run_subject(request, subject, tools, recorder, own_calls))
    trajectory = await run_case(
        request,
        model,
        tools,
        recorder,
        permission=_permission(planned, context),
        audit=audit,
        retries=context.retries,
        judge=ask,
        control=context.control_of(planned, grading),
        step_failed=grading.step_failed,
        own_calls=own_calls,
        user=_user_of(planned, context, recorder, grading),
    )
    return await grading.result(trajectory)


def _user_of(planned: PlannedRun, context: RunContext, recorder: Recorder, grading: RunGrading) -> Conversation | None:
    table = planned.case.conversation
    if table is None:
        return None
    return Conversation(table, recorder, grading, context.user_of(planned, recorder, grading))


def _subject_run(planned: PlannedRun, subject: Subject, context: RunContext) -> SubjectRun:
    """Return the request that starts the program of a subject for one run.

    Raises ToolsError if the subject may not be started."""
    from workbench.engine.subject import SubjectRun  # imported here: few suites have a subject

    # A fork cannot replay another run to a subject, which keeps its own conversation.
    if planned.fork is not None:
        raise ToolsError(SUBJECT_NOT_STEPPED)
    if planned.case.conversation is not None:
        raise ToolsError(
            f"the subject {subject.name!r} cannot hold a conversation, because a program gets one request: "
            "write the subject in Python, or run a model"
        )
    environment, passed = _subject_environment(planned, subject, context)
    folder = planned.file.path.absolute().parent
    return SubjectRun(
        planned.suite,
        subject,
        folder,
        environment,
        context.servers.secrets,
        planned.repeat,
        passed,
    )


def _subject_environment(
    planned: PlannedRun, subject: Subject, context: RunContext
) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return the user's environment, and the names of the variables in it that every subject receives.

    Raises ToolsError if the subject may not be started."""
    path = planned.file.path
    # A user who chooses an agent by name approves its command. The suite does not define the command, so no trust in
    # the suite is needed.
    if subject is not planned.written_suite.subject and not planned.model_of_suite:
        try:
            return context.environment_of(path), context.passed_variables()
        except ConfigError as error:
            raise ToolsError(f"the agent {subject.name!r} is not started: {error}") from error
    grant = context.grant_of(path)
    if grant is None or not (grant.covers_agent(subject) if subject.is_agent else grant.covers(subject.as_server)):
        raise UntrustedError(f"{path.name} is not trusted: it would start the subject {subject.name!r}")
    if isinstance(grant.environment, ConfigError):
        raise ToolsError(f"the subject {subject.name!r} is not started: {grant.environment}")
    return grant.environment, grant.needs.passed


def _agent(planned: PlannedRun, subject: Subject, context: RunContext, request: RunRequest) -> AgentModel:
    """Return the agent of a run, not yet started.

    Raises ToolsError if the agent may not be started, or if it does not support a feature of the case."""
    from workbench.engine.agents.agent_model import AgentModel  # imported here: few suites have an agent

    if planned.fork is not None:
        raise ToolsError(AGENT_NOT_FORKED)
    if planned.case.messages:
        raise ToolsError(f"the agent {subject.called} cannot be given an earlier conversation: the case has `messages`")
    if any(step.system is not None for step in planned.case.steps[1:]):
        why = "cannot change its system prompt between steps: remove `system` from the later steps"
        raise ToolsError(f"the agent {subject.called} {why}")
    environment, passed = _subject_environment(planned, subject, context)
    system = request.settings.system
    if request.clock is not None:
        system = "\n\n".join(filter(None, (system, time_text(request.clock))))
    return AgentModel(
        subject,
        folder=planned.file.path.absolute().parent,
        system=system or None,
        environment=environment,
        passed=passed,
        secrets=context.servers.secrets,
    )


def _with_limits(request: RunRequest, planned: PlannedRun, subject: Subject) -> RunRequest:
    """Return the request with the time limit of the subject and, for an agent, a higher round limit.

    Each call of an agent counts as a round, so the default round limit of models would end most of its runs."""
    limits, time_limit = request.settings.limits, request.time_limit
    if subject.timeout_s is not None:
        limits, time_limit = replace(limits, timeout_s=subject.timeout_s), "subject.timeout_s"
    written = (planned.suite.limits.max_rounds, planned.case.limits.max_rounds)
    if subject.is_agent and written == (None, None):
        limits = replace(limits, max_rounds=_AGENT_ROUNDS)
    settings = replace(request.settings, limits=limits)
    return replace(request, settings=settings, time_limit=time_limit)


_AGENT_ROUNDS = 100
"""The default limit of an agent's rounds, and so of its calls. It applies if neither the suite nor the case has
`max_rounds`."""


async def _python_subject(
    planned: PlannedRun, subject: Subject, context: RunContext, request: RunRequest
) -> tuple[Model, RunRequest]:
    """Return a Python subject as a model, and the request with its time limit.

    Raises ToolsError if the subject cannot be used."""
    from workbench.engine.python_subject import open_python_subject  # imported here: few subjects are in Python

    if planned.fork is not None:
        raise ToolsError(SUBJECT_NOT_STEPPED)
    grant = context.grant_of(planned.file.path)
    functions = context.servers.functions(None if grant is None else grant.code)
    model = await open_python_subject(planned, subject, functions)
    return model, _with_limits(request, planned, subject)


def _recorder(planned: PlannedRun, context: RunContext) -> Recorder:
    def listener(event: Event) -> None:
        context.listener(RunEvent(event))

    return Recorder(planned.run_id, time.monotonic, listener)


def _permission(planned: PlannedRun, context: RunContext) -> Permission:
    execution = context.execution
    exempt = bool(planned.suite.servers) and execution.exempt(planned.file)
    return Permission(execution.all_tools, context.ask, exempt)


def _audit(planned: PlannedRun, context: RunContext) -> Audit | None:
    if context.audit is None or not planned.suite.servers:
        return None
    return Audit(context.audit, Caller(_absolute_path(planned.file), planned.case.id, planned.model, planned.run_id))


_absolute_path: Callable[[SuiteFile], str] = cached_by_identity(lambda file: str(file.path.absolute()))


async def _open_tools(planned: PlannedRun, context: RunContext, clock: Clock | None) -> Toolbox:
    path = planned.file.path
    grant = context.grant_of(path)
    execute = context.execution.wanted
    if execute is None:
        execute = planned.settings.execute
    # The servers of an untrusted suite are not started. Its cases run with mocks.
    if grant is None:
        execute = False
    return await context.servers.open_toolbox(
        planned.suite,
        planned.case,
        path,
        execute=execute,
        grant=grant,
        changes=changed_tools(planned.variant),
        instructions=context.earlier_instructions.get(path, {}),
        clock=clock,
        of_subject=planned.subject is not None and planned.subject.has_own_tools,
    )


async def grade_planned_run(
    planned: PlannedRun,
    trajectory: Trajectory,
    call_python: CallPython,
    judge: RunJudge | None = None,
    cost_usd: float | None = None,
) -> RunResult:
    return await RunGrading(planned, call_python, judge, cost_usd=lambda _trajectory: cost_usd).result(trajectory)


_Graded = TypeVar("_Graded")


class RunGrading:
    """Grades one run, during the run and after it.

    A check is evaluated only once for each value."""

    def __init__(
        self,
        planned: PlannedRun,
        call_python: CallPython,
        judge: RunJudge | None,
        clock: Clock | None = None,
        cost_usd: Callable[[Trajectory], float | None] = lambda _trajectory: None,
    ) -> None:
        self._planned = planned
        self.call_python = call_python
        self.judge = judge
        self._verdicts: VerdictCache = {}
        self._search_time: SpentTime = {}

        self._cost_usd = cost_usd
        self.clock = clock
        """The clock of the run, for conditions that are evaluated during the run."""

    async def result(self, trajectory: Trajectory) -> RunResult:
        result, judge = await self._result(trajectory), self.judge
        if judge is None:
            return result
        return replace_fields(result, judgements=judge.judgements, judging=judge.use)

    async def step_failed(self, trajectory: Trajectory, step: int) -> bool:
        """Return whether a step of a chain, counted from 1, failed.

        Raises StepNotJudgedError."""
        if self._planned.case.expects_nothing_yet:
            return False

        def grade(context: CheckContext) -> StepGrade:
            return grade_step(self._planned.suite, self._planned.case, trajectory, step, context)

        graded = await self.result_or_reason(grade, trajectory)
        if isinstance(graded, str):
            raise StepNotJudgedError(f"step {step} cannot be judged: {graded}")
        return graded.status == Status.FAILED

    async def _result(self, trajectory: Trajectory) -> RunResult:
        planned, finish = self._planned, trajectory.finish
        if finish is None:
            return result_of(planned, Status.ERROR, trajectory, error="the run never ended")
        if finish.reason in ("error", "timed out", "user error"):
            return result_of(planned, Status.ERROR, trajectory, error=finish.error)
        if finish.reason == "stopped":
            return result_of(planned, Status.STOPPED, trajectory)

        is_late = _is_quick(planned.case, trajectory)

        def grade(context: CheckContext) -> tuple[GradedRun, GradesCallback]:
            graded, others = grade_by_deciding_grader(
                planned.suite, planned.case, trajectory, context=context, cost_usd=self._cost_usd(trajectory)
            )
            if is_late:
                return graded, others
            return graded._replace(grades=(*graded.grades, *others())), tuple

        try:
            graded = await self.result_or_reason(grade, trajectory)
        except asyncio.CancelledError:
            # The run was stopped during grading. Its trajectory is complete, but a run without grades has not passed.
            return result_of(planned, Status.STOPPED, trajectory)
        if isinstance(graded, str):
            return result_of(planned, Status.ERROR, trajectory, error=graded)
        done, others = graded
        error = NOT_GRADED_REASON if done.status == Status.NOT_GRADED else None
        result = result_of(planned, done.status, trajectory, done.grades, error, done)
        if not is_late:
            return result
        # Compute the grades of the other graders when the run is stored or shown, so that no request waits for them.
        # These graders need no judge and no code of the suite.
        return DeferredResult.of(result, partial(self._late_grades, others))

    def _late_grades(self, grade_others: GradesCallback) -> tuple[Grade, ...]:
        try:
            return grade_others()
        except Exception as error:
            planned = self._planned
            _logger.exception("grading run %s of case %s", planned.run_id, planned.case.id)
            why = f"unexpected {type(error).__name__}: {error}; the log holds the details"
            deciding = planned.settings.grading.by
            return tuple([Grade(by, None, Status.ERROR, why, status=Status.ERROR) for by in GRADERS if by != deciding])

    async def result_or_reason(self, grade: Callable[[CheckContext], _Graded], trajectory: Trajectory) -> _Graded | str:
        """Return the result of `grade`, or a text with the reason why the run cannot be graded."""

        async def in_time(ask: Judge | None) -> _Graded:
            context = CheckContext(self.call_python, ask, self._verdicts, self._search_time)
            # Switching threads takes longer than grading a short run, but long gradings must not block the loop.
            if _is_quick(self._planned.case, trajectory):
                return grade(context)
            async with asyncio.timeout(GRADING_TIMEOUT_S):
                return await in_thread(lambda: grade(context))

        try:
            if self.judge is None:
                return await in_time(None)
            return await grade_with_judge(in_time, self.judge)
        except TimeoutError:
            late = f"grading did not end within {seconds_text(GRADING_TIMEOUT_S)}"
            return f"{late}: check the suite's Python checks and patterns"
        except (CheckError, GradingError, ToolsError) as error:
            return str(error)
        except Exception as error:
            _logger.exception("grading run %s of case %s", self._planned.run_id, self._planned.case.id)
            return f"grading: unexpected {type(error).__name__}: {error}; the log holds the details"


def _is_quick(case: Case, trajectory: Trajectory) -> bool:
    return case.has_quick_checks and len(trajectory.calls) <= QUICK_CALLS


_NOTHING_GRADED = GradedRun((), Status.NOT_GRADED)


def result_of(
    planned: PlannedRun,
    status: Status,
    trajectory: Trajectory,
    grades: tuple[Grade, ...] = (),
    error: str | None = None,
    graded: GradedRun = _NOTHING_GRADED,
) -> RunResult:
    """Return the result of a planned run.

    `graded` has the grades of the run's steps, its metrics, and the validity of its arguments."""
    return RunResult(
        run_id=planned.run_id,
        suite=str(planned.file.path),
        case_id=planned.case.id,
        case_name=planned.case.name,
        model=planned.model,
        repeat=planned.repeat,
        status=status,
        trajectory=trajectory,
        grades=grades,
        error=error,
        grading=planned.settings.grading,
        steps=graded.steps,
        metrics=graded.metrics,
        valid_arguments=graded.valid_arguments,
    )
