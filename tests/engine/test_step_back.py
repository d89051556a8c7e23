"""One step back: a fork that is held at the earlier hold, in the state of that time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.engine.making import CALL, Made, make
from tests.engine.scripted import BreakOff, Cut, Fail, Hang, Say, ScriptedModel
from tests.engine.test_stepping import Scripted
from workbench.engine.checkpoint import (
    AddMessage,
    AnswerCall,
    Command,
    Continue,
    EditArguments,
    EditResult,
    Regenerate,
    SkipCall,
)
from workbench.engine.fork import past_holds
from workbench.trajectory.events import Event, Forked, Paused
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Round, Trajectory

SEND = ("send", {"to": "Ann"})
ANSWERS = [Say("Looking.", calls=[CALL, SEND]), Say(calls=[CALL]), Say("Rain.")]
STEPS = [{"user": "Weather?", "tool": "get_weather"}, {"tool": "send"}, {"user": "Thanks."}]

PERSONS: dict[str, dict[str, list[Command]]] = {
    "changes nothing": {},
    "changes calls": {
        "call_1": [EditArguments({"city": "Bergen"}), Continue(), AnswerCall("sent")],
        "result_1": [EditResult("hail", is_error=True), Continue(), Continue()],
        "call_2": [SkipCall()],
    },
    "says something": {
        "request_1": [AddMessage("In Celsius."), Continue()],
        "call_1": [AddMessage("And tomorrow?"), Continue(), Continue()],
        "result_1": [AddMessage("Please."), Continue()],
    },
    "asks again": {"result_1": [AddMessage("Again."), Regenerate()]},
}


def seen(trajectory: Trajectory) -> object:
    """Return the partial run as the model and the user who edits it see it."""

    def of(each: Round) -> object:
        calls = [
            (
                call.call,
                call.edited,
                *(
                    (result.content, result.is_error) if result is not None else None
                    for result in (call.result, call.unedited)
                ),
            )
            for call in each.calls
        ]
        return each.number, each.step, each.text, each.added, calls, [of(former) for former in each.superseded]

    return [of(each) for each in trajectory.rounds], trajectory.added


def holds(events: list[Event]) -> list[int]:
    return [index for index, each in enumerate(events) if isinstance(each.payload, Paused)]


def place(event: Event) -> object:
    assert isinstance(event.payload, Paused)
    return event.payload.at, event.payload.round, event.payload.call_id


async def back_to(
    before: Made, hold: int, answers: Sequence[Say | Fail | Hang | BreakOff | Cut], **case: Any
) -> tuple[Made, ScriptedModel]:
    model = ScriptedModel(answers)
    return await make(model, control=Scripted(), fork=past_holds(before.events)[hold].fork(), **case), model


@pytest.mark.parametrize("case", [{}, {"steps": STEPS, "name": "Chain"}], ids=["a case", "a chain"])
@pytest.mark.parametrize("does", PERSONS.values(), ids=PERSONS)
async def test_it_is_held_where_it_was_held_and_all_before_is_as_it_was(
    does: dict[str, list[Command]], case: dict[str, Any]
) -> None:
    again = any(isinstance(command, Regenerate) for commands in does.values() for command in commands)
    asked = ScriptedModel([Say("Looking.", calls=[SEND, CALL])] * again + ANSWERS)
    before = await make(asked, control=Scripted(**{at: list(commands) for at, commands in does.items()}), **case)
    for number, index in enumerate(holds(before.events)):
        then = fold(before.events[:index])
        asked_before = sum(1 + len(each.superseded) for each in then.rounds)
        made, model = await back_to(before, number, asked.answers[asked_before:], **case)
        first = holds(made.events)[0]
        assert place(made.events[first]) == place(before.events[index]), "held there again"
        assert seen(fold(made.events[:first])) == seen(then), "with what was changed until then, and nothing later"
        assert made.trajectory.finish is not None
        assert made.trajectory.finish.error is None
        assert fold(made.events) == made.trajectory
        replayed = [call for call in made.trajectory.calls if call.result and call.result.source == "replayed"]
        assert len(replayed) <= len(then.calls), "what is told again is not executed again"
        assert all(request.round > len(then.rounds) for request in model.requests), "nor asked for"


async def test_steps_back_from_a_step_back_lead_to_the_first_hold() -> None:
    person = Scripted(call_1=[EditArguments({"city": "Bergen"}), Continue()])
    before = await make(ScriptedModel([Say(calls=[CALL]), Say("Rain.")]), control=person)
    made, left = before, len(holds(before.events))
    assert left == 4
    once, _ = await back_to(before, 3, [Say("Sun.")])
    assert once.trajectory.calls[0].edited == {"city": "Bergen"}
    # A fork itself knows only the holds after the one that it went back to.
    assert len(holds(once.events)) == 1
    for hold in (2, 1, 0):
        made, _ = await back_to(before, hold, [Say(calls=[CALL]), Say("Sun.")][int(hold > 0) :])
        assert [call.edited for call in made.trajectory.calls] == [{"city": "Bergen"} if hold == 2 else None]
    assert [isinstance(event.payload, Forked) for event in made.events[:2]] == [False, True]


async def test_a_result_is_changed_otherwise_after_going_back_to_it() -> None:
    before = await make(
        ScriptedModel([Say(calls=[CALL]), Say("Rain.")]),
        control=Scripted(result_1=[EditResult("hail"), AddMessage("Really?"), Continue()]),
    )
    model = ScriptedModel([Say("Sun.")])
    made = await make(
        model,
        control=Scripted(result_1=[EditResult("snow"), Continue()]),
        fork=past_holds(before.events)[2].fork(),
    )
    assert [message.content for message in model.requests[0].messages[-2:]] == ["", "snow"]
    (call,) = made.trajectory.calls
    assert (call.result and call.result.content, call.unedited and call.unedited.content) == ("snow", "rain in Oslo")


async def test_the_last_round_that_the_case_allows_can_be_gone_back_into() -> None:
    answers = [Say(calls=[CALL]), Say("Rain.")]
    before = await make(ScriptedModel(answers), control=Scripted(), limits={"max_rounds": 2})
    made, _ = await back_to(before, 1, answers[1:], limits={"max_rounds": 2})
    assert made.trajectory.final_answer == "Rain."
