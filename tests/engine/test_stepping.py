"""A run that is stepped through: held everywhere, edited, and otherwise the same as an unattended run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tests.engine.making import CALL, Clock, Made, finish_of, make
from tests.engine.scripted import Say, ScriptedModel
from workbench.engine.checkpoint import (
    SKIPPED,
    AddMessage,
    AnswerCall,
    Command,
    Continue,
    EditArguments,
    EditResult,
    HoldPoint,
    Regenerate,
    SkipCall,
)
from workbench.engine.stepper import Stepper, StepTarget
from workbench.show.views.trajectory import unread_text
from workbench.trajectory.events import Paused, Resumed, RunFinished
from workbench.trajectory.fold import fold

UNTIL: tuple[StepTarget, ...] = ("stop", "round", "end")


class Scripted:
    """A user who performs the given commands at each place, named as in "call 1", and continues."""

    def __init__(self, **does: list[Command]) -> None:
        self._does = {place.replace("_", " "): list(commands) for place, commands in does.items()}
        self.held: list[str] = []

    async def hold_reason(self, point: HoldPoint) -> str | None:
        self.held.append(f"{point.at} {point.round}")
        return "step by step"

    async def next_command(self, point: HoldPoint) -> Command:
        commands = self._does.get(f"{point.at} {point.round}")
        return commands.pop(0) if commands else Continue()


def weather() -> ScriptedModel:
    return ScriptedModel([Say(calls=[CALL]), Say("Rain.")])


async def stepped(model: ScriptedModel, **does: list[Command]) -> tuple[Made, Scripted]:
    person = Scripted(**does)
    return await make(model, control=person), person


async def test_a_run_is_held_before_requests_and_calls_and_after_results() -> None:
    _, person = await stepped(weather())
    assert person.held == ["request 1", "call 1", "result 1", "request 2"]


async def test_a_run_stepped_through_without_edits_is_the_same_run() -> None:
    plain = await make(weather(), clock=Clock(step=0))
    person = Scripted()
    made = await make(weather(), clock=Clock(step=0), control=person)
    held = [event.payload for event in made.events if isinstance(event.payload, Paused | Resumed)]
    assert len(held) == 2 * len(person.held)
    assert replace(made.trajectory, held_ms=0.0) == plain.trajectory
    assert fold(made.events) == made.trajectory


async def test_time_in_which_a_run_is_held_is_no_part_of_it() -> None:
    class Slow(Scripted):
        async def next_command(self, point: HoldPoint) -> Command:
            clock.now += 1000
            return await super().next_command(point)

    clock = Clock(step=0)
    made = await make(weather(), clock=clock, control=Slow())
    assert made.trajectory.held_ms == 4_000_000
    assert (made.trajectory.duration_ms, made.trajectory.model_latency_ms) == (0.0, 0.0)


async def test_edited_arguments_are_answered_and_go_back_while_the_model_is_judged_by_its_own() -> None:
    model = weather()
    made, _ = await stepped(model, call_1=[EditArguments({"city": "Bergen"}), Continue()])
    (call,) = made.trajectory.calls
    assert (call.arguments, call.edited) == ({"city": "Oslo"}, {"city": "Bergen"})
    assert call.result is not None
    assert call.result.content == "rain in Bergen"
    assert model.requests[1].messages[1].tool_calls[0].arguments == {"city": "Bergen"}


async def test_an_edited_result_is_what_the_model_reads_and_the_original_stays() -> None:
    model = weather()
    made, _ = await stepped(model, result_1=[EditResult("sun"), EditResult("snow", is_error=True), Continue()])
    (call,) = made.trajectory.calls
    assert (model.requests[1].messages[2].content, model.requests[1].messages[2].is_error) == ("snow", True)
    assert call.unedited is not None
    assert (call.unedited.content, call.unedited.is_error) == ("rain in Oslo", False)


async def test_a_person_answers_in_place_of_the_tool() -> None:
    model = weather()
    made, person = await stepped(model, call_1=[AnswerCall("hail")])
    assert model.requests[1].messages[2].content == "hail"
    assert [call.result.source for call in made.trajectory.calls if call.result] == ["edited"]
    assert person.held == ["request 1", "call 1", "result 1", "request 2"]


async def test_a_skipped_call_is_not_made_and_the_model_is_told_so() -> None:
    model = weather()
    made, _ = await stepped(model, call_1=[SkipCall()])
    assert (model.requests[1].messages[2].content, model.requests[1].messages[2].is_error) == (SKIPPED, True)
    assert [call.result.source for call in made.trajectory.calls if call.result] == ["skipped"]


async def test_an_added_message_is_read_before_the_next_request() -> None:
    model = weather()
    made, _ = await stepped(
        model, call_1=[AddMessage("In Celsius, please."), Continue()], request_2=[AddMessage("Now!")]
    )
    assert [message.content for message in model.requests[1].messages[-2:]] == ["In Celsius, please.", "Now!"]
    assert made.trajectory.rounds[1].added == ("In Celsius, please.", "Now!")


async def test_a_round_is_asked_again_by_the_same_request() -> None:
    model = ScriptedModel([Say(calls=[("send", {})]), Say(calls=[CALL]), Say("Rain.")])
    made, _ = await stepped(model, result_1=[Regenerate()])
    first, second, _ = model.requests
    assert first == second
    (before,) = made.trajectory.rounds[0].superseded
    assert [call.tool for call in before.calls] == ["send"]
    assert [call.tool for call in made.trajectory.calls] == ["get_weather"]
    assert made.trajectory.usage is not None
    assert made.trajectory.usage.input_tokens == 30
    assert fold(made.events) == made.trajectory


class Watched(Stepper):
    """Records where it holds a run."""

    def __init__(self) -> None:
        super().__init__("stop")
        self.holds: asyncio.Queue[str] = asyncio.Queue()

    async def hold_reason(self, point: HoldPoint) -> str | None:
        why = await super().hold_reason(point)
        if why is not None:
            self.holds.put_nowait(f"{point.at} {point.round}")
        return why

    async def held_at(self, place: str) -> int:
        """Wait for the run to be held there; which hold that is."""
        assert await self.holds.get() == place
        while self.held is None:  # noqa: ASYNC110 (it is, the next moment)
            await asyncio.sleep(0)
        assert self.held.hold is not None
        return self.held.hold


async def test_a_stepper_holds_until_it_is_let_go() -> None:
    stepper = Watched()
    running = asyncio.create_task(make(weather(), control=stepper))
    first = await stepper.held_at("request 1")
    stepper.continue_until("round", first)
    second = await stepper.held_at("request 2")
    refused = stepper.apply(SkipCall(), second)
    assert refused == "the run is held before a request: a call can be skipped before it is made"
    stepper.continue_until("end", second)
    made = await running
    assert stepper.holds.empty()
    assert stepper.apply(Continue(), second) == "the run has continued"
    assert [event.sequence for event in made.events if isinstance(event.payload, Paused)] == [first, second]


async def test_going_on_right_behind_an_edit_is_meant_for_the_run_and_not_for_its_next_stop() -> None:
    stepper = Watched()
    running = asyncio.create_task(make(weather(), control=stepper))
    hold = await stepper.held_at("request 1")
    assert stepper.apply(AddMessage("Now!"), hold) is None
    stepper.continue_until("end", hold)
    assert (await running).trajectory.rounds[0].added == ("Now!",)
    assert stepper.holds.empty()


async def test_what_lets_a_run_go_on_does_so_once_however_often_it_is_said() -> None:
    model = ScriptedModel([Say(calls=[CALL]), Say("Rain."), Say("Snow.")])
    stepper = Watched()
    running = asyncio.create_task(make(model, control=stepper))
    hold = await stepper.held_at("request 1")
    assert [stepper.continue_until("stop", hold), stepper.continue_until("end", hold)] == [
        None,
        "the run has continued",
    ]
    hold = await stepper.held_at("call 1")
    assert [stepper.apply(Regenerate(), hold), stepper.apply(Regenerate(), hold)] == [None, "the run has continued"]
    made = await running
    assert finish_of(made).reason == "answered"
    assert made.trajectory.final_answer == "Rain."


async def test_what_is_meant_for_one_stop_is_not_done_at_another() -> None:
    """The person's picture of a run is a moment old."""
    stepper = Watched()
    model = ScriptedModel([Say(calls=[CALL, ("send", {})]), Say("Rain.")])
    running = asyncio.create_task(make(model, control=stepper))
    seen = await stepper.held_at("request 1")
    stepper.continue_until("stop", seen)
    seen = await stepper.held_at("call 1")
    stepper.apply(AnswerCall("sun"), seen)
    at_result = await stepper.held_at("result 1")
    stepper.continue_until("stop", at_result)
    now = await stepper.held_at("call 1")
    elsewhere = "the run has moved on to another stop"
    assert stepper.apply(EditArguments({"city": "Rome"}), seen) == elsewhere
    assert [stepper.continue_until(until, seen) for until in UNTIL] == [elsewhere] * 3
    assert stepper.held is not None and stepper.held.hold == now
    stepper.continue_until("end", now)
    made = await running
    assert [call.sent.arguments for call in made.trajectory.calls] == [{"city": "Oslo"}, {}]


async def test_a_run_that_was_held_before_that_was_seen_is_not_let_go() -> None:
    stepper = Watched()
    running = asyncio.create_task(make(weather(), control=stepper))
    hold = await stepper.held_at("request 1")
    assert stepper.continue_until("stop", None) is None, "it is held, as was wanted"
    assert stepper.continue_until("end", None) == "the run has moved on to another stop"
    assert stepper.held is not None and stepper.held.hold == hold
    stepper.continue_until("end", hold)
    await running


async def test_a_run_that_is_not_held_is_held_at_its_next_stop() -> None:
    stepper = Watched()
    running = asyncio.create_task(make(weather(), control=stepper))
    stepper.continue_until("end", await stepper.held_at("request 1"))
    assert stepper.continue_until("stop", None) is None
    stepper.continue_until("end", await stepper.held_at("call 1"))
    await running


async def test_a_run_that_is_stopped_while_it_is_held_ends_the_hold_and_counts_no_time_of_it() -> None:
    clock, stepper = Clock(step=0), Watched()
    running = asyncio.create_task(make(weather(), clock=clock, control=stepper))
    await stepper.held_at("request 1")
    clock.now += 7
    running.cancel()
    made = await running
    assert [type(event.payload) for event in made.events[-2:]] == [Resumed, RunFinished]
    assert finish_of(made).reason == "stopped"
    assert (made.trajectory.held_ms, made.trajectory.duration_ms) == (7000.0, 0.0)


async def test_what_no_model_could_be_sent_is_refused() -> None:
    stepper = Watched()
    running = asyncio.create_task(make(weather(), control=stepper))
    hold = await stepper.held_at("request 1")
    assert stepper.apply(AddMessage(" \n"), hold) == "a message to the model needs a text"
    stepper.continue_until("stop", hold)
    hold = await stepper.held_at("call 1")
    not_a_number = EditArguments({"city": [float("nan")]})
    assert stepper.apply(not_a_number, hold) == "these arguments cannot be sent: a number that is not finite"
    stepper.continue_until("end", hold)
    assert not (await running).trajectory.touched


async def test_what_is_said_to_a_model_that_is_asked_nothing_more_is_known_to_be_unread() -> None:
    steps = [{"user": "Weather?", "tool": "get_weather"}]
    person = Scripted(result_1=[AddMessage("In Celsius."), Continue()])
    made = await make(ScriptedModel([Say(calls=[CALL])]), control=person, steps=steps, name="Chain")
    assert (finish_of(made).reason, made.trajectory.touched) == ("steps done", False)
    assert unread_text(made.trajectory).startswith("the model never read the last message of a person")
    read, _ = await stepped(weather(), result_1=[AddMessage("In Celsius."), Continue()])
    assert unread_text(read.trajectory) == ""
