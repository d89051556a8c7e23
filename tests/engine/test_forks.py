"""Forks: the beginning of another run, repeated without requests, and a new run from there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.making import CALL, Clock, Made, finish_of, make
from tests.engine.scripted import Say, ScriptedModel
from tests.engine.test_stepping import Scripted
from tests.programs import grant_of, program_of
from workbench.engine.agent_loop import RunRequest, run_case
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
from workbench.engine.fork import Fork, ForkPoint, fork_refusal
from workbench.engine.own_calls import OwnCalls
from workbench.engine.recorder import Recorder
from workbench.engine.turns import turns_of
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import parse_suite
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import Deviation, Message, MessageAdded, ServerInstructions, ToolCall, Usage
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

SEND = ("send", {"to": "Ann"})
STEPS = [{"user": "Weather?", "tool": "get_weather"}, {"tool": "send"}, {"user": "Thanks."}]


async def made_before() -> Made:
    return await make(ScriptedModel([Say("Looking.", calls=[CALL, SEND]), Say("Rain.")]))


async def chain_before() -> Made:
    return await make(ScriptedModel([Say(calls=[CALL]), Say(calls=[SEND]), Say("Bye.")]), steps=STEPS, name="Chain")


def why_not(origin: Trajectory, at: ForkPoint, result: EditResult | None = None, **case: Any) -> str | None:
    settings: dict[str, Any] = {"name": "Oslo"} | ({} if "steps" in case else {"user": "Weather?"}) | case
    max_rounds = settings.pop("max_rounds", 5)
    return fork_refusal(Fork(origin, at, result=result), turns_of(Case.model_validate(settings), max_rounds))


async def test_a_fork_sends_the_instructions_of_servers_that_its_origin_was_sent() -> None:
    before = (await made_before()).trajectory
    assert before.start is not None
    then = (ServerInstructions("shop", "Call it first."),)
    origin = replace(before, start=replace(before.start, instructions=then))
    for system, prompt in ((None, "You are a weather assistant.\n\n"), ("Be kind.", "Be kind.\n\n"), ("", "")):
        model = ScriptedModel([Say("Sun.")])
        made = await make(model, fork=Fork(origin, ForkPoint(2), system=system))
        (request,) = model.requests
        assert request.system is not None
        assert request.system.startswith(f"{prompt}# MCP Server Instructions\n")
        assert request.system.endswith("\n\n## shop\nCall it first.")
        assert made.trajectory.start is not None and made.trajectory.start.instructions == then


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


async def test_what_is_replayed_counts_neither_tokens_nor_time() -> None:
    before = await made_before()
    made = await make(ScriptedModel([Say("Sun.")]), fork=Fork(before.trajectory, ForkPoint(2)))
    replayed, live = made.trajectory.rounds
    assert replayed.latency_ms == before.trajectory.rounds[0].latency_ms
    assert made.trajectory.model_latency_ms == live.latency_ms
    assert made.trajectory.usage == Usage(10, 4)


# The places at which a run can be forked


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (ForkPoint(4), "the run has no whole answer in round 3"),
        (ForkPoint(3), "the model answered in round 2, so there is nothing left to ask"),
        (ForkPoint(2, answered=0), "the model answered in round 2, so there is nothing left to ask"),
        (ForkPoint(2, answered=1), "round 2 has 0 calls"),
        (ForkPoint(0), "the run has no whole answer in round -1"),
        (ForkPoint(1, answered=2), None),
        (ForkPoint(2), None),
        (ForkPoint(1), None),
    ],
)
async def test_a_fork_needs_a_point_that_the_run_has(at: ForkPoint, why: str | None) -> None:
    assert why_not((await made_before()).trajectory, at) == why


async def test_no_request_comes_beyond_the_last_round_that_the_case_allows() -> None:
    origin = (await made_before()).trajectory
    said = "the case allows no request after round 1 (limits.max_rounds)"
    assert why_not(origin, ForkPoint(2), max_rounds=1) == said
    assert why_not(origin, ForkPoint(1, answered=1), max_rounds=1) == said


async def test_no_request_comes_after_the_last_step_unless_an_answer_is_wanted() -> None:
    origin = (await chain_before()).trajectory
    said = "the chain has no step after round 3, so there is nothing left to ask"
    assert why_not(origin, ForkPoint(4), steps=STEPS) == said
    assert why_not(origin, ForkPoint(2, answered=1), steps=STEPS[:2]) == said.replace("3", "2")
    assert why_not(origin, ForkPoint(2, answered=1), steps=STEPS[:2], response_contains=["x"]) is None


async def test_a_case_that_became_another_kind_cannot_be_taken_up_again() -> None:
    origin = (await chain_before()).trajectory
    assert why_not(origin, ForkPoint(3)) == (
        "the case no longer makes request 1 of this run, because the case has changed"
    )


async def test_nothing_is_asked_after_a_refusal() -> None:
    made = await make(ScriptedModel([Say("No.", calls=[CALL], stop_reason="refused")]))
    assert why_not(made.trajectory, ForkPoint(1, answered=0)) == (
        "the model refused to answer in round 1, so there is nothing left to ask"
    )


async def test_calls_without_a_result_and_results_that_are_not_there_are_named() -> None:
    made = await make(ScriptedModel([Say(calls=[CALL])]), limits={"max_rounds": 1})
    assert why_not(made.trajectory, ForkPoint(2)) == "a call before that point has no result"
    assert why_not(made.trajectory, ForkPoint(1, answered=0)) is None
    assert why_not(made.trajectory, ForkPoint(1), EditResult("x")) == "there is no result right before that point"
    assert why_not(Trajectory("run"), ForkPoint(1)) == "the run has not begun"


async def test_a_fork_that_is_made_nevertheless_ends_at_once_and_says_why() -> None:
    model = ScriptedModel([])
    made = await make(model, fork=Fork((await made_before()).trajectory, ForkPoint(3)))
    assert finish_of(made).error == (
        "the run cannot be forked there: the model answered in round 2, so there is nothing left to ask"
    )
    assert model.requests == []


# The replayed part


async def test_a_run_that_is_held_or_broke_off_is_forked_as_far_as_it_is() -> None:
    whole = await made_before()
    for cut in range(len(whole.events)):
        origin = fold(whole.events[: cut + 1])
        calls = [call for call in origin.calls if call.result is not None]
        at = ForkPoint(1, answered=len(calls))
        if why_not(origin, at) is None:
            made = await make(ScriptedModel([Say("Sun.")]), fork=Fork(origin, at))
            assert finish_of(made).reason == "answered"
            assert [call.result is not None for call in made.trajectory.calls] == [True, True]


async def test_what_a_person_said_before_the_request_is_said_again() -> None:
    person = Scripted(request_2=[AddMessage("In Celsius.")])
    stepped = await make(ScriptedModel([Say(calls=[CALL]), Say("Rain.")]), control=person)
    said = next(event.sequence for event in stepped.events if isinstance(event.payload, MessageAdded))
    held = fold(stepped.events[: said + 1])
    assert (held.added, len(held.rounds)) == (("In Celsius.",), 1)
    for origin in (stepped.trajectory, held):
        model = ScriptedModel([Say("Sun.")])
        made = await make(model, fork=Fork(origin, ForkPoint(2)))
        assert model.requests[0].messages[-1] == Message("user", "In Celsius.")
        assert made.trajectory.rounds[1].added == ("In Celsius.",)


async def test_edits_in_the_prefix_stay_beside_what_they_replaced() -> None:
    person = Scripted(
        call_1=[EditArguments({"city": "Bergen"}), Continue(), AnswerCall("sent")],
        result_1=[EditResult("hail"), Continue()],
    )
    before = await make(ScriptedModel([Say(calls=[CALL, SEND]), Say("Rain.")]), control=person)
    made = await make(ScriptedModel([Say("Sun.")]), fork=Fork(before.trajectory, ForkPoint(2)))
    for call, other in zip(made.trajectory.calls, before.trajectory.calls, strict=True):
        assert call.result is not None
        assert other.result is not None
        assert (call.call, call.edited, call.result.content) == (other.call, other.edited, other.result.content)
        assert call.touched
    assert made.trajectory.touched


@pytest.mark.parametrize(("answered", "cities"), [(0, "Bergen rain in Bergen"), (1, "Bergen hail")])
async def test_the_call_at_the_point_keeps_the_arguments_that_a_person_gave_it(answered: int, cities: str) -> None:
    person = Scripted(
        call_1=[EditArguments({"city": "Bergen"}), Continue(), Continue()], result_1=[EditResult("hail"), Continue()]
    )
    before = await make(ScriptedModel([Say(calls=[CALL, SEND]), Say("Rain.")]), control=person)
    made = await make(ScriptedModel([Say("Sun.")]), fork=Fork(before.trajectory, ForkPoint(1, answered)))
    call, later = made.trajectory.calls
    assert call.result is not None
    assert f"{call.sent.arguments['city']} {call.result.content}" == cities
    assert later.edited is None


async def test_a_call_that_was_edited_and_asked_for_again_is_told_as_it_was() -> None:
    person = Scripted(call_1=[EditArguments({"city": "Bergen"}), Regenerate()])
    before = await make(ScriptedModel([Say(calls=[CALL]), Say(calls=[SEND]), Say("Rain.")]), control=person)
    made = await make(ScriptedModel([Say("Sun.")]), fork=Fork(before.trajectory, ForkPoint(2)))
    (aside,) = made.trajectory.rounds[0].superseded
    assert aside.calls == before.trajectory.rounds[0].superseded[0].calls
    assert aside.calls[0].edited == {"city": "Bergen"}


async def test_answers_that_were_set_aside_are_told_again_and_cost_nothing() -> None:
    person = Scripted(result_1=[AddMessage("Try again."), Regenerate()])
    model = ScriptedModel([Say(calls=[SEND]), Say(calls=[CALL]), Say("Rain.")])
    before = await make(model, control=person)
    fork = ScriptedModel([Say("Sun.")])
    made = await make(fork, fork=Fork(before.trajectory, ForkPoint(2)))
    assert fork.requests == model.requests[2:]
    (first, live), (origin, _) = made.trajectory.rounds, before.trajectory.rounds
    assert (first.added, len(first.superseded)) == (origin.added, 1)
    assert made.trajectory.usage == live.usage


async def test_a_fork_of_a_fork_keeps_everything_before_it() -> None:
    before = await make(ScriptedModel([Say(calls=[CALL]), Say(calls=[SEND]), Say("Rain.")]))
    once = await make(
        ScriptedModel([Say(calls=[SEND]), Say("Sun.")]),
        fork=Fork(before.trajectory, ForkPoint(1, answered=1), system="Be brief.", result=EditResult("sun")),
    )
    model = ScriptedModel([Say("Snow.")])
    twice = await make(model, fork=Fork(once.trajectory, ForkPoint(3)))
    assert (model.requests[0].system, model.requests[0].messages[2].content) == ("Be brief.", "sun")
    assert [round_.replayed for round_ in twice.trajectory.rounds] == [True, True, False]
    assert twice.trajectory.calls[0].unedited is not None


async def test_the_steps_of_a_chain_count_on() -> None:
    model = ScriptedModel([Say("Bye.")])
    made = await make(model, fork=Fork((await chain_before()).trajectory, ForkPoint(3)), steps=STEPS, name="Chain")
    assert [round_.step.step for round_ in made.trajectory.rounds if round_.step] == [1, 2, 3]
    assert model.requests[0].messages[-1].content == "Thanks."
    assert finish_of(made).reason == "steps done"


@pytest.mark.parametrize("at", [ForkPoint(2), ForkPoint(1, answered=1)])
async def test_a_chain_that_stops_at_a_failed_step_stops_there_in_a_fork_too(at: ForkPoint) -> None:
    async def failed(trajectory: Trajectory, step: int) -> bool:
        return step == 1

    model = ScriptedModel([])
    origin = (await chain_before()).trajectory
    made = await make(model, fork=Fork(origin, at), step_failed=failed, steps=STEPS, name="Chain", stop_on_failure=True)
    assert (finish_of(made).reason, model.requests) == ("step failed", [])


# Mocks


SEVERAL = [{"tool": "get_weather", "results": ["first", "second", "third"]}]


async def test_mocks_with_several_results_go_on_behind_those_that_are_told_again() -> None:
    twice = ScriptedModel([Say(calls=[CALL]), Say(calls=[CALL]), Say("Rain.")])
    before = await make(twice, mocks=SEVERAL)
    made = await make(
        ScriptedModel([Say(calls=[CALL]), Say("Sun.")]), fork=Fork(before.trajectory, ForkPoint(3)), mocks=SEVERAL
    )
    assert [call.result.content for call in made.trajectory.calls if call.result] == ["first", "second", "third"]


async def test_calls_that_a_person_answered_count_for_no_mock() -> None:
    person = Scripted(call_1=[SkipCall()])
    before = await make(ScriptedModel([Say(calls=[CALL]), Say("Rain.")]), control=person, mocks=SEVERAL)
    made = await make(
        ScriptedModel([Say(calls=[CALL]), Say("Sun.")]), fork=Fork(before.trajectory, ForkPoint(2)), mocks=SEVERAL
    )
    assert [call.result.content for call in made.trajectory.calls[1:] if call.result] == ["first"]


async def test_a_mock_with_a_judged_condition_is_known_by_its_answer() -> None:
    mocks = [{"tool": "get_weather", "when": {"city": {"judged": "a capital"}}, "results": ["a", "b"]}, *SEVERAL]

    async def forked(told: str) -> list[str]:
        before = await make(ScriptedModel([Say(calls=[CALL]), Say("Rain.")]), mocks=[SEVERAL[0] | {"results": [told]}])
        made = await make(
            ScriptedModel([Say(calls=[("get_weather", {})]), Say("Sun.")]),
            fork=Fork(before.trajectory, ForkPoint(2)),
            mocks=mocks,
        )
        return [call.result.content for call in made.trajectory.calls if call.result]

    assert await forked("a") == ["a", "first"]
    assert await forked("first") == ["first", "second"]


# Another model


def of_another_model(origin: Trajectory) -> Trajectory:
    assert origin.start is not None
    return replace(origin, start=replace(origin.start, model="another"))


async def test_on_another_model_calls_have_ids_of_ours_and_nothing_of_the_provider_goes_back() -> None:
    before = (await made_before()).trajectory
    repaired = (Deviation("kind", "of a call", "call-1"), Deviation("kind", "of the text"))
    first = replace(before.rounds[0], provider_state={"wire": "messages", "parts": []}, deviations=repaired)
    origin = replace(before, rounds=(first, *before.rounds[1:]))
    for other in (origin, of_another_model(origin)):
        model = ScriptedModel([Say("Sun.")])
        made = await make(model, fork=Fork(other, ForkPoint(2)))
        _, answer, *results = model.requests[0].messages
        ids = [call.id for call in answer.tool_calls]
        assert ids == [result.call_id for result in results] == [call.call.id for call in made.trajectory.calls]
        assert (answer.provider_state is None) == (other is not origin)
        assert [each.call_id for each in made.trajectory.deviations] == [ids[1], None]
        assert ids == (["call00001", "call00002"] if other is not origin else ["call-0", "call-1"])


async def test_ids_of_ours_are_none_of_the_opening() -> None:
    before = (await made_before()).trajectory
    assert before.start is not None
    opening = (Message("assistant", "", (ToolCall("call00001", "send"),)), *before.start.messages)
    origin = of_another_model(replace(before, start=replace(before.start, messages=opening)))
    made = await make(ScriptedModel([Say("Sun.")]), fork=Fork(origin, ForkPoint(2)))
    assert [call.call.id for call in made.trajectory.calls] == ["call00002", "call00003"]


# The same conversation, byte for byte

words = st.text(max_size=6)
rounds = st.lists(
    st.builds(
        Say,
        words,
        st.lists(
            st.tuples(st.sampled_from(["get_weather", "send", "no_such"]), st.just({"city": "Oslo"})),
            min_size=1,
            max_size=3,
        ),
    ),
    max_size=3,
)
DONE: dict[str, list[Command]] = {
    "request": [AddMessage("Go on.")],
    "call": [EditArguments({"city": "Bergen"}), AnswerCall("yes"), SkipCall(), AddMessage("Hm.")],
    "result": [EditResult("other"), EditResult("bad", True)],
}
edits = st.fixed_dictionaries(
    {},
    optional={
        f"{at}_{number}": st.lists(st.sampled_from(commands), max_size=2).map(lambda chosen: [*chosen, Continue()])
        for number in (1, 2)
        for at, commands in DONE.items()
    },
)


@given(rounds, edits)
async def test_a_fork_sends_what_its_origin_sent(answers: list[Say], does: dict[str, Any]) -> None:
    model = ScriptedModel([*answers, Say("Rain.")])
    before = await make(model, control=Scripted(**does))
    for number, request in enumerate(model.requests, start=1):
        again = ScriptedModel([Say("Rain.")])
        made = await make(again, fork=Fork(before.trajectory, ForkPoint(number)))
        assert again.requests == [request]
        assert made.trajectory.rounds[: number - 1] == tuple(
            replace(round_, replayed=True, calls=tuple(map(replayed, round_.calls)))
            for round_ in before.trajectory.rounds[: number - 1]
        )


def replayed(call: Any) -> Any:
    def again(result: Any) -> Any:
        mark = result.source if result.source in ("edited", "skipped") else "replayed"
        return replace(result, source=mark)

    return replace(call, result=again(call.result), unedited=call.unedited and again(call.unedited))


async def test_a_fork_sets_its_own_tools_up_and_says_what_they_have_not_seen(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text("SENT = []\ndef send(a):\n    SENT.append(a)\n    return str(len(SENT))\n")
    suite = parse_suite(STATEFUL, tmp_path / "box.toml").suite
    assert suite is not None
    origin: Trajectory | None = None
    for fork_at, notices, calls in ((None, (), ["1", "2", "2"]), (ForkPoint(2), (UNSEEN,), ["1"])):
        fork = None if origin is None or fork_at is None else Fork(origin, fork_at)
        model = ScriptedModel([Say(calls=[SEND]), Say("Bye.")] if fork is None else [Say("Bye.")])
        made = await make_stateful(suite, tmp_path, model, fork)
        origin = origin or made
        assert made.start is not None and made.start.notices == notices
        said = [call.content for call in made.setup_calls]
        said += [call.result.content for call in made.calls if call.result and call.result.source != "replayed"]
        said += [call.content for call in made.final_calls]
        assert said == calls
        assert made.final_answer == "Bye."


UNSEEN = "the tools of this run did not execute the calls that it replays, such as send; their state is new"
STATEFUL = """format = 1
name = "Box"
tools = [{ name = "send" }, { name = "count" }]
mocks = [{ tool = "send", python = "box:send" }, { tool = "count", result = "2" }]
[[cases]]
name = "One"
user = "Send."
setup = [{ tool = "send" }]
final = { state = [{ tool = "count", result = 2 }] }
"""


async def make_stateful(suite: Suite, folder: Path, model: ScriptedModel, fork: Fork | None) -> Trajectory:
    """Make a run of the only case of a trusted suite, with its own calls."""
    pool, file, (case,) = ServerPool(program_of(folder)), folder / "box.toml", suite.cases
    grant = grant_of(suite, file, pool._program.environment)
    tools = await pool.open_toolbox(suite, case, file, execute=False, grant=grant)
    recorder = Recorder("run", Clock(), lambda _event: None)
    request = RunRequest(case, settings_of(suite, case), "scripted", "hash", fork)
    own_calls = OwnCalls(case, 60, tools, recorder, None, None)
    trajectory = await run_case(request, model, tools, recorder, own_calls=own_calls)
    tools.close()
    return trajectory
