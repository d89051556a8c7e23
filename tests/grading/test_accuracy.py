"""The `accuracy` grader on runs that no published result covers: checks, ties, issues and invariants."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.strategies import checks, json_objects, json_values
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import CheckContext, CheckVerdict
from workbench.checks.combined_kinds import Judged
from workbench.checks.value_kinds import Present
from workbench.grading.accuracy import grade_accuracy
from workbench.grading.grade import Grade, GradingError
from workbench.suite.expected_calls import ExpectedCall, with_forbidden
from workbench.suite.model import Case
from workbench.suite.settings import AccuracyOptions, Grading
from workbench.trajectory.events import JsonValue, ToolCall


def graded(case: Case, *calls: CallSpec | ToolCall, mode: str = "exact", **options: Any) -> Grade:
    grading = Grading(by="accuracy", accuracy=AccuracyOptions(mode=mode, **options))
    return grade_accuracy(case, grading, trajectory_of(*calls))


def lines(grade: Grade) -> list[tuple[int | None, int | None, str, float]]:
    return [(line.expected_call, line.call, line.outcome, line.credit) for line in grade.pairings]


def test_exact_mode_compares_place_by_place_and_counts_surplus_twice() -> None:
    case = case_of(call("a", {"x": 1}), call("b"))
    grade = graded(case, ("a", {"x": 2}), ("b", {"y": 1}), ("c", {}))
    assert lines(grade) == [
        (0, 0, "right name only", 0.5),
        (1, 1, "exact", 1),
        (None, 2, "extra, counts twice", -0.5),
    ]
    assert grade.score == 0.5
    assert grade.numbers == {"expected": 2, "made": 3, "exact": 1, "name_only": 1, "wrong": 2}


def test_exact_mode_does_not_punish_a_missing_call() -> None:
    grade = graded(case_of(call("a"), call("b")), ("a", {}))
    assert lines(grade) == [(0, 0, "exact", 1), (1, None, "missing", 0)]
    assert [issue.kind for issue in grade.issues] == ["missing call"]


def test_flexible_mode_finds_every_exact_pair_before_any_other() -> None:
    case = case_of(call("a", {"x": 1}), call("a", {"x": 2}), call("b"))
    grade = graded(case, ("a", {"x": 3}), ("a", {"x": 1}), ("c", {}), mode="flexible")
    assert lines(grade) == [
        (0, 1, "exact", 1),
        (1, 0, "right name only", 0.5),
        (2, None, "missing", 0),
        (None, 2, "extra", -0.25),
    ]
    assert grade.numbers == {"expected": 3, "made": 3, "exact": 1, "name_only": 1, "extra": 1, "missing": 1}


def test_a_loose_check_does_not_take_the_call_that_a_strict_one_needs() -> None:
    case = case_of(call("a", {"x": {"one_of": [1, 2]}}), call("a", {"x": 1}))
    assert graded(case, ("a", {"x": 1}), ("a", {"x": 2}), mode="flexible").score == 1
    assert graded(case, ("a", {"x": 2}), ("a", {"x": 1}), mode="flexible").score == 1


def test_without_args_anything_goes_in_exact_mode_and_only_a_call_without_arguments_in_flexible_mode() -> None:
    case = case_of(call("a"))
    assert graded(case, ("a", {"x": 1})).score == 1
    assert graded(case, ("a", {}), mode="flexible").score == 1
    grade = graded(case, ("a", {"x": 1}), mode="flexible")
    assert grade.score == 0.5
    assert [(issue.kind, issue.argument) for issue in grade.issues] == [("unexpected argument", "x")]


def test_an_empty_input_is_wanted_and_was_given() -> None:
    assert graded(case_of(call("a", {})), ("a", {}), mode="flexible").score == 1


def test_an_argument_too_many_spoils_the_input_and_is_an_issue() -> None:
    grade = graded(case_of(call("a", {"x": 1})), ("a", {"x": 1, "y": 2}))
    assert grade.score == 0.5
    assert [(issue.kind, issue.argument) for issue in grade.issues] == [("unexpected argument", "y")]
    assert [(verdict.argument, verdict.holds, verdict.listed) for verdict in grade.pairings[0].arguments] == [
        ("x", True, True),
        ("y", False, False),
    ]


def test_a_number_is_never_a_boolean_and_checks_decide_for_themselves() -> None:
    assert graded(case_of(call("a", {"x": 1})), ("a", {"x": True})).score == 0.5
    assert graded(
        case_of(call("a", {"x": {"range": [1, 3]}, "y": {"present": True}})), ("a", {"x": 2, "y": None})
    ).score


def test_an_optional_argument_may_be_left_out() -> None:
    case = case_of(call("a", {"x": 1, "y": {"equals": 2, "optional": True}}))
    assert graded(case, ("a", {"x": 1})).score == 1
    assert graded(case, ("a", {"x": 1, "y": 3})).score == 0.5


def test_calls_in_the_wrong_order_are_told_from_wrong_tools() -> None:
    case = case_of(call("a"), call("b"))
    assert [issue.kind for issue in graded(case, ("b", {}), ("a", {})).issues] == ["wrong order"] * 2
    assert graded(case, ("b", {}), ("a", {}), mode="flexible").issues == ()


def test_a_case_without_expectations_is_not_for_this_grader() -> None:
    assert graded(case_of(disallowed=[call("a")])).verdict == "not applicable"


def test_weights_that_cannot_be_added_up_are_refused() -> None:
    huge: dict[str, Any] = {"name_only": 1e308, "wrong_penalty": 1e308}
    with pytest.raises(GradingError, match="too large"):
        graded(case_of(*[call("a", {"x": 1})] * 4), *[("a", {})] * 4, *[("b", {})] * 4, **huge)


TOOLS = st.sampled_from(["a", "b"])
ARGUMENTS = st.sampled_from(["x", "y"])
values = st.integers(0, 2) | st.booleans() | json_values
actual_calls = st.lists(st.tuples(TOOLS, st.dictionaries(ARGUMENTS, values, max_size=2) | json_objects), max_size=4)
expected_calls = st.lists(
    st.builds(
        lambda tool, args: ExpectedCall(tool=tool, args=args),
        TOOLS,
        st.none() | st.dictionaries(ARGUMENTS, checks(), max_size=2),
    ),
    max_size=4,
)
plain_calls = st.lists(
    st.tuples(TOOLS, st.dictionaries(ARGUMENTS, st.integers() | st.text(max_size=3), max_size=2)), max_size=4
)
modes = st.sampled_from(["exact", "flexible"])
weights = st.floats(-1, 2)


def expecting(calls: list[ExpectedCall]) -> Case:
    return Case(id="case", name="case", user="go", ordered=tuple(calls), expect_no_calls=not calls)


@given(expected_calls, actual_calls, modes, weights, weights, weights)
def test_the_score_is_made_of_the_credits_and_within_bounds(
    expected: list[ExpectedCall], calls: list[CallSpec], mode: str, name_only: float, extra: float, wrong: float
) -> None:
    options = {"name_only": name_only, "extra_penalty": extra, "wrong_penalty": wrong}
    grade = graded(expecting(expected), *calls, mode=mode, **options)
    assert grade.score is not None and 0 <= grade.score <= 1
    if expected and calls:
        earned = sum(line.credit for line in grade.pairings) / len(expected)
        assert grade.score == pytest.approx(min(max(earned, 0), 1))


@given(expected_calls, actual_calls, modes)
def test_every_call_stands_in_one_line(expected: list[ExpectedCall], calls: list[CallSpec], mode: str) -> None:
    pairings = graded(expecting(expected), *calls, mode=mode).pairings
    assert sorted(line.call for line in pairings if line.call is not None) == list(range(len(calls)))
    assert [line.expected_call for line in pairings if line.expected_call is not None] == list(range(len(expected)))


@given(plain_calls, modes)
def test_calls_as_expected_score_1_and_have_no_issue(calls: list[CallSpec], mode: str) -> None:
    case = case_of(*(call(tool, dict(args)) for tool, args in calls), expect_no_calls=not calls)
    grade = graded(case, *calls, mode=mode)
    assert grade.score == 1
    assert grade.issues == ()


@given(expected_calls, actual_calls, st.data())
def test_flexible_mode_is_free_of_the_order_of_calls_and_of_expectations(
    expected: list[ExpectedCall], calls: list[CallSpec], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(calls))
    rearranged = data.draw(st.permutations(expected))
    first = graded(expecting(expected), *calls, mode="flexible")
    second = graded(expecting(rearranged), *shuffled, mode="flexible")
    assert first.score == second.score
    assert first.numbers == second.numbers


@given(expected_calls, actual_calls)
def test_flexible_mode_finds_as_many_exact_pairs_as_there_can_be(
    expected: list[ExpectedCall], calls: list[CallSpec]
) -> None:
    grade = graded(expecting(expected), *calls, mode="flexible")
    if not expected or not calls:
        return
    fits = [[graded(expecting([one]), other, mode="flexible").score == 1 for other in calls] for one in expected]
    places = [*range(len(calls)), *[None] * len(expected)]
    best = max(
        sum(place is not None and fits[row][place] for row, place in enumerate(chosen))
        for chosen in itertools.permutations(places, len(expected))
    )
    assert grade.numbers["exact"] == best


@example([ExpectedCall(tool="a", args={"x": Present(present=False)})], [("a", {"x": 1})])
@given(expected_calls, actual_calls)
def test_flexible_mode_never_scores_below_exact_mode_but_for_calls_whose_arguments_do_not_matter(
    expected: list[ExpectedCall], calls: list[CallSpec]
) -> None:
    # A call whose checks only forbid arguments leaves all other arguments free, as if it had no `args`.
    with_args = [
        one if with_forbidden(one).args is not None else ExpectedCall(tool=one.tool, args={}) for one in expected
    ]
    exact = graded(expecting(with_args), *calls).score
    flexible = graded(expecting(with_args), *calls, mode="flexible").score
    assert exact is not None and flexible is not None
    assert flexible >= exact - 1e-9


@pytest.mark.parametrize("mode", ["exact", "flexible"])
def test_no_judge_is_asked_about_a_call_that_is_wrong_without_it(mode: str) -> None:
    asked: list[object] = []

    def judge(_check: Judged, value: JsonValue) -> CheckVerdict:
        asked.append(value)
        return CheckVerdict(1.0, True)

    judged = {"judged": "is polite"}
    case = case_of(*(call("say", {"to": name, "text": judged}) for name in ("a", "b", "c")))
    calls: list[CallSpec] = [
        ("say", {"text": "for b", "to": "b"}),
        ("say", {"text": "for a", "to": "a"}),
        ("say", {"text": "for c", "to": "c", "loud": True}),
    ]
    grading = Grading(by="accuracy", accuracy=AccuracyOptions(mode=mode))
    grade = grade_accuracy(case, grading, trajectory_of(*calls), context=CheckContext(judge=judge))
    assert sorted(map(str, asked)) == ([] if mode == "exact" else ["for a", "for b"])
    last = grade.pairings[2].arguments
    assert [(each.argument, each.holds) for each in last] == [("to", True), ("text", None), ("loud", False)]
    assert last[1].why == "not judged, because the call is already wrong"
