"""One planned run from beginning to grade: model, tools, agent loop, grading."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from workbench.batches.cost import cost_of
from workbench.batches.events import BatchListener, RunDone, RunEvent
from workbench.batches.judging import RunJudge, judged
from workbench.batches.plan import PlannedRun
from workbench.checks.describe import CheckError
from workbench.checks.evaluate import CallPython, CheckContext, Judge, VerdictCache
from workbench.checks.patterns import SpentTime
from workbench.config.models import Price
from workbench.engine.agent_loop import StepNotJudgedError
from workbench.engine.checkpoint import RunControl
from workbench.engine.executing import Audit
from workbench.engine.permission import AskExecution, Permission
from workbench.engine.recorder import Recorder
from workbench.engine.retries import DEFAULT_RETRIES, RetryPolicy
from workbench.engine.run import RunRequest, fail, run_case
from workbench.grading.errors import GradingError
from workbench.grading.grade import Grade, RunResult, Status, StepGrade
from workbench.grading.run import grade_run_and_steps
from workbench.grading.steps import grade_step
from workbench.providers.model import Model, ModelError
from workbench.suite.checks import Judged, Pattern, PythonCheck, Similar
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.tools.answer import ToolsError
from workbench.tools.audit import AuditLog, Caller
from workbench.tools.grant import Grant
from workbench.tools.pool import ServerPool
from workbench.tools.python_reference import in_thread
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import Event
from workbench.trajectory.trajectory import Trajectory

_logger = logging.getLogger(__name__)

GRADING_TIMEOUT_S = 30.0
"""A run's own time limit does not cover grading, and a suite's Python check may never end."""

QUICK_CALLS = 10
"""So many calls are paired with what was expected in well under a millisecond."""


@dataclass(frozen=True)
class Execution:
    """Real execution of tools in a batch. What is not covered is asked about where someone can answer, else refused."""

    wanted: bool | None = None
    """For every case, or `None` for what each case says."""
    all_tools: bool = False
    """Tools that are not marked read-only too, without asking."""
    exempt: Callable[[SuiteFile], bool] = lambda _file: False
    """Suites whose servers are known to do no harm: the bundled ones."""


AS_CASES_SAY = Execution()


async def _at_once(*_about: str) -> None:
    pass


@dataclass(frozen=True)
class Surroundings:
    """What all runs of a batch share: models, servers, what was approved, and who listens.

    `grant_of` is what a suite may use, `None` for one that is not trusted. `open_model` raises ModelError, `ask` asks a
    person about a real execution, `audit` is where executions are written down: without it there are none. `price_of`
    is what the model of a run costs, if that is known; `judge_of` is who judges for it, `control_of` what may hold
    it. `ready` is waited for before the first run begins, and `kept`, with the id of a run that is over, before another
    one takes its place.
    """

    listener: BatchListener
    servers: ServerPool
    open_model: Callable[[PlannedRun], Model]
    grant_of: Callable[[Path], Grant | None]
    execution: Execution = AS_CASES_SAY
    ask: AskExecution | None = None
    audit: AuditLog | None = None
    retries: RetryPolicy = DEFAULT_RETRIES
    price_of: Callable[[PlannedRun], Price | None] = lambda _planned: None
    judge_of: Callable[[PlannedRun], RunJudge | None] = lambda _planned: None
    control_of: Callable[[PlannedRun, RunGrading], RunControl | None] = lambda _planned, _grading: None
    ready: Callable[[], Awaitable[None]] = _at_once
    kept: Callable[[str], Awaitable[None]] = _at_once


async def make_run(planned: PlannedRun, surroundings: Surroundings) -> None:
    """Make one run and tell the listener its events and its result. Cancelling the awaiting task stops the run."""
    result = await _result_of(planned, surroundings)
    cost_usd = cost_of(result.trajectory, surroundings.price_of(planned))
    surroundings.listener(RunDone(replace(result, cost_usd=cost_usd)))


async def _result_of(planned: PlannedRun, surroundings: Surroundings) -> RunResult:
    case, settings = planned.case, planned.settings
    if case.skip is not None:
        return result_of(planned, "skipped", Trajectory(planned.run_id), error=case.skip)
    request = RunRequest(case, settings, planned.model, planned.file.hash, planned.fork)
    try:
        model = surroundings.open_model(planned)
        tools, _ = await asyncio.gather(_open_tools(planned, surroundings), model.start())
    except asyncio.CancelledError:
        return result_of(planned, "stopped", fail(request, "stopped", None, _recorder(planned, surroundings)))
    except (ModelError, ToolsError) as error:
        failed = fail(request, "error", str(error), _recorder(planned, surroundings))
        return result_of(planned, "error", failed, error=str(error))
    recorder = _recorder(planned, surroundings)  # the run begins now: its clock has no start-up in it
    judge = surroundings.judge_of(planned)
    grading = RunGrading(planned, tools.call_python, judge)
    trajectory = await run_case(
        request,
        model,
        tools,
        recorder,
        permission=_permission(planned, surroundings),
        audit=_audit(planned, surroundings),
        retries=surroundings.retries,
        judge=judge.judge if judge is not None else None,
        control=surroundings.control_of(planned, grading),
        step_failed=grading.step_failed,
    )
    return await grading.result(trajectory)


def _recorder(planned: PlannedRun, surroundings: Surroundings) -> Recorder:
    def tell(event: Event) -> None:
        surroundings.listener(RunEvent(event))

    return Recorder(planned.run_id, time.monotonic, tell)


def _permission(planned: PlannedRun, surroundings: Surroundings) -> Permission:
    execution = surroundings.execution
    return Permission(execution.all_tools, surroundings.ask, execution.exempt(planned.file))


def _audit(planned: PlannedRun, surroundings: Surroundings) -> Audit | None:
    if surroundings.audit is None:
        return None
    path = str(planned.file.path.absolute())
    return Audit(surroundings.audit, Caller(path, planned.case.id, planned.model, planned.run_id))


async def _open_tools(planned: PlannedRun, surroundings: Surroundings) -> Toolbox:
    path = planned.file.path
    grant = surroundings.grant_of(path)
    wanted = surroundings.execution.wanted
    # Who lets a suite run without trusting it means it to run on mocks.
    execute = grant is not None and (planned.settings.execute if wanted is None else wanted)
    return await surroundings.servers.open_toolbox(planned.suite, planned.case, path, execute=execute, grant=grant)


async def graded(
    planned: PlannedRun, trajectory: Trajectory, call_python: CallPython, judge: RunJudge | None = None
) -> RunResult:
    """What a run came to: its grades, or why it has none. What grading wants to have judged, the judge is asked, and
    nothing else."""
    return await RunGrading(planned, call_python, judge).result(trajectory)


_Graded = TypeVar("_Graded")


class RunGrading:
    """The grading of one run, while it goes on and when it is over: what a check has said is not asked again."""

    def __init__(self, planned: PlannedRun, call_python: CallPython, judge: RunJudge | None) -> None:
        self._planned = planned
        self.call_python = call_python
        self.judge = judge
        self._verdicts: VerdictCache = {}
        self._search_time: SpentTime = {}

    async def result(self, trajectory: Trajectory) -> RunResult:
        """What the run came to."""
        result, judge = await self._result(trajectory), self.judge
        return result if judge is None else replace(result, judgements=judge.judgements, judging=judge.use)

    async def step_failed(self, trajectory: Trajectory, step: int) -> bool:
        """Whether a step failed; raises StepNotJudgedError."""

        def grade(context: CheckContext) -> StepGrade:
            return grade_step(self._planned.suite, self._planned.case, trajectory, step, context)

        graded = await self.attempted(grade, trajectory)
        if isinstance(graded, str):
            raise StepNotJudgedError(f"step {step} cannot be judged: {graded}")
        return graded.status == "failed"

    async def _result(self, trajectory: Trajectory) -> RunResult:
        planned, finish = self._planned, trajectory.finish
        if finish is None or finish.reason in ("error", "timed out"):
            return result_of(planned, "error", trajectory, error=finish.error if finish else "the run never ended")
        if finish.reason == "stopped":
            return result_of(planned, "stopped", trajectory)

        def grade(context: CheckContext) -> tuple[tuple[Grade, ...], Status, tuple[StepGrade, ...]]:
            return grade_run_and_steps(planned.suite, planned.case, trajectory, context=context)

        try:
            graded = await self.attempted(grade, trajectory)
        except asyncio.CancelledError:
            return result_of(planned, "stopped", trajectory)
        if isinstance(graded, str):
            return result_of(planned, "error", trajectory, error=graded)
        grades, status, steps = graded
        return replace(result_of(planned, status, trajectory, grades), steps=steps)

    async def attempted(self, grade: Callable[[CheckContext], _Graded], trajectory: Trajectory) -> _Graded | str:
        """What grading comes to, or why it comes to nothing."""

        async def in_time(ask: Judge | None) -> _Graded:
            context = CheckContext(self.call_python, ask, self._verdicts, self._search_time)
            async with asyncio.timeout(GRADING_TIMEOUT_S):
                if _is_quick(self._planned.case, trajectory):
                    return grade(context)
                return await in_thread(lambda: grade(context))

        try:
            return await (in_time(None) if self.judge is None else judged(in_time, self.judge))
        except TimeoutError:
            return f"grading did not end within {GRADING_TIMEOUT_S:g} s: look at the suite's Python checks and patterns"
        except (CheckError, GradingError, ToolsError) as error:
            return str(error)
        except Exception as error:
            _logger.exception("grading run %s of case %s", self._planned.run_id, self._planned.case.id)
            return f"grading: unexpected {type(error).__name__}: {error}; the log holds the details"


def _is_quick(case: Case, trajectory: Trajectory) -> bool:
    """Whether grading is sure to take less than a thread would cost: few calls, no check of unforeseeable
    work, and none of which a file must be asked what is remembered."""
    return len(trajectory.calls) <= QUICK_CALLS and not any(
        isinstance(check, PythonCheck | Pattern | Similar | Judged) for check in case.written_checks()
    )


def result_of(
    planned: PlannedRun,
    status: Status,
    trajectory: Trajectory,
    grades: tuple[Grade, ...] = (),
    error: str | None = None,
) -> RunResult:
    """What became of a planned run."""
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
    )
