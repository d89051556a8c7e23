"""The agent loop of one run: ask the model, answer its tool calls, ask again, until it answers in words.

Whatever happens ends in exactly one `RunFinished`: the model's answer, a limit, a stop, or an infrastructure error.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal

from workbench.engine.arguments import usable
from workbench.engine.conversation import answer_message, opening_messages, result_messages
from workbench.engine.recorder import Recorder
from workbench.providers.model import AnswerFinished, Model, ModelError, ModelRequest
from workbench.suite.model import Case
from workbench.suite.settings import CaseSettings
from workbench.tools.errors import ToolsError
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    ExecutionStarted,
    ReasoningDelta,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    TextDelta,
)
from workbench.trajectory.messages import Message, ToolCall, ToolDefinition
from workbench.trajectory.trajectory import Round, Trajectory, TrajectoryError

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunRequest:
    """One run to be made: which case, under which settings, on which model."""

    case: Case
    settings: CaseSettings
    model: str
    suite_hash: str


async def run_case(request: RunRequest, model: Model, tools: Toolbox, recorder: Recorder) -> Trajectory:
    """Make one run and return its trajectory.

    Cancelling the task that awaits this stops the run: it then ends with the reason `stopped`. Infrastructure errors
    end it with `error` or `timed out`; none is raised.
    """
    limits = request.settings.limits
    start(request, tools.definitions, recorder)
    try:
        async with asyncio.timeout(limits.timeout_s):
            finish = await _converse(request, model, tools, recorder)
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


def start(request: RunRequest, definitions: tuple[ToolDefinition, ...], recorder: Recorder) -> None:
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
        )
    )


def fail(request: RunRequest, reason: Literal["stopped", "error"], error: str | None, recorder: Recorder) -> Trajectory:
    """A run that could not even begin: no tools, no model, or stopped before its turn."""
    start(request, (), recorder)
    recorder.emit(RunFinished(reason, error))
    return recorder.trajectory


async def _converse(request: RunRequest, model: Model, tools: Toolbox, recorder: Recorder) -> RunFinished:
    system = request.settings.system or None
    messages = opening_messages(request.case)
    calls_before = 0
    for round_number in range(1, request.settings.limits.max_rounds + 1):
        answer = await _ask(
            model,
            ModelRequest(round_number, system, messages, tools.definitions, calls_before=calls_before),
            recorder,
        )
        if answer.stop_reason == "refused":
            return RunFinished("refused")
        if answer.stop_reason == "truncated":
            return RunFinished("truncated")
        if not answer.calls:
            return RunFinished("answered")
        if round_number == request.settings.limits.max_rounds:
            break
        for record in answer.calls:
            await _answer_call(record.call, tools, recorder)
        calls_before += len(answer.calls)
        messages = _grown(messages, recorder.trajectory.rounds[-1])
    return RunFinished("rounds exhausted")


def _grown(messages: tuple[Message, ...], done: Round) -> tuple[Message, ...]:
    return (*messages, answer_message(done), *result_messages(done))


async def _ask(model: Model, request: ModelRequest, recorder: Recorder) -> Round:
    recorder.emit(RequestStarted(request.round))
    began = recorder.clock()
    first_token_ms: float | None = None
    end: AnswerFinished | None = None
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AnswerFinished):
                    end = event
                    break
                if first_token_ms is None and isinstance(event, TextDelta | ReasoningDelta | CallStarted):
                    first_token_ms = _ms_since(began, recorder)
                recorder.emit(usable(event) if isinstance(event, CallFinished) else event)
        if end is None:
            raise ModelError(f"the answer of {model.name} broke off before its end")
    except ModelError as error:
        recorder.emit(RequestFailed(request.round, str(error)))
        raise
    recorder.emit(
        ResponseFinished(request.round, end.stop_reason, end.usage, first_token_ms, _ms_since(began, recorder))
    )
    return recorder.trajectory.rounds[-1]


async def _answer_call(call: ToolCall, tools: Toolbox, recorder: Recorder) -> None:
    planned = await tools.plan(call)
    if planned.source == "server" and planned.server is not None:
        recorder.emit(ExecutionStarted(call.id, planned.server))
    began = recorder.clock()
    answer = await planned.run()
    recorder.emit(ResultReceived(call.id, answer.content, answer.is_error, planned.source, _ms_since(began, recorder)))


def _ms_since(began: float, recorder: Recorder) -> float:
    return round((recorder.clock() - began) * 1000, 3)
