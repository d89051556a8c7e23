"""One run from `RunStarted` to `RunFinished`, around its agent loop.

Every run ends in exactly one `RunFinished`: the model's answer, a limit, a stop, or an infrastructure error.
"""

from __future__ import annotations

import asyncio
import logging

from workbench.dataclasses import dataclass
from workbench.engine.agent_loop import (
    READ_ONLY,
    AgentLoop,
    Audit,
    Executor,
    Permission,
    StepFailed,
    StepNotJudgedError,
)
from workbench.engine.checkpoint import Checkpoint, RunControl
from workbench.engine.fork import Fork
from workbench.engine.recorder import Recorder
from workbench.engine.retries import DEFAULT_RETRIES, RetryPolicy
from workbench.engine.time_limit import TimeLimit
from workbench.engine.turns import opening_messages
from workbench.providers.model import Model, ModelError, TooMuchError
from workbench.suite.model import Case
from workbench.suite.settings import CaseSettings
from workbench.tools.answer import ServerError, ToolsError
from workbench.tools.mocks import AskJudge
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import Message, RunFinished, RunStarted, ServerOutput, ToolDefinition
from workbench.trajectory.trajectory import Trajectory, TrajectoryError

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunRequest:
    """One run to make: a case under its settings on a model. With `fork`, the run starts as another run did."""

    case: Case
    settings: CaseSettings
    model: str
    suite_hash: str
    fork: Fork | None = None


async def run_case(
    request: RunRequest,
    model: Model,
    tools: Toolbox,
    recorder: Recorder,
    *,
    permission: Permission = READ_ONLY,
    audit: Audit | None = None,
    retries: RetryPolicy = DEFAULT_RETRIES,
    judge: AskJudge | None = None,
    control: RunControl | None = None,
    step_failed: StepFailed | None = None,
) -> Trajectory:
    """Make one run and return its trajectory.

    Without `audit`, no tool is executed for real. `judge` is asked where the condition of a mock is judged. `control`
    may hold the run and change it. `step_failed` judges the steps of a chain that stops on failure.

    Cancelling the task stops the run, which then ends with the reason `stopped`. Infrastructure errors end the run with
    `error` or `timed out` and are not raised.
    """
    limits = request.settings.limits
    notices = (*model.notices, *tools.notices)
    start(request, tools.definitions, recorder, model.seed, notices, tools.server_outputs)
    try:
        async with TimeLimit(limits.timeout_s) as limit:
            executor = Executor(tools, recorder, permission, limit, audit, judge)
            loop = AgentLoop(
                request.case,
                request.settings,
                model=model,
                executor=executor,
                recorder=recorder,
                retries=retries,
                limit=limit,
                checkpoint=Checkpoint(control, recorder, limit),
                step_failed=step_failed or _no_step_fails,
                fork=request.fork,
            )
            finish = await loop.run()
    except TimeoutError:
        finish = RunFinished(
            "timed out", f"not finished within {limits.timeout_s:g} s: raise limits.timeout_s to wait longer"
        )
    except asyncio.CancelledError:
        finish = RunFinished("stopped")
    except TooMuchError as error:
        finish = RunFinished("sent too much", str(error))
    except ServerError as error:
        finish = RunFinished("error", str(error), error.output)
    except (ModelError, ToolsError, StepNotJudgedError) as error:
        finish = RunFinished("error", str(error))
    except TrajectoryError as error:
        finish = RunFinished("error", f"the answer of {request.model} is invalid: {error}")
    except Exception as error:
        _logger.exception("run of case %s on %s", request.case.id, request.model)
        finish = RunFinished("error", f"unexpected {type(error).__name__}: {error}; the log holds the details")
    recorder.emit(finish)
    return recorder.trajectory


def start(
    request: RunRequest,
    definitions: tuple[ToolDefinition, ...],
    recorder: Recorder,
    seed: int | None = None,
    notices: tuple[str, ...] = (),
    server_outputs: tuple[ServerOutput, ...] = (),
) -> None:
    """Emit `RunStarted`, which holds the opening of the conversation."""
    system, messages = _opening(request)
    recorder.emit(
        RunStarted(
            suite_hash=request.suite_hash,
            case_id=request.case.id,
            case_name=request.case.name,
            model=request.model,
            system=system or None,
            messages=messages,
            tools=definitions,
            seed=seed,
            notices=notices,
            server_outputs=server_outputs,
        )
    )


def _opening(request: RunRequest) -> tuple[str | None, tuple[Message, ...]]:
    """Returns the system prompt and the opening messages; a fork has those of the run it forks."""
    origin = request.fork.origin.start if request.fork is not None else None
    if request.fork is None or origin is None:
        return request.settings.system, opening_messages(request.case)
    return request.fork.system if request.fork.system is not None else origin.system, origin.messages


def fail(request: RunRequest, finish: RunFinished, recorder: Recorder) -> Trajectory:
    """Record a run that could not start: no tools, no model, or stopped before its turn. Returns its trajectory."""
    start(request, (), recorder)
    recorder.emit(finish)
    return recorder.trajectory


async def _no_step_fails(trajectory: Trajectory, step: int) -> bool:
    """The default of `run_case`, where steps are not judged."""
    return False
