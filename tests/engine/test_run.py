"""The agent loop of one run: rounds, results, limits, stopping, and errors that are never the model's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.making import CALL, WEATHER, Clock, finish_of, make
from tests.engine.scripted import NO_ROUTE, BreakOff, Fail, Hang, Say, ScriptedModel
from workbench.engine.agent_loop import RunRequest, record_failed_start, run_case
from workbench.engine.recorder import Recorder
from workbench.suite.model import Suite
from workbench.suite.settings import settings_of
from workbench.tools.mocks import Mocks
from workbench.tools.python_code import PythonFunctions
from workbench.tools.toolbox import Toolbox
from workbench.trajectory.events import Event, ResultReceived, RunFinished, ToolDefinition
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import event_from_line, event_to_line


async def test_results_go_back_to_the_model_until_it_answers_in_words() -> None:
    model = ScriptedModel([Say(calls=[CALL]), Say("Take an umbrella.")])
    made = await make(model)
    assert finish_of(made) == RunFinished("answered")
    assert made.trajectory.final_answer == "Takeanumbrella."
    first, second = model.requests
    assert (first.round, first.system, len(first.messages)) == (1, "You are a weather assistant.", 1)
    assert [message.role for message in second.messages] == ["user", "assistant", "tool"]
    assert (second.messages[2].content, second.messages[2].call_id) == ("rain in Oslo", "call-0")
    assert second.calls_before == 1


async def test_a_round_may_hold_several_calls_and_all_are_answered_in_order() -> None:
    model = ScriptedModel([Say("Both.", calls=[CALL, ("send", {"to": "Ann"}), CALL]), Say("Done.")])
    made = await make(model)
    assert [call.tool for call in made.trajectory.calls] == ["get_weather", "send", "get_weather"]
    results = [call.result for call in made.trajectory.calls]
    assert [result.source for result in results if result] == ["suite mock", "default", "suite mock"]


async def test_broken_arguments_are_kept_and_answered_with_a_tool_error() -> None:
    model = ScriptedModel([Say(broken_call="get_weather"), Say("Sorry.")])
    made = await make(model)
    (record,) = made.trajectory.calls
    assert (record.call.raw, record.call.problem, record.arguments) == ('{"city": ', "it ends too early", {})
    assert record.result is not None
    assert record.result.is_error


async def test_calls_in_the_last_allowed_round_are_kept_but_not_run() -> None:
    model = ScriptedModel([Say(calls=[CALL]), Say("More.", calls=[CALL])])
    made = await make(model, limits={"max_rounds": 2})
    assert finish_of(made) == RunFinished("rounds exhausted")
    assert [call.result is not None for call in made.trajectory.calls] == [True, False]
    assert made.trajectory.final_answer == ""


@pytest.mark.parametrize(
    ("asked", "reason"),
    [({}, "decided"), ({"response": "Rain."}, "rounds exhausted"), ({"response_contains": ["x"]}, "rounds exhausted")],
)
async def test_the_only_round_of_a_case_that_asks_no_answer_ends_it_as_it_should(asked: Any, reason: Any) -> None:
    made = await make(ScriptedModel([Say(calls=[CALL])]), limits={"max_rounds": 1}, **asked)
    assert finish_of(made) == RunFinished(reason)
    assert [call.result for call in made.trajectory.calls] == [None]


@pytest.mark.parametrize("reason", ["refused", "truncated"])
async def test_an_answer_that_did_not_end_normally_ends_the_run(reason: Any) -> None:
    made = await make(ScriptedModel([Say("No", calls=[CALL], stop_reason=reason)]))
    assert finish_of(made) == RunFinished(reason)
    assert made.trajectory.final_answer == ""
    assert made.trajectory.calls[0].result is None


async def test_earlier_messages_precede_the_request() -> None:
    model = ScriptedModel([Say("Rain.")])
    history = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "tool_calls": [{"id": "c1", "tool": "get_weather", "args": {"city": "Bergen"}}]},
        {"role": "tool", "call": "c1", "content": "503", "is_error": True},
    ]
    await make(model, messages=history, system="")
    request = model.requests[0]
    assert request.system is None
    assert [message.role for message in request.messages] == ["user", "assistant", "tool", "user"]
    assert request.messages[1].tool_calls[0].arguments == {"city": "Bergen"}
    assert request.messages[2].is_error


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (NO_ROUTE, "cannot reach the endpoint: connection refused"),
        (BreakOff("Half a sen"), "the answer of scripted broke off before its end"),
        (Fail(RuntimeError("a bug")), "unexpected RuntimeError: a bug; the log holds the details"),
    ],
    ids=["unreachable", "cut off", "bug"],
)
async def test_what_the_infrastructure_does_ends_the_run_as_an_error(answer: Fail | BreakOff, said: str) -> None:
    made = await make(ScriptedModel([answer]))
    assert finish_of(made) == RunFinished("error", said)


async def test_a_run_that_takes_too_long_times_out_and_keeps_what_was_said() -> None:
    made = await make(ScriptedModel([Hang("Let me think")]), limits={"timeout_s": 0.01})
    finish = finish_of(made)
    assert finish.reason == "timed out"
    assert finish.error is not None
    assert "limits.timeout_s" in finish.error
    assert made.trajectory.rounds[0].text == "Let me think"


async def test_a_run_can_be_stopped_and_keeps_what_was_said() -> None:
    model = ScriptedModel([Say(calls=[CALL]), Hang("Half")])
    running = asyncio.create_task(make(model))
    await model.hanging.wait()
    running.cancel()
    made = await running
    assert finish_of(made) == RunFinished("stopped")
    assert made.trajectory.rounds[1].text == "Half"


async def test_tool_time_and_model_time_are_numbers_of_their_own() -> None:
    suite = Suite.model_validate(WEATHER | {"mocks": [{"tool": "get_weather", "result": "slow", "delay_ms": 5000}]})
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    functions = PythonFunctions(None)
    tools = Toolbox(
        [ToolDefinition("get_weather")],
        Mocks((), suite.mocks, functions, sleep),
        servers={},
        call_python=functions.answer,
    )
    model = ScriptedModel([Say(calls=[CALL]), Say("Done.")])
    events: list[Event] = []
    request = RunRequest(suite.cases[0], settings_of(suite, suite.cases[0]), "scripted", "hash")
    trajectory = await run_case(request, model, tools, Recorder("run-1", clock, events.append))
    (slow,) = [event.payload for event in events if isinstance(event.payload, ResultReceived)]
    assert slow.latency_ms == 5001.0
    # Reading the clock takes a millisecond: once for the first token, once for each event, once for the end.
    assert [round_.latency_ms for round_ in trajectory.rounds] == [6.0, 3.0]
    assert [round_.first_token_ms for round_ in trajectory.rounds] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("value", "problem", "raw"),
    [
        (float("inf"), "a number that is not finite", '{"x": {"y": [Infinity]}}'),
        (float("nan"), "a number that is not finite", '{"x": {"y": [NaN]}}'),
        ("deep", "nested more than 100 levels deep", f'{{"x": {{"y": {"[" * 301}"deep"{"]" * 301}}}}}'),
    ],
)
async def test_arguments_that_nothing_can_hold_count_as_broken_and_are_kept(value: Any, problem: str, raw: str) -> None:
    if value == "deep":
        for _ in range(300):
            value = [value]
    made = await make(ScriptedModel([Say(calls=[("send", {"x": {"y": [value]}})]), Say("Done.")]))
    (record,) = made.trajectory.calls
    assert (record.arguments, record.call.problem, record.call.raw) == ({}, problem, raw)
    assert finish_of(made) == RunFinished("answered")


async def test_a_model_that_repeats_a_call_id_ends_the_run_and_the_events_still_fold() -> None:
    twice = ScriptedModel([Say(calls=[CALL]), Say(calls=[CALL])], renumber=False)
    made = await make(twice)
    finish = finish_of(made)
    assert finish.reason == "error"
    assert finish.error is not None
    assert "two calls have the id call-0" in finish.error
    assert fold(made.events) == made.trajectory


def test_a_run_that_cannot_begin_still_has_a_whole_trajectory() -> None:
    suite = Suite.model_validate(WEATHER)
    events: list[Event] = []
    request = RunRequest(suite.cases[0], settings_of(suite, suite.cases[0]), "scripted", "hash")
    trajectory = record_failed_start(
        request, RunFinished("error", "no such model"), Recorder("run-1", Clock(), events.append)
    )
    assert trajectory == fold(events)
    assert trajectory.finish == RunFinished("error", "no such model")


answers = st.lists(
    st.one_of(
        st.builds(
            Say,
            st.text(max_size=20),
            st.lists(
                st.tuples(st.sampled_from(["get_weather", "send", "unknown"]), st.just({"city": "Oslo"})), max_size=3
            ),
            st.none() | st.just("send"),
            st.text(max_size=10),
        ),
        st.just(NO_ROUTE),
        st.builds(BreakOff, st.text(max_size=5)),
    ),
    min_size=6,
    max_size=6,
)


@given(answers)
def test_what_was_recorded_folds_to_the_trajectory_that_is_graded(script: Sequence[Say | Fail | BreakOff]) -> None:
    made = asyncio.run(make(ScriptedModel(script)))
    recorded = [event_to_line(event) for event in made.events]
    assert fold(event_from_line(line) for line in recorded) == made.trajectory
    assert [event.sequence for event in made.events] == list(range(len(made.events)))
    finish_of(made)
