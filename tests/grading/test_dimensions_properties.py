from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import checks, json_objects, json_values
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.dimensions import grade_dimensions
from workbench.grading.grade import Grade
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import Limits

TOOLS = st.sampled_from(["alpha", "beta", "al_pha"])
ARGUMENTS = st.sampled_from(["a", "b", "c"])

actual_calls: st.SearchStrategy[list[CallSpec]] = st.lists(
    st.tuples(TOOLS, st.dictionaries(ARGUMENTS, json_values, max_size=3) | json_objects), max_size=4
)
expected_calls = st.lists(
    st.builds(
        lambda tool, args, forbidden: ExpectedCall(tool=tool, args=args, forbidden_args=tuple(forbidden)),
        TOOLS,
        st.none() | st.dictionaries(ARGUMENTS, checks(), max_size=3),
        st.lists(ARGUMENTS, max_size=1),
    ),
    max_size=4,
)
small = st.sampled_from([1, 2])
"""Few values, so that calls often fit and sums are often equal."""
calls_of_one_tool = st.lists(st.dictionaries(ARGUMENTS, small, max_size=3), max_size=4)
expectations_of_one_tool = st.lists(st.dictionaries(ARGUMENTS, small, max_size=3), min_size=1, max_size=4)


def graded(expected: Sequence[ExpectedCall], calls: Sequence[CallSpec], answer: str = "", **case: Any) -> Grade:
    document = Case(id="case", name="case", user="go", unordered=tuple(expected), **case)
    return grade_dimensions(document, Limits(), trajectory_of(*calls, answer=answer))


def expecting(tool: str, arguments: dict[str, Any]) -> ExpectedCall:
    return ExpectedCall.model_validate({"tool": tool, "args": arguments})


@given(expected_calls, actual_calls, st.lists(st.sampled_from(["yes", "no"])), st.booleans())
def test_score_and_dimensions_lie_between_0_and_1(
    expected: list[ExpectedCall], calls: list[CallSpec], keywords: list[str], none: bool
) -> None:
    grade = graded(expected, calls, "yes", response_contains=tuple(keywords), expect_no_calls=none)
    assert grade.score is not None
    assert all(0 <= amount <= 1 for name, amount in grade.numbers.items() if name != "latency_ms")
    assert 0 <= grade.score <= 1
    assert grade.verdict in ("passed", "failed")


@given(expected_calls, actual_calls)
def test_every_call_stands_in_one_line(expected: list[ExpectedCall], calls: list[CallSpec]) -> None:
    pairings = graded(expected, calls).pairings
    assert sorted(line.call for line in pairings if line.call is not None) == list(range(len(calls)))
    assert [line.expected_call for line in pairings if line.expected_call is not None] == list(range(len(expected)))


@given(expected_calls.filter(bool), actual_calls)
def test_parameters_are_the_mean_of_the_credits(expected: list[ExpectedCall], calls: list[CallSpec]) -> None:
    grade = graded(expected, calls)
    assert grade.numbers["parameters"] == pytest.approx(sum(line.credit for line in grade.pairings) / len(expected))
    for line in grade.pairings:
        if any(verdict.counted for verdict in line.arguments):
            assert line.credit == pytest.approx(sum(verdict.score for verdict in line.arguments))


@given(expected_calls.filter(bool), actual_calls, st.data())
def test_an_unexpected_call_more_never_raises_the_score(
    expected: list[ExpectedCall], calls: list[CallSpec], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(calls)))
    without, more = graded(expected, calls), graded(expected, [*calls[:at], ("gamma", {}), *calls[at:]])
    assert without.score is not None and more.score is not None
    assert more.score <= without.score
    assert (more.verdict, without.verdict) != ("passed", "failed")


@given(expected_calls.filter(bool), actual_calls, st.data())
def test_the_order_of_the_expected_calls_does_not_matter(
    expected: list[ExpectedCall], calls: list[CallSpec], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(expected))
    assert graded(shuffled, calls).score == graded(expected, calls).score


@given(expected_calls.filter(bool), actual_calls, st.data())
def test_the_order_of_the_calls_does_not_matter_where_none_is_one_too_many(
    expected: list[ExpectedCall], calls: list[CallSpec], data: st.DataObject
) -> None:
    tools = [call.tool for call in expected]
    made = [tool for tool, _ in calls]
    assume(all(made.count(tool) <= tools.count(tool) for tool in tools))
    assert graded(expected, data.draw(st.permutations(calls))).score == graded(expected, calls).score


@given(expectations_of_one_tool, calls_of_one_tool)
def test_calls_of_one_tool_are_paired_as_well_as_can_be(
    expected: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> None:
    wanted = [expecting("f", arguments) for arguments in expected]
    grade = graded(wanted, [("f", arguments) for arguments in calls])
    considered = calls[: len(expected)]
    credit = {
        (row, column): graded([wanted[row]], [("f", arguments)]).numbers["parameters"]
        for row in range(len(expected))
        for column, arguments in enumerate(considered)
    }
    places = [*range(len(considered)), *[len(expected)] * (len(expected) - len(considered))]
    # Among the pairings with the largest sum: the first by the calls of the first expectation, the second, and so on.
    best = min(permutations(places), key=lambda chosen: (-total(chosen, credit), chosen))
    found = {line.expected_call: line.call for line in grade.pairings if line.expected_call is not None}
    assert [found[row] if found[row] is not None else len(expected) for row in range(len(expected))] == list(best)


def total(chosen: Sequence[int], credit: dict[tuple[int, int], float]) -> float:
    return round(sum(credit.get((row, column), 0.0) for row, column in enumerate(chosen)), 9)


@given(st.lists(st.tuples(TOOLS, st.dictionaries(ARGUMENTS, small, max_size=3)), min_size=1, max_size=4), st.data())
def test_calls_just_as_expected_score_1_in_any_order(
    calls: list[tuple[str, dict[str, Any]]], data: st.DataObject
) -> None:
    expected = [expecting(tool, arguments) for tool, arguments in calls]
    grade = graded(expected, data.draw(st.permutations(calls)))
    assert (grade.score, grade.verdict, grade.issues) == (1.0, "passed", ())
