"""Forks: the beginning of another run told again without asking anybody, and a run of one's own from there."""

from __future__ import annotations

import pytest

from tests.engine.making import CALL, Made, make
from tests.engine.scripted import Say, ScriptedModel
from workbench.engine.checkpoint import EditResult
from workbench.engine.fork import Fork, ForkPoint, fork_refusal
from workbench.trajectory.fold import fold

SEND = ("send", {"to": "Ann"})


async def made_before() -> Made:
    return await make(ScriptedModel([Say("Looking.", calls=[CALL, SEND]), Say("Rain.")]))


async def test_a_fork_before_a_request_asks_only_from_there_on() -> None:
    before = await made_before()
    model = ScriptedModel([Say("Sun.")])
    made = await make(model, fork=Fork(before.trajectory, ForkPoint(2)))
    (request,) = model.requests
    assert (request.round, request.calls_before) == (2, 2)
    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "tool"]
    assert [round_.replayed for round_ in made.trajectory.rounds] == [True, False]
    assert made.trajectory.final_answer == "Sun."
    assert {call.result.source for call in made.trajectory.calls if call.result} == {"replayed"}
    assert fold(made.events) == made.trajectory


async def test_a_fork_after_a_result_answers_the_other_calls_of_the_round() -> None:
    before = await made_before()
    model = ScriptedModel([Say("Sun.")])
    fork = Fork(before.trajectory, ForkPoint(1, answered=1), system="Be brief.", result=EditResult("sun"))
    made = await make(model, fork=fork)
    first, second = made.trajectory.calls
    assert first.result is not None
    assert first.unedited is not None
    assert second.result is not None
    assert (first.unedited.content, first.result.content, second.result.source) == ("rain in Oslo", "sun", "default")
    (request,) = model.requests
    assert (request.system, request.messages[2].content) == ("Be brief.", "sun")
    assert made.trajectory.start is not None
    assert made.trajectory.start.system == "Be brief."


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (ForkPoint(4), "the run has no whole answer in round 3"),
        (ForkPoint(3), None),
        (ForkPoint(2, answered=1), "round 2 has 0 calls"),
        (ForkPoint(1, answered=2), None),
    ],
)
async def test_a_fork_needs_a_point_that_the_run_has(at: ForkPoint, why: str | None) -> None:
    assert fork_refusal(Fork((await made_before()).trajectory, at)) == why
