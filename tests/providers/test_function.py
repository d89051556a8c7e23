"""A model made from an async function: its requests, its replies, and its event loop."""

from __future__ import annotations

import asyncio
import math
import threading
from contextvars import ContextVar
from datetime import date
from typing import Any

import pytest

from workbench.providers.function import (
    AgentAnswer,
    AgentCall,
    AgentFunction,
    AgentReply,
    AgentRequest,
    AgentRun,
    CallerLoop,
    FunctionModel,
)
from workbench.providers.model import AnswerFinished, ModelError, ModelRequest
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    Message,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)

CONVERSATION = (
    Message("user", "What time is it?"),
    Message("assistant", tool_calls=(ToolCall("call-1", "now"), ToolCall("mine", "now"))),
    Message("tool", "12:00", call_id="call-1"),
    Message("tool", "out of order", call_id="mine", is_error=True),
)
REQUEST = ModelRequest(2, "Be brief.", CONVERSATION, (ToolDefinition("now"),), calls_before=2)


async def events_of(function: AgentFunction) -> list[ModelEvent | AnswerFinished]:
    model = FunctionModel("mine", function, case="time", run="run-7", loop=CallerLoop())
    async with model.turn():
        return [event async for event in model.stream(REQUEST)]


async def replied(reply: Any) -> list[ModelEvent | AnswerFinished]:
    async def agent(_request: AgentRequest) -> AgentReply:
        answer: AgentReply = reply
        return answer

    return await events_of(agent)


async def test_an_agent_is_asked_with_the_conversation_and_the_tools() -> None:
    asked: list[AgentRequest] = []

    async def agent(request: AgentRequest) -> str:
        asked.append(request)
        return "Noon."

    assert await events_of(agent) == [TextDelta(2, "Noon."), AnswerFinished("answered")]
    assert asked == [AgentRequest("Be brief.", CONVERSATION, (ToolDefinition("now"),), 2, "time", "run-7")]
    assert asked[0].prompt == "What time is it?"
    assert [result.content for result in asked[0].results] == ["12:00", "out of order"]
    assert AgentRequest(None, (), (), 1, "c", "r").prompt == ""


async def test_calls_become_events_with_ids_of_their_own() -> None:
    place: Any = ("Oslo", 1)
    given = [ToolCall("", "now", {"place": place}), ToolCall("mine", "now"), ToolCall("new", "now", raw="{")]
    *said, end = await replied(AgentAnswer("Wait.", given, reasoning="Two clocks.", usage=Usage(3, 4)))
    assert said[:2] == [ReasoningDelta(2, "Two clocks."), TextDelta(2, "Wait.")]
    assert [event for event in said if isinstance(event, CallStarted)] == [
        CallStarted(2, "call-3", "now"),
        CallStarted(2, "call-4", "now"),  # `mine` is the id of an earlier call
        CallStarted(2, "new", "now"),
    ]
    finished = [event for event in said if isinstance(event, CallFinished)]
    assert finished[0] == CallFinished("call-3", {"place": ["Oslo", 1]})
    assert finished[2].raw == "{"
    assert end == AnswerFinished("tool calls", Usage(3, 4))
    assert await replied(ToolCall("", "now")) == await replied([AgentCall("now")])


NESTED: list[Any] = []
NESTED.append(NESTED)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (None, "must answer with a text, a call, a list of calls, an AgentAnswer or an AgentRun, not None"),
        (AgentCall("now", {}, "noon"), r"the call of now has a result: return AgentRun\(calls="),
        (AgentRun(calls="now"), "the calls of an AgentRun must be a list, not a value of type str"),  # type: ignore[arg-type]
        (AgentRun(calls=[{"tool": "now"}]), "workbench.AgentCall.* not a value of type dict"),  # type: ignore[list-item]
        (AgentRun(calls=[AgentCall("now", ["x"])]), "the arguments of now must be an object"),  # type: ignore[arg-type]
        (AgentRun(calls=[AgentCall("now", result={1, 2})]), "a result cannot be written as JSON"),
        (AgentRun(answer={"city": "Oslo"}), "the answer of an AgentRun must be a text, .*write it as JSON"),  # type: ignore[arg-type]
        (AgentRun(calls=[AgentCall(None)]), "the tool of a call must be its name, not None"),  # type: ignore[arg-type]
        (AgentRun(calls=[AgentCall("now", {1: 2})]), "a call of now holds an object with a value of type int"),  # type: ignore[dict-item]
        (AgentRun(calls=[AgentCall("now", {"n": 10**5000})]), "'n' of now has more than 4300 digits"),
        (AgentRun(calls=[AgentCall("now", {"n": NESTED})]), "'n' of now is nested too deeply, or holds itself"),
        (AgentRun(calls=[AgentCall("now", id=5)]), "the id of a call of now must be a text"),  # type: ignore[arg-type]
        (AgentRun(usage={"input_tokens": 1}), r"the usage of an AgentRun must be a workbench.Usage\("),  # type: ignore[arg-type]
        (
            AgentRun(usage=Usage(-5)),
            "input_tokens of the usage of an AgentRun must be a whole number of at least 0, not -5",
        ),
        (AgentRun(cost_usd=math.nan), "cost_usd of an AgentRun must be a number of at least 0, not nan"),
        (AgentRun(latency_ms="5"), "latency_ms of an AgentRun must be a number of at least 0, not '5'"),  # type: ignore[arg-type]
        (AgentRun(error=""), "the error of an AgentRun must be a text or an exception"),
        (AgentRun(calls=[AgentAnswer(calls=None)]), "the calls of an AgentAnswer must be a list, not None"),  # type: ignore[arg-type]
        (AgentAnswer(5), "the text of an AgentAnswer must be a text, not a value of type int"),  # type: ignore[arg-type]
        (AgentAnswer(reasoning=5), "the reasoning of an AgentAnswer must be a text"),  # type: ignore[arg-type]
        (AgentAnswer(stop_reason="stop"), "stop_reason of an AgentAnswer must be one of 'answered', .*not 'stop'"),  # type: ignore[arg-type]
        (AgentAnswer(usage=Usage(1.5)), "input_tokens of the usage of an AgentAnswer must be a whole number"),  # type: ignore[arg-type]
        (AgentAnswer(cost_usd=-1), "cost_usd of an AgentAnswer must be a number of at least 0, not -1"),
        (["now"], "calls are made with workbench.call"),
        (ToolCall("", "now", {"day": date(2026, 1, 1)}), "the argument 'day' of now holds a value of type date"),  # type: ignore[dict-item]
        (ToolCall("", "now", {"days": {1: 2}}), "an object with a value of type int as a key"),  # type: ignore[dict-item]
    ],
)
async def test_a_reply_that_is_none_is_an_error_that_says_so(reply: object, why: str) -> None:
    with pytest.raises(ModelError, match=f"^the agent mine raised TypeError: .*{why}"):
        await replied(reply)


async def test_what_an_agent_raises_ends_its_run_and_its_own_model_errors_are_passed_on() -> None:
    async def broken(request: AgentRequest) -> str:
        raise KeyError(request.case)

    async def busy(request: AgentRequest) -> str:
        raise ModelError("busy", retryable=True)

    with pytest.raises(ModelError, match=r"^the agent mine raised KeyError: 'time'$"):
        await events_of(broken)
    with pytest.raises(ModelError, match=r"^busy$") as raised:
        await events_of(busy)
    assert raised.value.retryable


async def test_a_plain_function_runs_in_a_thread_with_the_context_of_the_caller() -> None:
    """Its loop stays free: a function may wait for something that happens there. A coroutine it returns is awaited."""
    who, home = ContextVar("who", default="nobody"), asyncio.get_running_loop()
    who.set("caller")

    async def here() -> threading.Thread:
        return threading.current_thread()

    def plain(request: AgentRequest) -> str:
        assert asyncio.run_coroutine_threadsafe(here(), home).result() is not threading.current_thread()
        return f"{who.get()} of {request.case}"

    class Callable:
        async def __call__(self, request: AgentRequest) -> str:
            return str(threading.current_thread() is await here())

    assert await events_of(plain) == [TextDelta(2, "caller of time"), AnswerFinished("answered")]
    for waited in (Callable(), lambda request: Callable()(request)):
        assert await events_of(waited) == [TextDelta(2, "True"), AnswerFinished("answered")]


async def test_an_agent_runs_on_its_callers_loop_and_is_cancelled_there() -> None:
    who = ContextVar("who", default="nobody")
    who.set("caller")
    seen: list[object] = []
    began = asyncio.Event()

    async def slow(request: AgentRequest) -> str:
        seen.extend([threading.current_thread(), who.get()])
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")
        return ""

    home, loop = asyncio.get_running_loop(), CallerLoop()

    async def ask_elsewhere() -> None:
        model = FunctionModel("mine", slow, case="time", run="run-7", loop=loop)

        async def first() -> ModelEvent | AnswerFinished:
            return await anext(model.stream(REQUEST))

        asking = asyncio.create_task(first())
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(began.wait(), home))
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()

    await asyncio.to_thread(asyncio.run, ask_elsewhere())
    await loop.wait_for_cancelled()
    assert seen == [threading.current_thread(), "caller", "cleaned up"]
