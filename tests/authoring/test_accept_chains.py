"""Accepting a run of a chain: each step expects its own calls afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.authoring.test_accept import Edited
from tests.example_counts import examples
from tests.strategies import json_values
from tests.trajectories import CallSpec
from workbench.authoring.accept import accept_call, accept_missing, accept_run
from workbench.authoring.from_calls import case_with_mock, step_of
from workbench.authoring.proposal import AcceptError, accept_steps
from workbench.grading.grade import CallPairing
from workbench.grading.run import grade_run_and_steps
from workbench.suite.render import Table
from workbench.suite.suite_text import SpliceError
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.events import RunFinished, RunStarted, StepStarted, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

CHAIN = """[[cases]]
name = "Evening"
mocks = [{ tool = "wave", result = 1 }]

[[cases.steps]]
user = "Dim the hall, then turn the TV on."  # as they say it
system = "Be quick."
tool = "set_lights"  # the lamp
args = { room = { one_of = ["hall", "bath"], weight = 0.6 }, brightness = { range = [5, 40], weight = 0.4 } }
forbidden_args = ["speed"]
mock_result = "ok"

[[cases.steps]]
tool = "set_tv"
args = { power = "off" }

[[cases.steps]]
user = "Thanks."
"""
LIGHTS: CallSpec = ("set_lights", {"room": "hall", "brightness": 60})
TV: CallSpec = ("set_tv", {"power": "on"})


def ran(*answers: Sequence[CallSpec]) -> Trajectory:
    """Return a run of a chain with one answer for each step, which makes these calls."""
    rounds = tuple(
        Round(
            number,
            calls=tuple(CallRecord(ToolCall(f"c{number}-{at}", *call), number) for at, call in enumerate(calls)),
            stop_reason="tool calls" if calls else "answered",
            step=StepStarted(number, None, None),
        )
        for number, calls in enumerate(answers, 1)
    )
    start = RunStarted("hash", "evening", "Evening", "model", None, (), ())
    return Trajectory("run", start, rounds, RunFinished("steps done"))


def status(edited: Edited, run: Trajectory) -> tuple[str, list[str | None]]:
    _, whole, steps = grade_run_and_steps(edited.suite, edited.case, run)
    return whole, [step.status for step in steps]


def steps_of(case: Table) -> list[dict[str, Any]]:
    steps = case["steps"]
    assert isinstance(steps, list)
    return steps


def test_each_step_takes_the_first_call_of_its_answer_and_keeps_all_else() -> None:
    edited, run = Edited(CHAIN), ran([LIGHTS, TV], [TV], [])
    first, second, third = steps_of(edited.accept(run))
    assert first == {
        "user": "Dim the hall, then turn the TV on.",
        "system": "Be quick.",
        "tool": "set_lights",
        "args": {"room": {"one_of": ["hall", "bath"], "weight": 0.6}, "brightness": {"equals": 60, "weight": 0.4}},
        "forbidden_args": ["speed"],
        "mock_result": "ok",
    }
    assert second == {"tool": "set_tv", "args": {"power": "on"}}
    assert third == {"user": "Thanks."}
    assert "# as they say it" in edited.text.text and "# the lamp" in edited.text.text
    assert status(edited, ran([LIGHTS], [TV], [])) == ("passed", ["passed"] * 3)


def test_a_step_whose_answer_called_nothing_expects_no_call() -> None:
    edited, run = Edited(CHAIN), ran([], [TV], [])
    proposal = edited.propose(run)
    assert proposal.dropped_tools == ("set_lights in step 1",)
    first, *_ = steps_of(edited.take(proposal))
    assert first == {"user": "Dim the hall, then turn the TV on.", "system": "Be quick.", "mock_result": "ok"}
    assert "expect_no_calls" not in edited.table
    assert status(edited, run) == ("passed", ["passed"] * 3)


def test_a_run_without_any_call_leaves_the_steps_without_one() -> None:
    edited = Edited(CHAIN)
    case = edited.accept(ran([], [], []))
    assert [step.get("tool") for step in steps_of(case)] == [None] * 3
    assert status(edited, ran([], [], [])) == ("passed", ["passed"] * 3)


def test_a_step_that_was_never_reached_stays_as_it_is() -> None:
    edited = Edited(CHAIN)
    before = steps_of(edited.table)[1:]
    assert steps_of(edited.accept(ran([TV])))[1:] == before


def test_another_tool_is_expected_where_another_was_called() -> None:
    edited = Edited(CHAIN)
    proposal = edited.propose(ran([TV], [LIGHTS], [TV]))
    assert proposal.dropped_tools == ("set_lights in step 1", "set_tv in step 2")
    assert [call.step for call in proposal.calls] == [1, 2, 3]
    first, second, third = steps_of(edited.take(proposal))
    assert first == {
        "user": "Dim the hall, then turn the TV on.",
        "system": "Be quick.",
        "tool": "set_tv",
        "args": {"power": "on"},
        "mock_result": "ok",
    }
    assert second == {"tool": "set_lights", "args": {"room": "hall", "brightness": 60}}
    assert third == {"user": "Thanks.", "tool": "set_tv", "args": {"power": "on"}}


def test_what_the_grader_paired_otherwise_is_held_against_its_own_step() -> None:
    edited, run = Edited(CHAIN), ran([LIGHTS], [TV], [])
    crossed = [CallPairing(0, 1, same_tool=False, tool_score=0.0, tool_weight=1.0)]
    (first, _) = accept_run(edited.case, edited.table, run, crossed).calls
    assert [argument.choice.kind for argument in first.arguments] == ["as written", "exact"]


def test_one_call_goes_into_its_own_step() -> None:
    edited = Edited(CHAIN)
    before = steps_of(edited.table)
    steps = steps_of(edited.accept(ran([LIGHTS, TV], [TV], []), 2))
    assert steps == [before[0], {"tool": "set_tv", "args": {"power": "on"}}, before[2]]


def test_one_step_is_taken_by_itself_called_or_not() -> None:
    edited, run = Edited(CHAIN), ran([LIGHTS], [], [])
    before = steps_of(edited.table)
    proposal = accept_steps(edited.case, edited.table, run, (), only=2)
    assert (proposal.only_removes, proposal.summary) == (True, "Evening: set_tv in step 2 is no longer expected")
    assert steps_of(edited.take(proposal)) == [before[0], {}, before[2]]
    with pytest.raises(AcceptError, match="nothing was called in step 3"):
        accept_steps(edited.case, edited.table, run, (), only=3)
    with pytest.raises(AcceptError, match="step 2 was never reached"):
        accept_steps(edited.case, edited.table, ran([LIGHTS]), (), only=2)


def test_only_the_first_call_of_an_answer_goes_into_a_step() -> None:
    with pytest.raises(AcceptError, match="first call of an answer"):
        Edited(CHAIN).propose(ran([LIGHTS, TV], [TV], []), 1)


def test_a_call_that_never_came_is_expected_no_more() -> None:
    edited = Edited(CHAIN)
    proposal = accept_missing(edited.case, 1)
    assert proposal.summary == "Evening: set_tv in step 2 is no longer expected"
    assert [step.get("tool") for step in steps_of(edited.take(proposal))] == ["set_lights", None, None]


def test_broken_arguments_are_in_the_way_only_where_they_are_judged() -> None:
    edited, run = Edited(CHAIN), ran([LIGHTS, TV], [TV], [])
    broken = CallRecord(ToolCall("c", "set_tv", {}, "{", "not JSON"), 1)
    first = run.rounds[0]
    second_broken = (Round(1, calls=(first.calls[0], broken), step=first.step), *run.rounds[1:])
    assert accept_run(edited.case, edited.table, Trajectory("run", run.start, second_broken, run.finish), ())
    first_broken = (Round(1, calls=(broken,), step=first.step), *run.rounds[1:])
    with pytest.raises(AcceptError, match="broken"):
        accept_call(edited.case, edited.table, Trajectory("run", run.start, first_broken, run.finish), (), 0)


_arguments = st.dictionaries(st.sampled_from(["a", "b", "present", "args"]), json_values, max_size=2)
_answers = st.lists(st.tuples(st.sampled_from(["set_lights", "set_tv", "x"]), _arguments), max_size=2)
_runs = st.tuples(_answers, _answers, _answers).map(lambda answers: ran(*answers))


@given(_runs)
@settings(max_examples=examples(100))
def test_every_step_of_a_run_that_was_accepted_passes(run: Trajectory) -> None:
    edited = Edited(CHAIN)
    try:
        edited.accept(run)
    except SpliceError:
        assume(False)
    first_calls = ran(*[[(call.tool, call.arguments) for call in round_.calls[:1]] for round_ in run.rounds])
    assert status(edited, first_calls) == ("passed", ["passed"] * 3)
    assert edited.accept(run) == edited.table, "accepting again changes nothing"


# One call at a time, from the run pane


def taken(case: Table) -> dict[str, Any]:
    """Return the case, written into the suite and read back."""
    edited = Edited(CHAIN)
    edited.text = edited.text.with_case(0, case)
    assert edited.suite
    return edited.table


def test_an_answer_becomes_the_mock_of_its_step() -> None:
    case = case_with_mock(Edited(CHAIN).table, "set_tv", {"power": "on"}, ToolAnswer('{"ok":true}'), step=2)
    assert steps_of(taken(case))[1] == {"tool": "set_tv", "args": {"power": "off"}, "mock_result": {"ok": True}}


def test_an_error_becomes_a_mock_of_the_case_and_the_step_has_none() -> None:
    case = taken(case_with_mock(Edited(CHAIN).table, "set_lights", {}, ToolAnswer("503", is_error=True), step=1))
    assert "mock_result" not in steps_of(case)[0]
    assert case["mocks"] == [{"tool": "wave", "result": 1}, {"tool": "set_lights", "error": "503"}]


@pytest.mark.parametrize("step", [0, 4])
def test_a_step_that_the_case_has_not_is_refused(step: int) -> None:
    with pytest.raises(ValueError, match=f"no step {step}"):
        case_with_mock(Edited(CHAIN).table, "wave", {}, ToolAnswer("ok"), step=step)


def test_only_the_first_call_of_a_step_is_the_steps() -> None:
    assert [step_of(ran([LIGHTS, TV], [TV], []), call) for call in range(3)] == [1, None, 2]
