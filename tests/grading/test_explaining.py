"""Explanations of grades: the filled-in formula equals the score, and the credits of the lines add up to it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from tests.chains import chain_run
from tests.grading.cases import call
from tests.tables import each_row
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.dimensions import SHARES
from workbench.grading.explanation import (
    Amount,
    Clamped,
    Difference,
    Explanation,
    Product,
    Quotient,
    Rounded,
    Sum,
    dimension_terms,
    disagreement,
    evaluate,
    explain,
    formula_in_numbers,
    formula_in_words,
)
from workbench.grading.grade import Grade, GradingError, reason_of
from workbench.grading.pairing_issues import ALLOWED_EXTRA_CALL
from workbench.grading.run import GRADERS_BY_NAME, grade_run
from workbench.numerals import figure
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.trajectory import Trajectory

SLACK = 1e-9
VALUES = st.sampled_from([1, 2, "a", True, None])
ARGS = st.none() | st.dictionaries(
    st.sampled_from("xyz"),
    VALUES.filter(lambda value: value is not None)
    | st.sampled_from(
        [{"range": [0, 1]}, {"near": 2, "tolerance": 1, "weight": 0.3}, {"present": True}, {"one_of": [1], "weight": 0}]
    )
    | st.just({"equals": 1, "optional": True}),
    max_size=3,
)
EXPECTED = st.builds(
    lambda tool, args, forbidden: call(tool, args, forbidden_args=forbidden),
    st.sampled_from("abc"),
    ARGS,
    st.just([]) | st.just(["w"]),
)
MADE = st.dictionaries(st.sampled_from("wxyz"), VALUES, max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from("abcd"), MADE), max_size=5)
ANSWERS = st.lists(st.lists(st.tuples(st.sampled_from("abc"), MADE), max_size=2), max_size=4)
OPTIONS = st.fixed_dictionaries(
    {"by": st.sampled_from([*GRADERS_BY_NAME])},
    optional={
        "fail_threshold": st.sampled_from([0.0, 0.5, 0.95]),
        "critics": st.fixed_dictionaries(
            {},
            optional={
                "tool_selection_weight": st.sampled_from([0.0, 0.5, 2.0]),
                "fail_on_tool_selection": st.booleans(),
                "fail_on_tool_call_quantity": st.booleans(),
                "arcade_compatible": st.booleans(),
            },
        ),
        "accuracy": st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["exact", "flexible"]),
                "name_only": st.sampled_from([0.0, 0.7]),
                "extra_penalty": st.sampled_from([0.0, 1.0]),
                "wrong_penalty": st.sampled_from([0.1, 1.0]),
            },
        ),
    },
)
CASES = st.one_of(
    st.fixed_dictionaries(
        {"ordered": st.lists(EXPECTED, max_size=3)},
        optional={
            "unordered": st.lists(EXPECTED, max_size=2),
            "disallowed": st.lists(EXPECTED, max_size=2),
            "extra_calls": st.sampled_from(["allow", "forbid", "allow_read_only", ["a"], ["b", "*"]]),
            "response_contains": st.lists(st.sampled_from(["done", "sorry"]), max_size=2),
        },
    ),
    st.fixed_dictionaries({"expect_no_calls": st.just(True)}, optional={"response_contains": st.just(["sorry"])}),
)
CHAINS = st.fixed_dictionaries(
    {
        "steps": st.lists(
            st.builds(lambda wanted: {"user": "go", **wanted}, EXPECTED) | st.just({"user": "go"}),
            min_size=1,
            max_size=4,
        )
    },
    optional={"response_contains": st.lists(st.sampled_from(["done", "sorry"]), max_size=2)},
)
Run = tuple[dict[str, Any], Trajectory]
RUNS: st.SearchStrategy[Run] = st.one_of(
    st.tuples(CASES, CALLS.map(lambda calls: trajectory_of(*calls, answer="Done."))),
    st.tuples(CHAINS, ANSWERS.map(lambda answers: chain_run(*answers))),
)
"""Cases, ordinary ones and chains, with runs of them, some of which do not come to all steps."""


def graded(case: dict[str, Any], calls: list[CallSpec], grading: dict[str, Any]) -> list[tuple[Grade, Explanation]]:
    """Every grader's grade of a run with these calls, explained."""
    return graded_run((case, trajectory_of(*calls, answer="Done.")), grading)


def graded_run(run: Run, grading: dict[str, Any]) -> list[tuple[Grade, Explanation]]:
    """The same of any run."""
    case, trajectory = run
    suite = Suite.model_validate({"format": 1, "name": "suite", "grading": grading})
    read = Case.model_validate({"name": "case", "user": "go", **case})
    try:
        grades, _ = grade_run(suite, read, trajectory)
    except GradingError:
        reject()  # critics that `arcade_compatible` refuses
    return [(grade, explain(grade, settings_of(suite, read).grading)) for grade in grades]


@given(RUNS, OPTIONS)
@example(({"ordered": []}, trajectory_of(answer="Done.")), {"by": "critics"})
def test_the_filled_formula_is_the_score(run: Run, grading: dict[str, Any]) -> None:
    for grade, explanation in graded_run(run, grading):
        assert (grade.score is None) == (explanation.formula is None and not explanation.shortcut), grade
        if explanation.formula is not None:
            assert math.isclose(evaluate(explanation.formula), grade.score or 0.0, abs_tol=SLACK), grade
            assert explanation.rule == formula_in_words(explanation.formula) or grade.grader == "decision"
            assert formula_in_numbers(explanation.formula)


@given(RUNS, OPTIONS)
@example(
    (
        {"unordered": [{"tool": "a"}], "extra_calls": ["a"]},
        trajectory_of(("a", {}), ("a", {}), ("b", {}), answer="Done."),
    ),
    {"by": "dimensions"},
)
def test_what_the_lines_add_is_the_score(run: Run, grading: dict[str, Any]) -> None:
    case, _ = run
    for grade, explanation in graded_run(run, grading):
        assert len(explanation.contributions) == len(grade.pairings)
        if explanation.formula is None:
            continue
        total = math.fsum(account.share or 0.0 for account in explanation.contributions if account is not None)
        if grade.grader == "dimensions":
            assert total == 0
            found = dimension_terms(grade, len(case.get("response_contains", [])))
            assert {facet.name: evaluate(facet.formula) for facet in found} == pytest.approx(
                {name: grade.numbers[name] for name in SHARES}
            )
        else:
            if grade.grader == "decision":
                # A decision not to call has no line. It earns everything, or nothing if the run never reached it.
                items = grade.numbers["items"]
                without_line = grade.numbers["total"] - math.fsum(line.credit for line in grade.pairings)
                counted = sum(line.outcome != ALLOWED_EXTRA_CALL for line in grade.pairings)
                assert -SLACK <= without_line <= items - counted + SLACK
                total += without_line / items
            raw = explanation.formula.term if isinstance(explanation.formula, Clamped) else explanation.formula
            assert math.isclose(total, evaluate(raw), abs_tol=SLACK), grade


@given(RUNS, OPTIONS)
def test_what_a_line_earned_comes_of_its_own_formula(run: Run, grading: dict[str, Any]) -> None:
    for grade, explanation in graded_run(run, grading):
        for line, account in zip(grade.pairings, explanation.contributions, strict=True):
            if account is None:
                continue
            assert (account.share or 0.0) <= (account.most or 0.0) + SLACK
            if account.arguments is not None:
                assert math.isclose(evaluate(account.arguments), line.parts["arguments"], abs_tol=SLACK)
            if account.formula is not None:
                assert math.isclose(evaluate(account.formula), line.credit, abs_tol=SLACK)


ONE = {"ordered": [call("a", {"x": 1})]}


@each_row(
    ("grader", "case", "calls", "options", "said"),
    [
        ("critics", ONE, [], {}, "fail_on_tool_call_quantity: 1 expected, 0 made, so the score is 0"),
        (
            "critics",
            ONE,
            [("b", {})],
            {},
            "fail_on_tool_selection: 'b' called where 'a' was expected, so the score is 0",
        ),
        ("critics", {"expect_no_calls": True}, [], {}, "no call is expected and none was made, so the score is 1"),
        (
            "critics",
            {"ordered": [call("a")]},
            [("a", {})],
            {},
            "no argument has a check, so the score is 1 whatever was called",
        ),
        (
            "critics",
            {"ordered": [call("a", {"x": {"equals": 1, "weight": 0}})]},
            [("a", {})],
            {"critics": {"tool_selection_weight": 0.0}},
            "nothing has a weight, so the score is 0",
        ),
        ("accuracy", ONE, [], {}, "no call was made, so the score is 0"),
        (
            "accuracy",
            {"expect_no_calls": True},
            [("a", {})],
            {},
            "calls were made, but none are expected, so the score is 0",
        ),
        ("trajectory", {"expect_no_calls": True}, [], {}, "nothing is expected, so the score is 1"),
        ("dimensions", {"expect_no_calls": True}, [("a", {})], {}, "calls were made, but none are allowed: 0"),
        (
            "dimensions",
            {"response_contains": ["sorry"]},
            [],
            {},
            "no call is expected, and a keyword is missing: 0.5",
        ),
    ],
)
def test_a_rule_that_decides_before_anything_is_added_up_is_named(
    grader: str, case: dict[str, Any], calls: list[CallSpec], options: dict[str, Any], said: str
) -> None:
    (explanation,) = [found for grade, found in graded(case, calls, options) if grade.grader == grader]
    assert explanation.shortcut == said
    assert explanation.formula is None
    assert set(explanation.contributions) <= {None}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"x": 1, "y": 1}, "1 reaches 0.9: passed"),
        ({"x": 1, "y": 2}, "0.833 reaches 0.8, but not 0.9: warned"),
        ({"x": 2, "y": 2}, "0.667 is below 0.8: failed"),
    ],
)
def test_what_the_thresholds_made_of_a_score_is_said(made: dict[str, Any], said: str) -> None:
    case = {"ordered": [call("a", {"x": 1, "y": 1})]}
    (explanation,) = [found for grade, found in graded(case, [("a", made)], {}) if grade.grader == "decision"]
    assert explanation.verdict == said


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([("a", {"x": 2}), ("b", {"y": 1})], "0.825 reaches 0.8, and no expected call is missing: passed"),
        ([("a", {"x": 2})], "0.525 is below 0.8, and an expected call is missing: failed"),
        ([("a", {"x": 2}), ("b", {}), ("c", {})], "0.575 is below 0.8: failed"),
    ],
)
def test_what_the_pass_mark_made_of_a_score_is_said(calls: list[CallSpec], said: str) -> None:
    case = {"ordered": [call("a", {"x": 1}), call("b", {"y": 1})], "response_contains": ["sorry"]}
    (explanation,) = [found for grade, found in graded(case, calls, {}) if grade.grader == "dimensions"]
    assert explanation.verdict == said


def test_that_extra_calls_cost_nothing_is_said_only_where_it_is_so() -> None:
    free = {"critics": {"fail_on_tool_call_quantity": False}}
    said = [
        " ".join(found.more)
        for options in ({}, free)
        for grade, found in graded(ONE, [("a", {"x": 1})], options)
        if grade.grader == "critics"
    ]
    assert ["costs nothing" in text for text in said] == [False, True]


def test_the_reason_of_a_run_that_fails_beside_the_score_is_what_fails_it() -> None:
    case = {"ordered": [call("a", {"x": 1}, forbidden_args=["note"])]}
    by = {grade.grader: grade for grade, _ in graded(case, [("a", {"x": 1, "note": 1})], {})}
    assert reason_of(by["critics"]) == "forbidden argument: a.note"
    assert reason_of(by["trajectory"]) == by["trajectory"].reason


def test_graders_that_would_fail_a_run_stand_against_those_that_would_not() -> None:
    grades = [grade for grade, _ in graded(ONE, [("a", {"x": 1}), ("a", {})], {})]
    sides = [(status, [grade.grader for grade in side]) for status, side in disagreement(grades)]
    assert sides == [("failed", ["critics", "decision", "accuracy"]), ("passed", ["trajectory", "dimensions"])]
    assert disagreement(grade for grade, _ in graded(ONE, [("a", {"x": 1})], {})) == ()


def test_a_formula_reads_as_one_writes_it() -> None:
    half, two = Amount(0.5), Amount(2, "calls")
    formula = Clamped(Quotient(Difference(Sum((Amount(-3, "exact"), Product(half, two))), Sum((half,))), two))
    assert formula_in_words(formula) == "(exact + 0.5 × calls − 0.5) ÷ calls, kept within 0..1"
    assert formula_in_numbers(formula) == "(−3 + 0.5 × 2 − 0.5) ÷ 2 = −1.25, kept within 0..1: 0"
    assert formula_in_words(Product(Sum((half, two)), Quotient(two, half))) == "(0.5 + calls) × (calls ÷ 0.5)"
    assert formula_in_numbers(Rounded(Amount(2 / 3))) == "0.667"
    assert [figure(value) for value in (0.0004, 1e9, -0.5, 1.0, math.inf)] == [
        "0.0004",
        "1000000000",
        "−0.5",
        "1",
        "inf",
    ]
