"""The `decision` grader on runs that no published result covers: several calls, checks, chains, issues."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.strategies import checks, json_objects, json_values
from tests.tables import each_row
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.decision import grade_decision
from workbench.grading.grade import Grade
from workbench.grading.status import Status
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue, StepStarted, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory


def graded(case: Case, *calls: CallSpec) -> Grade:
    return grade_decision(case, Grading(), trajectory_of(*calls))


def outcomes(grade: Grade) -> list[str]:
    return [line.outcome for line in grade.pairings]


def test_calls_are_compared_place_by_place_and_the_score_is_their_mean() -> None:
    case = case_of(call("a", {"x": 1}), call("b", {"y": 2}))
    grade = graded(case, ("a", {"x": 1}), ("b", {"y": 3}))
    assert [line.credit for line in grade.pairings] == pytest.approx([1, 2 / 3])
    assert grade.score == pytest.approx(5 / 6)
    assert grade.verdict == Status.WARNED
    parts = {"should_call": 1, "tool_name": 1, "arguments": 0.5}
    assert grade.numbers == {"items": 2, "total": pytest.approx(5 / 3), **parts}


def test_a_missing_call_is_a_refusal_without_arguments() -> None:
    grade = graded(case_of(call("a", {"x": 1})))
    assert grade.pairings[0].parts == {"should_call": 0, "tool_name": 1, "arguments": 0}
    assert grade.score == pytest.approx(1 / 3)
    assert [issue.kind for issue in grade.issues] == ["missing call"]


def test_a_call_too_many_is_an_item_of_its_own_that_scores_0() -> None:
    grade = graded(case_of(call("a")), ("a", {}), ("b", {}))
    assert outcomes(grade) == ["right", "too many"]
    assert grade.score == 0.5
    assert [(issue.kind, issue.call) for issue in grade.issues] == [("extra call", 1)]


def test_where_no_call_is_expected_only_silence_is_right() -> None:
    case = case_of(expect_no_calls=True)
    assert graded(case).score == 1
    assert graded(case, ("a", {})).score == pytest.approx(2 / 3)
    assert graded(case, ("a", {"x": 1})).score == pytest.approx(1 / 3)
    assert graded(case, ("a", {"x": 1}), ("b", {})).score == pytest.approx(1 / 6)


def test_another_spelling_of_the_tool_is_another_tool_and_its_arguments_count_all_the_same() -> None:
    grade = graded(case_of(call("doc.search", {"q": "x"})), ("doc_search", {"q": "x"}))
    assert grade.pairings[0].parts == {"should_call": 1, "tool_name": 0, "arguments": 1}
    assert [issue.kind for issue in grade.issues] == ["wrong tool"]


def test_calls_in_the_wrong_order_are_told_from_wrong_tools() -> None:
    case = case_of(call("a"), call("b"))
    assert [issue.kind for issue in graded(case, ("b", {}), ("a", {})).issues] == ["wrong order"] * 2
    assert [issue.kind for issue in graded(case, ("b", {}), ("c", {})).issues] == ["wrong tool"] * 2


def test_an_argument_too_many_costs_half_of_one_and_is_an_issue() -> None:
    grade = graded(case_of(call("a", {"x": 1, "y": 2})), ("a", {"x": 1, "y": 2, "z": 3}))
    assert grade.pairings[0].parts["arguments"] == 0.75
    assert [(issue.kind, issue.argument) for issue in grade.issues] == [("unexpected argument", "z")]
    verdicts = grade.pairings[0].arguments
    assert [(verdict.argument, verdict.score, verdict.weight, verdict.listed) for verdict in verdicts] == [
        ("x", 0.5, 0.5, True),
        ("y", 0.5, 0.5, True),
        ("z", -0.25, 0.0, False),
    ]


def test_arguments_too_many_are_not_called_wrong_ones() -> None:
    grade = graded(case_of(call("a", {"x": 1})), ("a", {"x": 1, "y": 2, "z": 3}))
    assert [line.outcome for line in grade.pairings] == ["right tool, too many arguments"]
    assert graded(case_of(call("a", {})), ("a", {"x": 1})).pairings[0].outcome == "right tool, too many arguments"


def test_the_arguments_that_a_call_of_another_tool_has_too_many_are_listed_too() -> None:
    [line] = graded(case_of(call("a", {"x": 1})), ("b", {"x": 1, "y": 2})).pairings
    assert [(verdict.argument, verdict.score) for verdict in line.arguments] == [("x", 1.0), ("y", -0.5)]


@each_row(
    ("check", "value", "credit"),
    [
        ({"present": True}, None, 1),
        ({"equals_null": True}, None, 1),
        ({"equals": 1}, True, 1),
        ({"equals": 5}, "5", 0),
        ({"one_of": ["a", "b"]}, "b", 1),
        ({"near": 10, "tolerance": 2}, 11.5, 1),
        ({"similar": "weather report", "threshold": 0.5}, "weather", 1),
        ({"contains": "x"}, "abc", 0),
    ],
)
def test_a_check_that_holds_counts_in_full(check: dict[str, Any], value: JsonValue, credit: float) -> None:
    grade = graded(case_of(call("a", {"x": check})), ("a", {"x": value}))
    assert grade.pairings[0].parts["arguments"] == credit


def test_an_optional_argument_that_is_left_out_is_as_if_it_were_not_listed() -> None:
    case = case_of(call("a", {"x": 1, "y": {"equals": 2, "optional": True}}))
    assert graded(case, ("a", {"x": 1})).score == 1
    assert graded(case, ("a", {"x": 1, "y": 3})).pairings[0].parts["arguments"] == 0.5


def test_a_case_without_expectations_is_not_for_this_grader() -> None:
    assert graded(case_of(disallowed=[call("a")])).verdict == "not applicable"


def test_broken_arguments_count_as_none() -> None:
    broken = ToolCall("call-0", "a", raw='{"x": ', problem="JSON that ends too early")
    grade = grade_decision(case_of(call("a", {"x": 1})), Grading(), trajectory_of(broken))
    assert grade.pairings[0].parts["arguments"] == 0


STEPS = [{"user": "go", **call("a", {"x": 1})}, {"user": "thanks"}, call("b")]


def chain(*rounds: list[CallSpec]) -> Grade:
    case = Case.model_validate({"name": "chain", "steps": STEPS})
    made = []
    for number, calls in enumerate(rounds, start=1):
        records = tuple(CallRecord(ToolCall(f"{number}.{index}", *spec), number) for index, spec in enumerate(calls))
        made.append(Round(number, calls=records))
    return grade_decision(case, Grading(), Trajectory("run", rounds=tuple(made)))


def test_a_step_is_judged_by_the_first_call_of_its_round() -> None:
    grade = chain([("a", {"x": 1}), ("c", {})], [], [("b", {"any": 1})])
    assert grade.score == 1
    assert [(line.expected_call, line.call) for line in grade.pairings] == [(0, 0), (1, 2)]


def test_a_step_without_its_call_has_not_the_right_tool() -> None:
    grade = chain([("a", {"x": 2})], [], [])
    assert [dict(line.parts) for line in grade.pairings] == [
        {"tool_name": 1, "arguments": 0},
        {"tool_name": 0, "arguments": 1},
    ]
    assert grade.numbers == pytest.approx({"items": 3, "total": 2, "tool_name": 2 / 3, "arguments": 2 / 3})


def test_a_step_that_was_never_reached_earns_nothing() -> None:
    grade = chain([("a", {"x": 1})])
    assert outcomes(grade) == ["right", "never reached"]
    assert grade.numbers == pytest.approx({"items": 3, "total": 1, "tool_name": 1 / 3, "arguments": 1 / 3})
    assert [(issue.kind, issue.expected_call) for issue in grade.issues] == [("missing call", 1)]


def test_a_round_that_is_no_step_s_shifts_none() -> None:
    case = Case.model_validate({"name": "chain", "steps": STEPS[:1], "response_contains": ["x"]})
    step = Round(1, calls=(CallRecord(ToolCall("1", "a", {"x": 1}), 1),), step=StepStarted(1))
    asked_for_an_answer = Round(2, calls=(CallRecord(ToolCall("2", "b", {}), 2),))
    grade = grade_decision(case, Grading(), Trajectory("run", rounds=(step, asked_for_an_answer)))
    assert [(line.expected_call, line.call, line.credit) for line in grade.pairings] == [(0, 0, 1)]


def test_a_step_that_expects_no_call_is_wrong_with_one() -> None:
    grade = chain([("a", {"x": 1})], [("c", {"x": 1})], [("b", {})])
    assert outcomes(grade) == ["right", "called where nothing should be", "right"]
    assert grade.score == pytest.approx(2 / 3)
    assert [(issue.kind, issue.call) for issue in grade.issues] == [("extra call", 1)]


TOOLS = st.sampled_from(["a", "b", "c"])
ARGUMENTS = st.sampled_from(["x", "y", "z"])
actual_calls = st.lists(
    st.tuples(TOOLS, st.dictionaries(ARGUMENTS, json_values, max_size=3) | json_objects), max_size=4
)
expected_calls = st.lists(
    st.builds(
        lambda tool, args: ExpectedCall(tool=tool, args=args),
        TOOLS,
        st.none() | st.dictionaries(ARGUMENTS, checks(), max_size=3),
    ),
    max_size=4,
)
plain_calls = st.lists(
    st.tuples(TOOLS, st.dictionaries(ARGUMENTS, st.integers() | st.text(max_size=3), max_size=3)), max_size=4
)


def expecting(calls: list[ExpectedCall]) -> Case:
    return Case(id="case", name="case", user="go", ordered=tuple(calls), expect_no_calls=not calls)


@given(expected_calls, actual_calls)
def test_the_score_is_the_mean_of_the_credits_and_within_bounds(
    expected: list[ExpectedCall], calls: list[CallSpec]
) -> None:
    grade = graded(expecting(expected), *calls)
    assert grade.score is not None and 0 <= grade.score <= 1
    assert grade.score == pytest.approx(grade.numbers["total"] / grade.numbers["items"])
    assert grade.numbers["items"] == max(len(expected), len(calls), 1)
    earned = sum(line.credit for line in grade.pairings)
    assert grade.numbers["total"] == pytest.approx(earned if grade.pairings else 1)
    for line in grade.pairings:
        assert line.credit == pytest.approx(sum(line.parts.values()) / 3)


@given(plain_calls)
def test_calls_as_expected_score_1_and_have_no_issue(calls: list[CallSpec]) -> None:
    grade = graded(case_of(*(call(tool, dict(args)) for tool, args in calls), expect_no_calls=not calls), *calls)
    assert grade.score == 1
    assert grade.verdict == Status.PASSED
    assert grade.issues == ()


@given(expected_calls, actual_calls, TOOLS)
def test_one_more_call_than_enough_never_helps(expected: list[ExpectedCall], calls: list[CallSpec], tool: str) -> None:
    enough = calls + [("a", {})] * (len(expected) - len(calls))
    with_more = graded(expecting(expected), *enough, (tool, {})).score
    without = graded(expecting(expected), *enough).score
    assert with_more is not None and without is not None
    assert with_more <= without
