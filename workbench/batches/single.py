"""One planned run from beginning to grade: model, tools, agent loop, grading."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.batches.cost import cost_of
from workbench.batches.events import BatchListener, RunDone, RunEvent
from workbench.batches.judging import RunJudge, judged
from workbench.batches.plan import PlannedRun
from workbench.checks.errors import CheckError
from workbench.checks.evaluate import CallPython, Judge, Outside, Said
from workbench.config.models import Price
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.engine.checkpoint import Checkpoint
from workbench.engine.executing import Audit
from workbench.engine.loop import RunRequest, fail, run_case
from workbench.engine.permission import AskExecution, Permission
from workbench.engine.recorder import Recorder
from workbench.engine.retries import DEFAULT_RETRIES, RetryPolicy
from workbench.grading.errors import GradingError
from workbench.grading.grade import Grade, RunResult, Status
from workbench.grading.run import grade_run
from workbench.providers.model import Model, ModelError
from workbench.suite.checks import Judged, Pattern, PythonCheck, Similar
from workbench.suite.model import Case
from workbench.suite.unbuilt import unbuilt_parts
from workbench.tools.audit import AuditLog, Caller
from workbench.tools.errors import ToolsError
from workbench.tools.pool import ServerPool
from workbench.tools.python_reference import in_thread
from workbench.tools.toolbox import Toolbox
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
    exempt: Callable[[Path], bool] = lambda _path: False
    """Suites whose servers are known to do no harm: the bundled ones."""


AS_CASES_SAY = Execution()


@dataclass(frozen=True)
class Surroundings:
    """What all runs of a batch share: models, servers, trust, and who listens.

    `open_model` raises ModelError, `ask` asks a person about a real execution, `audit` is where executions are written
    down: without it there are none. `price_of` is what the model of a run costs, if that is known; `judge_of` is who
    judges for it, `checkpoint_of` what may hold it.
    """

    listener: BatchListener
    servers: ServerPool
    open_model: Callable[[PlannedRun], Model]
    trusted: Callable[[Path], bool]
    execution: Execution = AS_CASES_SAY
    ask: AskExecution | None = None
    audit: AuditLog | None = None
    secrets: Secrets = NO_SECRETS
    retries: RetryPolicy = DEFAULT_RETRIES
    price_of: Callable[[PlannedRun], Price | None] = lambda _planned: None
    judge_of: Callable[[PlannedRun], RunJudge | None] = lambda _planned: None
    checkpoint_of: Callable[[PlannedRun], Checkpoint | None] = lambda _planned: None


async def make_run(planned: PlannedRun, surroundings: Surroundings) -> None:
    """Make one run and tell the listener its events and its result. Cancelling the awaiting task stops the run."""
    result = await _result_of(planned, surroundings)
    cost_usd = cost_of(result.trajectory, surroundings.price_of(planned))
    surroundings.listener(RunDone(replace(result, cost_usd=cost_usd)))


async def _result_of(planned: PlannedRun, surroundings: Surroundings) -> RunResult:
    case, settings = planned.case, planned.settings
    if case.skip is not None:
        return result_of(planned, "skipped", Trajectory(planned.run_id), error=case.skip)
    recorder = Recorder(
        planned.run_id, time.monotonic, lambda event: surroundings.listener(RunEvent(event)), surroundings.secrets
    )
    request = RunRequest(case, settings, planned.model, planned.file.hash, planned.fork)
    try:
        _refuse_unbuilt(planned)
        model = surroundings.open_model(planned)
        tools = await _open_tools(planned, surroundings)
    except asyncio.CancelledError:
        return result_of(planned, "stopped", fail(request, "stopped", None, recorder))
    except (ModelError, ToolsError, RunRefusedError) as error:
        return result_of(planned, "error", fail(request, "error", str(error), recorder), error=str(error))
    judge = surroundings.judge_of(planned)
    trajectory = await run_case(
        request,
        model,
        tools,
        recorder,
        permission=_permission(planned, surroundings),
        audit=_audit(planned, surroundings),
        retries=surroundings.retries,
        judge=judge.judge if judge is not None else None,
        checkpoint=surroundings.checkpoint_of(planned),
    )
    return await graded(planned, trajectory, tools.call_python, judge)


class RunRefusedError(Exception):
    """A run that must not begin; the message says why and what to do."""


def _refuse_unbuilt(planned: PlannedRun) -> None:
    parts = unbuilt_parts(planned.case)
    if parts:
        raise RunRefusedError(f"this version cannot run {', '.join(parts)} yet")


def _permission(planned: PlannedRun, surroundings: Surroundings) -> Permission:
    execution = surroundings.execution
    return Permission(execution.all_tools, surroundings.ask, execution.exempt(planned.file.path))


def _audit(planned: PlannedRun, surroundings: Surroundings) -> Audit | None:
    if surroundings.audit is None:
        return None
    path = str(planned.file.path.absolute())
    return Audit(surroundings.audit, Caller(path, planned.case.id, planned.model, planned.run_id))


async def _open_tools(planned: PlannedRun, surroundings: Surroundings) -> Toolbox:
    path = planned.file.path
    trusted = surroundings.trusted(path)
    wanted = surroundings.execution.wanted
    # Who lets a suite run without trusting it means it to run on mocks.
    execute = trusted and (planned.settings.execute if wanted is None else wanted)
    return await surroundings.servers.open_toolbox(planned.suite, planned.case, path, execute=execute, trusted=trusted)


async def graded(
    planned: PlannedRun, trajectory: Trajectory, call_python: CallPython, judge: RunJudge | None = None
) -> RunResult:
    """What a run came to: its grades, or why it has none. What grading wants to have judged, the judge is asked, and
    nothing else."""
    result = await _graded(planned, trajectory, call_python, judge)
    return result if judge is None else replace(result, judgements=judge.judgements, judging=judge.use)


async def _graded(
    planned: PlannedRun, trajectory: Trajectory, call_python: CallPython, judge: RunJudge | None
) -> RunResult:
    finish = trajectory.finish
    if finish is None or finish.reason in ("error", "timed out"):
        return result_of(planned, "error", trajectory, error=finish.error if finish else "the run never ended")
    if finish.reason == "stopped":
        return result_of(planned, "stopped", trajectory)

    said: Said = {}

    async def grade_in_time(ask: Judge | None) -> tuple[tuple[Grade, ...], Status]:
        outside = Outside(call_python, ask, said)

        def grade() -> tuple[tuple[Grade, ...], Status]:
            return grade_run(planned.suite, planned.case, trajectory, outside=outside)

        async with asyncio.timeout(GRADING_TIMEOUT_S):
            return grade() if _is_quick(planned.case, trajectory) else await in_thread(grade)

    try:
        grades, status = await (grade_in_time(None) if judge is None else judged(grade_in_time, judge))
    except asyncio.CancelledError:
        return result_of(planned, "stopped", trajectory)
    except TimeoutError:
        slow = f"grading did not end within {GRADING_TIMEOUT_S:g} s: look at the suite's Python checks and patterns"
        return result_of(planned, "error", trajectory, error=slow)
    except (CheckError, GradingError, ToolsError) as error:
        return result_of(planned, "error", trajectory, error=str(error))
    except Exception as error:
        _logger.exception("grading run %s of case %s", planned.run_id, planned.case.id)
        unexpected = f"grading: unexpected {type(error).__name__}: {error}; the log holds the details"
        return result_of(planned, "error", trajectory, error=unexpected)
    return result_of(planned, status, trajectory, grades)


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
