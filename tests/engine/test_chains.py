"""Chains: one request for each step, with its own prompt, mock and message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.making import CALL, finish_of, make
from tests.engine.scripted import Say, ScriptedModel
from workbench.engine.turns import CONTINUE
from workbench.trajectory.trajectory import Trajectory

SEND = ("send", {"to": "Ann"})


def chain(*steps: dict[str, Any], **case: Any) -> dict[str, Any]:
    return {"name": "Chain", "steps": list(steps), **case}


async def test_a_chain_makes_one_request_for_each_step_and_none_after_the_last() -> None:
    model = ScriptedModel([Say(calls=[CALL]), Say(calls=[SEND])])
    made = await make(model, **chain({"user": "Weather, then tell Ann", "tool": "get_weather"}, {"tool": "send"}))
    assert finish_of(made).reason == "steps done"
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool"]
    assert [round_.step.step for round_ in made.trajectory.rounds if round_.step] == [1, 2]
    assert all(call.result is not None for call in made.trajectory.calls)


async def test_a_step_has_its_own_prompt_mock_and_message() -> None:
    model = ScriptedModel([Say(calls=[CALL, CALL]), Say("Fine.")])
    first = {"user": "Weather?", "system": "Be brief.", "tool": "get_weather", "mock_result": "hail in {city}"}
    made = await make(model, **chain(first, {"user": "And now rest.", "system": ""}))
    assert [request.system for request in model.requests] == ["Be brief.", None]
    results = [call.result.content for call in made.trajectory.calls if call.result]
    assert results == ["hail in Oslo", "rain in Oslo"]
    assert model.requests[1].messages[-1].content == "And now rest."


async def test_after_an_answer_without_calls_the_model_is_asked_to_go_on() -> None:
    model = ScriptedModel([Say("Hm."), Say(calls=[SEND])])
    await make(model, **chain({"user": "Weather?", "tool": "get_weather"}, {"tool": "send"}))
    assert [message.content for message in model.requests[1].messages] == ["Weather?", "Hm.", CONTINUE]


async def test_an_answer_that_is_checked_is_asked_for_after_the_last_step() -> None:
    model = ScriptedModel([Say(calls=[CALL]), Say("Rain.")])
    made = await make(model, **chain({"user": "Weather?", "tool": "get_weather"}, response_contains=["rain"]))
    assert (made.trajectory.final_answer, made.trajectory.rounds[1].step) == ("Rain.", None)
    assert finish_of(made).reason == "steps done"


async def test_judging_a_step_takes_nothing_of_the_time_that_the_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    real, passed_s = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real() + passed_s)

    async def an_hour_later(_trajectory: Trajectory, _step: int) -> bool:
        nonlocal passed_s
        passed_s += 3600
        for _ in range(3):
            await asyncio.sleep(0)  # a time limit that went on would end the run now
        return False

    model = ScriptedModel([Say(calls=[CALL]), Say(calls=[SEND])])
    steps = ({"user": "Weather?", "tool": "get_weather"}, {"tool": "send"})
    made = await make(model, step_failed=an_hour_later, **chain(*steps, stop_on_failure=True))
    assert finish_of(made).reason == "steps done"
