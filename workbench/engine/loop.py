"""The agent loop of one run: ask the model, answer its tool calls, ask again, until it answers in words.

Whatever happens ends in exactly one `RunFinished`: the model's answer, a limit, a stop, or an infrastructure error.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Literal

from workbench.engine.asking import ask
from workbench.engine.conversation import answer_message, opening_messages, result_messages
from workbench.engine.executing import Audit, Executor
from workbench.engine.permission import READ_ONLY, Permission
from workbench.engine.recorder import Recorder
from workbench.engine.retries import DEFAULT_RETRIES, RetryPolicy
from workbench.engine.time_limit import TimeLimit
from workbench.providers.model import Model, ModelError, ModelRequest
from workbench.suite.model import Case
from workbench.suite.settings import CaseSettings
from workbench.tools.errors import ToolsError
from workbench.tools.mocks import AskJudge
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import RunFinished, RunStarted
from workbench.trajectory.messages import Message, ToolDefinition
from workbench.trajectory.trajectory import Round, Trajectory, TrajectoryError

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunRequest:
    """One run to be made: which case, under which settings, on which model."""

    case: Case
    settings: CaseSettings
    model: str
    suite_hash: str


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
) -> Trajectory:
    """Make one run and return its trajectory. Without an `audit` no tool is really executed. `judge` is asked where a
    mock's condition is judged.

    Cancelling the task that awaits this stops the run: it then ends with the reason `stopped`. Infrastructure errors
    end it with `error` or `timed out`; none is raised.
    """
    limits = request.settings.limits
    start(request, tools.definitions, recorder, seed=model.seed, notices=(*model.notices, *tools.notices))
    try:
        async with TimeLimit(limits.timeout_s) as limit:
            executor = Executor(tools, recorder, permission, limit, audit, judge)
            finish = await _converse(request, model, executor, recorder, retries, limit)
    except TimeoutError:
        finish = RunFinished(
            "timed out", f"no end within {limits.timeout_s:g} s: raise limits.timeout_s to wait longer"
        )
    except asyncio.CancelledError:
        finish = RunFinished("stopped")
    except (ModelError, ToolsError) as error:
        finish = RunFinished("error", str(error))
    except TrajectoryError as error:
        finish = RunFinished("error", f"the answer of {request.model} makes no sense: {error}")
    except Exception as error:
        _logger.exception("run of case %s on %s", request.case.id, request.model)
        finish = RunFinished("error", f"unexpected {type(error).__name__}: {error}; the log holds the details")
    recorder.emit(finish)
    return recorder.trajectory


def start(
    request: RunRequest,
    definitions: tuple[ToolDefinition, ...],
    recorder: Recorder,
    *,
    seed: int | None = None,
    notices: tuple[str, ...] = (),
) -> None:
    """Say that a run begins, and how its conversation stands."""
    recorder.emit(
        RunStarted(
            suite_hash=request.suite_hash,
            case_id=request.case.id,
            case_name=request.case.name,
            model=request.model,
            system=request.settings.system or None,
            messages=opening_messages(request.case),
            tools=definitions,
            seed=seed,
            notices=notices,
        )
    )


def fail(request: RunRequest, reason: Literal["stopped", "error"], error: str | None, recorder: Recorder) -> Trajectory:
    """A run that could not even begin: no tools, no model, or stopped before its turn."""
    start(request, (), recorder)
    recorder.emit(RunFinished(reason, error))
    return recorder.trajectory


async def _converse(
    request: RunRequest,
    model: Model,
    executor: Executor,
    recorder: Recorder,
    retries: RetryPolicy,
    limit: TimeLimit,
) -> RunFinished:
    system = request.settings.system or None
    messages = opening_messages(request.case)
    calls_before = 0
    for round_number in range(1, request.settings.limits.max_rounds + 1):
        asked = ModelRequest(round_number, system, messages, executor.definitions, calls_before)
        answer = await ask(model, asked, recorder, retries, limit)
        if answer.stop_reason == "refused":
            return RunFinished("refused")
        if answer.stop_reason == "truncated":
            return RunFinished("truncated")
        if not answer.calls:
            return RunFinished("answered")
        if round_number == request.settings.limits.max_rounds:
            break
        for record in answer.calls:
            await executor.answer(record.call)
        calls_before += len(answer.calls)
        messages = _grown(messages, recorder.trajectory.rounds[-1])
    return RunFinished("rounds exhausted")


def _grown(messages: tuple[Message, ...], done: Round) -> tuple[Message, ...]:
    return (*messages, answer_message(done), *result_messages(done))
