"""Accepting the calls of a model: the case expects them afterwards, and its looser checks stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.authoring.edited_suite import EditedCase
from tests.example_counts import examples
from tests.strategies import json_values
from tests.trajectories import CallSpec
from workbench.authoring.accept import accept_call, accept_missing, accept_run
from workbench.authoring.proposal import AcceptError, Proposal, choices_for
from workbench.grading.critics import grade_critics
from workbench.grading.grade import CallPairing
from workbench.grading.run import grade_run
from workbench.suite.settings import settings_of
from workbench.suite.suite_text import SpliceError
from workbench.trajectory.events import JsonValue, RunFinished, RunStarted, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

HEAD = 'format = 1\nname = "S"\n\n'
CASE = '[[cases]]\nname = "One"\nuser = "Go."  # as they say it\n'


def ran(*answers: Sequence[CallSpec | ToolCall]) -> Trajectory:
    """Return a run whose answers make these calls, followed by an answer without calls."""
    rounds = []
    for number, calls in enumerate(answers, 1):
        made = [
            call if isinstance(call, ToolCall) else ToolCall(f"c{number}-{at}", *call) for at, call in enumerate(calls)
        ]
        records = tuple(CallRecord(call, number) for call in made)
        rounds.append(Round(number, calls=records, stop_reason="tool calls"))
    rounds.append(Round(len(rounds) + 1, text="Done.", stop_reason="answered"))
    start = RunStarted("hash", "one", "One", "model", None, (), ())
    return Trajectory("run", start, tuple(rounds), RunFinished("answered"))


class Edited(EditedCase):
    """A suite of one case while runs of it are accepted."""

    def __init__(self, text: str) -> None:
        super().__init__(HEAD + text)

    def propose(self, run: Trajectory, call: int | None = None) -> Proposal:
        pairings = grade_critics(self.case, settings_of(self.suite, self.case).grading, run).pairings
        if call is None:
            return accept_run(self.case, self.table, run, pairings)
        return accept_call(self.case, self.table, run, pairings, call)

    def take(self, proposal: Proposal) -> dict[str, Any]:
        self.text = self.text.with_case(0, proposal.applied(self.table))
        assert self.suite
        return self.table

    def accept(self, run: Trajectory, call: int | None = None) -> dict[str, Any]:
        return self.take(self.propose(run, call))

    def status(self, run: Trajectory) -> str:
        return grade_run(self.suite, self.case, run)[1]


LIGHTS: CallSpec = ("set_lights", {"room": "hall", "brightness": 60})
TV: CallSpec = ("set_tv", {"power": "on"})


def test_a_run_becomes_the_sequence_of_its_calls_with_exact_values() -> None:
    edited = Edited(CASE)
    assert edited.accept(ran([LIGHTS], [TV]))["ordered"] == [
        {"tool": "set_lights", "args": {"room": "hall", "brightness": 60}},
        {"tool": "set_tv", "args": {"power": "on"}},
    ]
    assert "# as they say it" in edited.text.text


def test_the_id_is_written_out() -> None:
    assert Edited(CASE).accept(ran([TV]))["id"] == "one"


def test_a_case_that_says_it_already_stays_as_it_is() -> None:
    edited = Edited(CASE + '[[cases.ordered]]\ntool = "set_tv"\nargs = { power = "on" }\n')
    proposal = edited.propose(ran([TV]))
    assert proposal.applied(edited.table) is edited.table


def test_calls_of_one_answer_may_come_in_any_order() -> None:
    case = Edited(CASE).accept(ran([LIGHTS, TV], [TV]))
    assert [list(item) for item in case["ordered"]] == [["any_order"], ["tool", "args"]]


def test_a_run_without_calls_says_that_none_is_expected() -> None:
    case = Edited(CASE + '[[cases.ordered]]\ntool = "t"\n[[cases.unordered]]\ntool = "u"\n').accept(ran())
    assert case["expect_no_calls"] is True
    assert "ordered" not in case
    assert "unordered" not in case


def test_what_expected_no_calls_expects_those_that_were_made() -> None:
    case = Edited(CASE + "expect_no_calls = true\n").accept(ran([TV]))
    assert "expect_no_calls" not in case
    assert case["ordered"] == [{"tool": "set_tv", "args": {"power": "on"}}]


def test_a_check_that_holds_is_kept_and_one_that_does_not_becomes_exact() -> None:
    edited = Edited(
        CASE + '[[cases.ordered]]\ntool = "set_lights"  # the lamp\n'
        'args = { room = { one_of = ["hall", "bath"] }, brightness = { range = [5, 40] } }\n'
    )
    case = edited.accept(ran([LIGHTS]))
    assert case["ordered"][0]["args"] == {"room": {"one_of": ["hall", "bath"]}, "brightness": 60}
    assert "# the lamp" in edited.text.text


def test_a_placeholder_becomes_the_value_that_came_and_can_be_kept() -> None:
    args = "args = { room = { present = true }, brightness = { present = true, optional = true } }\n"
    edited = Edited(CASE + f'[[cases.ordered]]\ntool = "set_lights"\n{args}')
    proposal = edited.propose(ran([LIGHTS]))
    assert [choice.kind for choice in proposal.calls[0].arguments[0].choices][:2] == ["as written", "exact"]
    # A check with an option was written by a person.
    written = {"room": LIGHTS[1]["room"], "brightness": {"present": True, "optional": True}}
    assert edited.take(proposal)["ordered"][0]["args"] == written


def test_a_check_that_holds_only_in_part_becomes_exact_and_can_be_chosen() -> None:
    edited = Edited(
        CASE + '[[cases.ordered]]\ntool = "say"\nargs = { text = { similar = "good night", threshold = 0.3 } }\n'
    )
    proposal = edited.propose(ran([("say", {"text": "good night to all of you"})]))
    (argument,) = proposal.calls[0].arguments
    assert argument.choice.kind == "exact"
    assert argument.choices[0].kind == "as written"


def test_weights_and_options_stay_with_their_arguments() -> None:
    edited = Edited(
        CASE + '[[cases.ordered]]\ntool = "set_lights"\n'
        'args = { room = { equals = "bath", weight = "high" }, '
        'speed = { equals = 1, weight = "low", optional = true } }\n'
    )
    assert edited.accept(ran([LIGHTS]))["ordered"][0]["args"] == {
        "room": {"equals": "hall", "weight": "high"},
        "brightness": {"equals": 60, "weight": "high"},
        "speed": {"equals": 1, "weight": "low", "optional": True},
    }


def test_the_order_that_is_written_stays_where_the_run_fits_it() -> None:
    edited = Edited(
        CASE
        + '[[cases.unordered]]\ntool = "set_tv"\nargs = { power = "off" }\n[[cases.ordered]]\ntool = "set_lights"\n'
    )
    case = edited.accept(ran([LIGHTS, TV]))
    assert case["unordered"] == [{"tool": "set_tv", "args": {"power": "on"}}]
    assert case["ordered"][0]["args"] == {"room": "hall", "brightness": 60}


def test_what_the_case_says_beside_its_calls_stays() -> None:
    more = 'tags = ["a"]\nresponse_contains = ["done"]\n[[cases.disallowed]]\ntool = "drop"\n'
    more += '[[cases.mocks]]\ntool = "t"\nresult = 1\n'
    case = Edited(CASE + more).accept(ran([TV]))
    assert case["tags"] == ["a"]
    assert case["response_contains"] == ["done"]
    assert case["disallowed"] == [{"tool": "drop"}]
    assert case["mocks"] == [{"tool": "t", "result": 1}]


def test_one_call_replaces_the_expectation_it_was_paired_with() -> None:
    edited = Edited(
        CASE + '[[cases.ordered]]\ntool = "set_lights"\nargs = { room = "bath" }\n'
        '[[cases.ordered]]\ntool = "set_tv"\nargs = { power = "off" }\n'
    )
    case = edited.accept(ran([LIGHTS], [TV]), 1)
    assert [call["args"] for call in case["ordered"]] == [{"room": "bath"}, {"power": "on"}]


def test_one_call_that_was_not_expected_stands_behind_the_one_before_it() -> None:
    edited = Edited(CASE + '[[cases.ordered]]\ntool = "set_lights"\n[[cases.ordered]]\ntool = "close"\n')
    case = edited.accept(ran([LIGHTS], [TV], [("close", {})]), 1)
    assert [call["tool"] for call in case["ordered"]] == ["set_lights", "set_tv", "close"]


def test_one_call_joins_the_unordered_ones_where_there_are_only_those() -> None:
    edited = Edited(CASE + '[[cases.unordered]]\ntool = "set_lights"\n')
    case = edited.accept(ran([LIGHTS], [TV]), 1)
    assert [call["tool"] for call in case["unordered"]] == ["set_lights", "set_tv"]


@pytest.mark.parametrize(("expected", "left"), [(0, ["b", "c"]), (1, ["a", "c"]), (2, ["a", "b"])])
def test_a_missing_call_is_expected_no_more(expected: int, left: list[str]) -> None:
    edited = Edited(
        CASE + '[[cases.ordered]]\ntool = "a"\n[[cases.ordered]]\nany_order = [{ tool = "b" }]\n'
        '[[cases.unordered]]\ntool = "c"\n'
    )
    edited.take(accept_missing(edited.case, expected))
    assert [call.tool for call in edited.case.expected_calls()] == left


def test_every_expectation_that_will_be_gone_is_named_and_counted() -> None:
    edited = Edited(
        CASE + '[[cases.ordered]]\ntool = "say"\nargs = { to = "Ann", note = { similar = "guests" }, mode = "kind" }\n'
        'forbidden_args = ["loud"]\n[[cases.unordered]]\ntool = "wave"\n'
    )
    proposal = edited.propose(ran([("say", {"to": "Ann", "loud": True})]))
    assert proposal.calls[0].dropped == (
        ("note", 'similar to "guests"'),
        ("mode", '"kind"'),
        ("loud", "must not be given"),
    )
    assert proposal.dropped_tools == ("wave",)
    assert proposal.dropped_count == 4
    assert proposal.with_other_check(0, 0, -1).dropped_count == 5


def test_that_no_calls_were_expected_is_dropped_too() -> None:
    assert Edited(CASE + "expect_no_calls = true\n").propose(ran([TV])).dropped_tools == ("no calls at all",)


def test_a_call_of_another_tool_drops_the_one_it_was_paired_with() -> None:
    edited = Edited(CASE + '[[cases.ordered]]\ntool = "set_lights"\n')
    pairings = [CallPairing(0, 0, same_tool=False, tool_score=0.0, tool_weight=1.0)]
    assert accept_call(edited.case, edited.table, ran([TV]), pairings, 0).dropped_tools == ("set_lights",)


def test_an_argument_can_be_checked_in_another_way_or_left_out() -> None:
    edited = Edited(CASE)
    proposal = edited.propose(ran([LIGHTS]))
    kinds = [choice.kind for choice in proposal.calls[0].arguments[1].choices]
    assert kinds == ["exact", "near", "range", "present", "leave out"]
    proposal = proposal.with_other_check(0, 1, 2).with_other_check(0, 0, -1)
    assert edited.take(proposal)["ordered"] == [{"tool": "set_lights", "args": {"brightness": {"range": [54, 66]}}}]


def test_a_call_all_of_whose_arguments_are_left_out_takes_any() -> None:
    edited = Edited(CASE)
    assert edited.take(edited.propose(ran([TV])).with_other_check(0, 0, -1))["ordered"] == [{"tool": "set_tv"}]


def test_a_call_without_arguments_expects_none() -> None:
    assert Edited(CASE).accept(ran([("stop", {})]))["ordered"] == [{"tool": "stop", "args": {}}]


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("2024-05-01", ["exact", "similar", "contains", "datetime", "present", "leave out"]),
        (None, ["exact", "present", "leave out"]),
        ([None], ["present", "leave out"]),
        ("\ud800", ["present", "leave out"]),
        (True, ["exact", "present", "leave out"]),
    ],
)
def test_only_checks_that_a_suite_can_say_and_the_value_meets_are_offered(value: JsonValue, kinds: list[str]) -> None:
    assert [choice.kind for choice in choices_for("x", value)] == kinds


def test_a_call_with_broken_arguments_says_why_it_cannot_be_accepted() -> None:
    with pytest.raises(AcceptError, match="broken"):
        Edited(CASE).propose(ran([ToolCall("c", "t", {}, "{", "not JSON")]))


_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
_arguments = st.dictionaries(st.one_of(_names, st.sampled_from(["args", "present", "weight"])), json_values, max_size=3)
_calls = st.tuples(st.sampled_from(["set_lights", "set.tv", "x"]), _arguments)
_runs = st.lists(st.lists(_calls, min_size=1, max_size=3), max_size=3).map(lambda answers: ran(*answers))


@given(_runs, _runs, st.randoms(use_true_random=False))
@settings(max_examples=examples(100))
def test_a_run_that_was_accepted_passes(before: Trajectory, run: Trajectory, random: Any) -> None:
    edited = Edited(CASE)
    try:
        edited.accept(before)
        proposal = edited.propose(run)
        for number, call in enumerate(proposal.calls):
            for at in range(len(call.arguments)):
                proposal = proposal.with_other_check(number, at, random.choice([0, 0, 1, 2]))
        edited.take(proposal)
    except SpliceError:
        assume(False)
    assert edited.status(run) == "passed"
    assert edited.accept(run) == edited.accept(run), "accepting again changes nothing"


def test_a_call_of_any_tool_stays_one_and_only_the_arguments_written_stay_the_only_ones() -> None:
    edited = Edited("[[cases]]\nname = 'One'\nuser = 'u'\n[[cases.ordered]]\ntool = '*'\n")
    assert edited.accept(ran([LIGHTS]))["ordered"] == [{"tool": "*"}]
    text = "[[cases]]\nname = 'One'\nuser = 'u'\n[[cases.ordered]]\ntool = 'set_lights'\nonly_args = true\n"
    edited = Edited(text + "args = { room = 'hall' }\n")
    proposal = edited.propose(ran([LIGHTS]))
    assert proposal.calls[0].dropped == (("brightness", "must not be given"),)
    taken = {"tool": "set_lights", "only_args": True, "args": {"room": "hall", "brightness": 60}}
    assert edited.take(proposal)["ordered"] == [taken]
    assert edited.status(ran([LIGHTS])) == "passed"
