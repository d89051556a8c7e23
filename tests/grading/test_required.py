"""A required argument that does not match fails the run. The score still follows the formula."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import call, case_of
from tests.grading.test_steps import run_of
from tests.tables import each_row
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.explanation import explain
from workbench.grading.grade import Grade, RunResult, reason_of
from workbench.grading.repeats import case_result
from workbench.grading.run import grade_run, grade_run_and_steps
from workbench.grading.status import Status
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of

PAY: dict[str, Any] = {"from": "savings", "to": "Alice", "amount": 20, "currency": "EUR", "memo": "lunch"}
STOLEN = {**PAY, "to": "Mallory"}
approx: Any = pytest.approx
FREE = {"fail_on_tool_call_quantity": False, "fail_on_tool_selection": False}


def suite_of(by: str = "critics", **grading: Any) -> Suite:
    return Suite.model_validate({"format": 1, "name": "s", "grading": {"by": by, **grading}})


def graded(case: Case, *calls: CallSpec, by: str = "critics", **grading: Any) -> tuple[Grade, Status]:
    (grade, *_), status = grade_run(suite_of(by, **grading), case, trajectory_of(*calls))
    return grade, status


def test_a_wrong_argument_without_a_weight_fails_the_run_and_says_which() -> None:
    suite, case, run = suite_of(), case_of(call("transfer", PAY)), trajectory_of(("transfer", STOLEN))
    grades, status = grade_run(suite, case, run)
    grade = grades[0]
    assert (grade.score, grade.verdict, status) == (approx(0.9), "passed", "failed")
    result = RunResult("r", "s", case.id, case.name, "m", 0, status, run, grades)
    assert result.reason == "wrong argument: transfer.to: not equal"
    assert reason_of(grade) == "wrong argument: transfer.to"
    assert [issue.argument for issue in explain(grade, settings_of(suite, case).grading).deciding_issues] == ["to"]
    assert [verdict.argument for verdict in grade.pairings[0].arguments if not verdict.required] == []
    # A mean of repeats does not hide it.
    right, passed = grade_run(suite, case, trajectory_of(("transfer", PAY)))
    assert passed == "passed"
    by_mean = settings_of(suite_of(repeat_rule="mean"), case).grading
    runs = [
        RunResult("r", "s", case.id, case.name, "m", repeat, of, run, grades, grading=by_mean)
        for repeat, (of, grades) in enumerate([(passed, right)] * 9 + [(status, grades)])
    ]
    assert case_result(runs).status == "failed"


@each_row(
    ("checks", "options", "status"),
    [
        ({"to": {"equals": "Alice", "required": False}}, {}, "passed"),
        ({"to": {"equals": "Alice", "required": True}}, {"arcade_compatible": True}, "failed"),
        ({}, {"arcade_compatible": True}, "passed"),
        ({name: {"equals": value, "weight": 0.2} for name, value in PAY.items()}, {}, "passed"),
        (
            {name: {"equals": value, "weight": 0.2, "required": name == "to"} for name, value in PAY.items()},
            {},
            "failed",
        ),
        ({"to": {"equals": "Alice", "optional": True}}, {}, "failed"),
        ({"to": {"one_of": ["Alice", "Bob"]}}, {}, "failed"),
    ],
)
def test_weights_and_required_say_what_must_hold(
    checks: dict[str, Any], options: dict[str, Any], status: Status
) -> None:
    grade, got = graded(case_of(call("transfer", {**PAY, **checks})), ("transfer", STOLEN), critics=options)
    assert (grade.score, got) == (approx(0.9, abs=0.01), status)


def test_an_optional_argument_that_is_left_out_is_fine_and_a_call_that_is_missing_is_not() -> None:
    case = case_of(call("f", {"a": 1, "b": {"equals": 2, "optional": True}}))
    assert graded(case, ("f", {"a": 1}))[1] == "passed"
    many = [call("f", {"n": number}) for number in range(10)]
    made = [("f", {"n": number}) for number in range(9)]
    grade, status = graded(case_of(*many), *made, critics=FREE)
    assert (grade.verdict, status) == ("passed", "failed")
    assert [issue.kind for issue in grade.issues if issue.decides] == ["missing call"]
    # If a rule decided before anything was scored, its reason stays.
    grade, status = graded(case_of(*many), *made)
    assert (grade.score, status, reason_of(grade)) == (0.0, "failed", "quantity: 10 calls expected, 9 made")
    assert not any(issue.decides for issue in grade.issues)


def test_a_check_that_holds_in_part_holds() -> None:
    case = case_of(call("f", {"n": {"near": 5, "value_range": [0, 10]}}))
    grade, status = graded(case, ("f", {"n": 6}))
    assert (grade.score, status) == (approx(0.95), "passed")
    assert graded(case, ("f", {"n": 8}), fail_threshold=0.1, warn_threshold=0.1)[1] == "failed"


def test_groups_and_the_steps_of_a_chain_are_held_to_it_too() -> None:
    wrong = {**PAY, "memo": "dinner"}
    group = {"any_order": [call("transfer", PAY), call("transfer", {**PAY, "to": "Bob"})]}
    assert graded(case_of(group), ("transfer", {**wrong, "to": "Bob"}), ("transfer", PAY))[1] == "failed"
    chain = Case.model_validate({"name": "c", "steps": [{"user": "go", "tool": "transfer", "args": PAY}]})
    run = run_of([("transfer", wrong)])
    _, status, (step,) = grade_run_and_steps(suite_of(), chain, run)
    assert (step.status, status, step.why) == ("failed", "failed", "wrong argument: transfer.memo")
    assert step.score == approx(0.9)


OTHERS = {
    "decision": ({}, 0.933),
    "accuracy": ({"accuracy": {"name_only": 0.95}}, 0.95),
    "dimensions": ({}, 0.97),
    "trajectory": ({}, 0),
}


@pytest.mark.parametrize("by", OTHERS)
def test_the_other_graders_require_what_is_written_as_required(by: str) -> None:
    options, score = OTHERS[by]
    plain, status = graded(case_of(call("transfer", PAY)), ("transfer", STOLEN), by=by, **options)
    assert (plain.score, status) == (approx(score, abs=1e-3), "failed" if by == "trajectory" else "passed")
    strict = {**PAY, "to": {"equals": "Alice", "required": True}}
    grade, status = graded(case_of(call("transfer", strict)), ("transfer", STOLEN), by=by, **options)
    assert (grade.score, grade.verdict, status) == (plain.score, plain.verdict, "failed")
    if by != "trajectory":
        assert [issue.argument for issue in grade.issues if issue.decides] == ["to"]


_values = st.sampled_from(["a", "b", 1, 2, True, None, [1]])
_arguments = st.dictionaries(st.sampled_from("pqrs"), _values, max_size=4)
_calls = st.lists(st.tuples(st.sampled_from(["f", "g"]), _arguments), max_size=4)


@given(expected=_calls, made=_calls, free=st.booleans(), weight=st.sampled_from([0.0, 1.0, 100.0]))
def test_no_run_with_a_wrong_argument_passes_unless_it_has_a_weight(
    expected: list[CallSpec], made: list[CallSpec], free: bool, weight: float
) -> None:
    def check(value: Any) -> Any:
        return {"equals_null": True} if value is None else value

    case = case_of(*(call(tool, {name: check(value) for name, value in args.items()}) for tool, args in expected))
    if not expected:
        case = case_of(expect_no_calls=True)
    options = {"tool_selection_weight": weight, **(FREE if free else {})}
    grade, status = graded(case, *made, critics=options, fail_threshold=0.1, warn_threshold=0.2)
    wrong = any(
        verdict.holds is not True
        for line in grade.pairings
        if line.expected_call is not None
        for verdict in line.arguments
    )
    if wrong:
        assert status == "failed"
    elif not any(issue.decides for issue in grade.issues):
        assert status == grade.verdict
