from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import QUANTITY_FREE, critics
from tests.strategies import checks, is_finite, json_objects, json_values
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.critics import grade_critics
from workbench.grading.grade import GradingError
from workbench.grading.status import Status
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import Grading

TOOLS = st.sampled_from(["alpha", "beta", "Al.pha", "al_pha"])
ARGUMENTS = st.sampled_from(["a", "b", "c"])
WEIGHTS = st.none() | st.sampled_from(["minimal", "critical"]) | st.floats(min_value=0, max_value=10)

actual_calls: st.SearchStrategy[list[CallSpec]] = st.lists(
    st.tuples(TOOLS, st.dictionaries(ARGUMENTS, json_values, max_size=3) | json_objects), max_size=4
)
expected_calls = st.lists(
    st.builds(
        lambda tool, args: ExpectedCall(tool=tool, args=args),
        TOOLS,
        st.none() | st.dictionaries(ARGUMENTS, checks(weights=WEIGHTS), max_size=3),
    ),
    min_size=1,
    max_size=4,
)
gradings = st.builds(
    lambda weight, quantity, selection: critics(
        tool_selection_weight=weight, fail_on_tool_call_quantity=quantity, fail_on_tool_selection=selection
    ),
    st.floats(min_value=0, max_value=10),
    st.booleans(),
    st.booleans(),
)


def case_of(expected: list[ExpectedCall]) -> Case:
    return Case(id="case", name="case", user="go", unordered=tuple(expected))


@given(expected_calls, actual_calls, gradings)
def test_a_score_lies_between_0_and_1(expected: list[ExpectedCall], calls: list[CallSpec], grading: Grading) -> None:
    grade = grade_critics(case_of(expected), grading, trajectory_of(*calls))
    assert grade.score is not None
    assert 0.0 <= grade.score <= 1.0


@given(expected_calls, actual_calls, gradings, st.data())
def test_the_order_of_the_calls_does_not_matter(
    expected: list[ExpectedCall], calls: list[CallSpec], grading: Grading, data: st.DataObject
) -> None:
    case = case_of(expected)
    shuffled = data.draw(st.permutations(calls))
    first = grade_critics(case, grading, trajectory_of(*calls))
    second = grade_critics(case, grading, trajectory_of(*shuffled))
    assert first.score == pytest.approx(second.score, abs=1e-8)


@given(expected_calls, actual_calls, gradings)
def test_every_call_stands_in_one_line(expected: list[ExpectedCall], calls: list[CallSpec], grading: Grading) -> None:
    pairings = grade_critics(case_of(expected), grading, trajectory_of(*calls)).pairings
    assert sorted(line.call for line in pairings if line.call is not None) == list(range(len(calls)))
    assert sorted(line.expected_call for line in pairings if line.expected_call is not None) == list(
        range(len(expected))
    )


@given(expected_calls, actual_calls)
def test_the_published_rules_never_stumble(expected: list[ExpectedCall], calls: list[CallSpec]) -> None:
    grading = critics(arcade_compatible=True, **QUANTITY_FREE)
    try:
        grade = grade_critics(case_of(expected), grading, trajectory_of(*calls))
    except GradingError as error:
        assert "different checks or weights" in str(error)
        return
    assert grade.score is not None


PLAIN: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    ARGUMENTS, json_values.filter(lambda value: is_finite(value) and value is not None), max_size=3
)


@given(st.lists(st.tuples(TOOLS, PLAIN), min_size=1, max_size=4), st.data())
def test_calls_just_as_expected_score_1_in_any_order(calls: list[CallSpec], data: st.DataObject) -> None:
    expected = [
        ExpectedCall.model_validate({"tool": tool, "args": {name: {"equals": value} for name, value in args.items()}})
        for tool, args in calls
    ]
    made = data.draw(st.permutations(calls))
    grade = grade_critics(case_of(expected), Grading(), trajectory_of(*made))
    assert grade.score == 1.0
    assert grade.verdict == Status.PASSED
    assert [issue for issue in grade.issues if issue.kind != "unexpected argument"] == []
