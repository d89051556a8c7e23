"""Sends one model request of a run: waits for the endpoint's turn, streams the answer, and retries.

Only the successful attempt counts as the model's latency, without the time for which it waited at the endpoint for
other requests. Turns and waits count neither as latency nor towards the run's time limit.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing

from workbench.engine.answer_size import AnswerSize
from workbench.engine.arguments import usable
from workbench.engine.recorder import Recorder
from workbench.engine.retries import RetryPolicy
from workbench.engine.time_limit import TimeLimit
from workbench.providers.model import FIRST_TOKENS, AnswerFinished, Model, ModelError, ModelRequest, TooMuchError
from workbench.trajectory.events import (
    CallFinished,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    RetryScheduled,
)
from workbench.trajectory.trajectory import Round


async def ask(model: Model, request: ModelRequest, recorder: Recorder, retries: RetryPolicy, limit: TimeLimit) -> Round:
    """Send a request, retrying as the policy allows, and return the complete answer.

    Raises ModelError when no permitted attempt succeeds, and TooMuchError.
    """
    attempt = 1
    while True:
        try:
            async with AsyncExitStack() as held:
                async with limit.suspended():
                    await held.enter_async_context(model.turn())
                return await _ask_once(model, request, recorder)
        except TooMuchError:
            raise
        except ModelError as error:
            wait_s = retries.wait_s(attempt, error.retry_after_s) if error.retryable else None
            if wait_s is None:
                if attempt == 1:
                    raise
                raise ModelError(f"{error}; tried {attempt} times") from error
            attempt += 1
            recorder.emit(RetryScheduled(request.round, attempt, round(wait_s * 1000, 3), str(error)))
            async with limit.suspended():
                await retries.sleep(wait_s)


async def _ask_once(model: Model, request: ModelRequest, recorder: Recorder) -> Round:
    recorder.emit(RequestStarted(request.round))
    began = recorder.clock()
    first_token_ms: float | None = None
    end: AnswerFinished | None = None
    size = AnswerSize()
    try:
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, AnswerFinished):
                    end = event
                    break
                size.add(event)
                if first_token_ms is None and isinstance(event, FIRST_TOKENS):
                    first_token_ms = recorder.ms_since(began)
                recorder.emit(usable(event) if isinstance(event, CallFinished) else event)
        if end is None:
            raise ModelError(f"the answer of {model.name} broke off before its end")
    except ModelError as error:
        recorder.emit(RequestFailed(request.round, str(error)))
        raise
    latency_ms = recorder.ms_since(began)
    recorder.emit(
        ResponseFinished(
            request.round,
            end.stop_reason,
            end.usage,
            _without(end.waited_ms, first_token_ms),
            round(max(latency_ms - end.waited_ms, 0.0), 3),
            end.provider_state,
            end.deviations,
            end.waited_ms,
        )
    )
    return recorder.last_round


def _without(waited_ms: float, first_token_ms: float | None) -> float | None:
    return None if first_token_ms is None else round(max(first_token_ms - waited_ms, 0.0), 3)
