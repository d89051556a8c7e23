"""Pairing large runs by shared features gives the same result as comparing all pairs."""

from __future__ import annotations

import random
import time
from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading import critics, dimensions, matching, trajectory
from workbench.grading.grade import Grade
from workbench.grading.matching import NOT_ALL_COMPARED
from workbench.grading.requirements import extra_call_rule_of
from workbench.grading.run import grade_run
from workbench.grading.trajectory import grade_trajectory
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading

LOOSE = {
    "critics": {"fail_on_tool_call_quantity": False, "fail_on_tool_selection": False},
    "accuracy": {"mode": "flexible"},
}


def grade(by: GraderName, case: Case, made: list[CallSpec], **grading: Any) -> Grade:
    suite = Suite.model_validate({"format": 1, "name": "s", "grading": {"by": by, **LOOSE, **grading}})
    return grade_run(suite, case, trajectory_of(*made))[0][0]


def transfer(number: int) -> dict[str, Any]:
    return {"from": "savings", "to": f"payee {number}", "amount": number, "currency": "EUR"}


def unordered(*calls: dict[str, Any]) -> Case:
    return case_of(unordered=list(calls))


@pytest.mark.parametrize("by", ["critics", "accuracy", "trajectory", "dimensions"])
def test_right_calls_are_paired_whatever_their_order_and_a_wrong_one_with_what_is_left(by: GraderName) -> None:
    size = 150
    case = unordered(*(call("transfer", transfer(number)) for number in range(size)))
    made: list[CallSpec] = [("transfer", transfer(number)) for number in range(size)]
    for order in (made[::-1], random.Random(1).sample(made, size)):
        right = grade(by, case, order)
        assert (right.score, right.status) == (1.0, "passed")
        assert NOT_ALL_COMPARED not in right.reason
    stolen = [(tool, {**args, "to": "Mallory"} if args["amount"] == 70 else args) for tool, args in made[::-1]]
    wrong = grade(by, case, stolen)
    assert [line.call for line in wrong.pairings if line.expected_call == 70] == [size - 71]
    assert sum(line.credit >= 1 for line in wrong.pairings) >= size - 1
    # The wrong call earns no more elsewhere, so this pairing is known to be the best.
    assert NOT_ALL_COMPARED not in wrong.reason


@pytest.mark.slow
def test_where_a_better_pairing_may_exist_the_reason_says_so() -> None:
    size = 400
    ranges = [call("f", {"n": {"range": [number, number + 0.5]}}) for number in range(size)]
    suite = Suite.model_validate({"format": 1, "name": "s", "grading": LOOSE})
    run = trajectory_of(*(("f", {"n": -number - 1}) for number in range(size)))
    case = case_of(*ranges)
    assert NOT_ALL_COMPARED in grade_trajectory(case, extra_call_rule_of(case, Grading(), run), run).reason
    grades, _ = grade_run(suite, unordered(*ranges), run)
    assert [grade.grader for grade in grades if NOT_ALL_COMPARED not in grade.reason] == ["decision"]


LARGE = {
    "2,000 each": ([transfer(number) for number in range(2_000)], [transfer(1_999 - at) for at in range(2_000)]),
    "400 and 10,000": ([transfer(number) for number in range(400)], [transfer(10_000 - at) for at in range(10_000)]),
    "ranges": ([{"n": {"range": [at, at]}} for at in range(100)], [{"n": -number} for number in range(5_000)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_thousands_of_calls_are_graded_in_seconds(name: str) -> None:
    expected, made = LARGE[name]
    suite = Suite.model_validate({"format": 1, "name": "s", "grading": LOOSE})
    case = case_of(*(call("transfer", args) for args in expected))
    run = trajectory_of(*(("transfer", args) for args in made))
    began = time.process_time()
    grade_run(suite, case, run)
    assert time.process_time() - began < 15, "all five graders; about one second where nothing else is done"


_values = st.sampled_from([0, 1, 1.0, True, "1", "a", "A", "e\u0301", "\u00e9", None, [1], [True], {"k": 1}])
_checks = _values.map(lambda value: {"equals_null": True} if value is None else value) | st.sampled_from(
    [{"range": [0, 1]}, {"present": True}, {"equals": 1, "optional": True}, {"one_of": ["a", 1]}]
)
_expected = st.lists(
    st.tuples(st.sampled_from(["f", "g", "F"]), st.none() | st.dictionaries(st.sampled_from("xy"), _checks)), max_size=4
)
_made = st.lists(st.tuples(st.sampled_from(["f", "g"]), st.dictionaries(st.sampled_from("xyz"), _values)), max_size=4)


@pytest.mark.parametrize("by", ["accuracy", "trajectory"])
@given(expected=_expected, made=_made, groups=st.booleans())
def test_looking_calls_up_comes_to_what_comparing_all_does(
    by: GraderName, expected: list[tuple[str, Any]], made: list[CallSpec], groups: bool
) -> None:
    calls = [call(tool, args) for tool, args in expected]
    case = case_of(*([{"any_order": calls}] if groups and calls else calls), unordered=calls[:2], expect_no_calls=False)
    plain = grade(by, case, made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "FEW_PAIRS", -1)
        assert grade(by, case, made) == plain


@pytest.mark.parametrize("by", ["critics", "dimensions"])
@given(expected=_expected.filter(bool), made=_made.filter(bool), order=st.randoms(use_true_random=False))
@example([("g", {"x": {"equals": 1, "optional": True}})], [("g", {"x": 0}), ("g", {})], random.Random(0))  # reversed
@example([("f", None), ("f", {"x": {"equals_null": True}})], [("f", {}), ("f", {"x": 0})], random.Random(0))
@settings(deadline=None)
def test_perfect_matches_come_first_and_the_pairing_that_is_called_the_best_is(
    by: GraderName, expected: list[tuple[str, Any]], made: list[CallSpec], order: random.Random
) -> None:
    case = unordered(*(call(tool, args) for tool, args in expected))
    best = grade(by, case, made)
    with pytest.MonkeyPatch.context() as patch:
        for module in (matching, critics, dimensions, trajectory):
            patch.setattr(module, "MAX_PAIRS", 0)
        patch.setattr(matching, "FEW_PAIRS", -1)
        large = grade(by, case, made)
        if large.numbers and NOT_ALL_COMPARED not in large.reason:
            assert gained(by, large) == pytest.approx(gained(by, best))
        assert perfect(large) >= most_perfect(by, case, made, expected)
        if by == "critics":
            assert perfect(grade(by, case, order.sample(made, len(made)))) == perfect(large)


def gained(by: GraderName, graded: Grade) -> float:
    """Return the gain that the pairing maximises."""
    lines = [line for line in graded.pairings if line.expected_call is not None and line.call is not None]
    if by == "dimensions":
        return sum(line.credit for line in lines)
    return sum(
        line.tool_score + sum(verdict.score for verdict in line.arguments if verdict.got is not None) for line in lines
    )


def perfect(graded: Grade) -> int:
    """Lines in which all arguments are right."""
    return sum(
        line.call is not None and line.same_tool and all(verdict.holds for verdict in line.arguments)
        for line in graded.pairings
        if line.expected_call is not None
    )


def most_perfect(by: GraderName, case: Case, made: list[CallSpec], expected: list[tuple[str, Any]]) -> int:
    """Return how many expected calls of plain values can have an equal call, found by trying all pairings."""

    def equal(want: tuple[str, Any], got: CallSpec) -> bool:
        tool, args = want
        return (
            tool == got[0]
            and args is not None
            and all(
                not isinstance(value, dict) and name in got[1] and repr(got[1][name]) == repr(value)
                for name, value in args.items()
            )
        )

    if by == "dimensions":  # which looks at as many of the first calls as a tool is expected
        first = {tool: [each for each in made if each[0] == tool] for tool, _ in expected}
        numbers = {tool: sum(each[0] == tool for each in expected) for tool, _ in expected}
        made = [each for tool, calls in first.items() for each in calls[: numbers[tool]]]
    padded = [*made, *([("", {})] * len(expected))]
    return max(
        sum(equal(want, got) for want, got in zip(expected, chosen, strict=True))
        for chosen in permutations(padded[: len(made) + 1] if len(made) >= len(expected) else padded[:5], len(expected))
    )
