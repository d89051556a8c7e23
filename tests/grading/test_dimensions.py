from __future__ import annotations

from typing import Any

import pytest

from tests.grading.cases import call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.checks.patterns import CheckError
from workbench.grading.grade import Grade, JudgementNeededError
from workbench.grading.run import grade_by
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import ToolCall


def graded(case: Case, *calls: CallSpec | ToolCall, answer: str = "", context: CheckContext = EMPTY_CONTEXT) -> Grade:
    settings = settings_of(Suite(format=1, name="suite", cases=(case,)), case)
    return grade_by("dimensions", case, settings, trajectory_of(*calls, answer=answer), context)


def kinds(grade: Grade) -> list[str]:
    return [issue.kind for issue in grade.issues]


def test_a_missing_keyword_and_a_forbidden_argument_cost_their_share_and_decide_nothing() -> None:
    case = case_of(call("f", {"a": 1}, forbidden_args=["b"]), response_contains=["yes"])
    grade = graded(case, ("f", {"a": 1}))
    assert (grade.score, grade.status, kinds(grade)) == (0.9, "passed", ["response"])
    grade = graded(case, ("f", {"a": 1, "b": 2}), answer="Yes.")
    assert (grade.score, grade.status, kinds(grade)) == (0.85, "passed", ["forbidden argument"])


@pytest.mark.parametrize(
    ("more", "calls"),
    [
        ({"disallowed": [call("g")]}, [("f", {}), ("g", {})]),
        ({"extra_calls": "forbid"}, [("f", {}), ("f", {})]),
        ({"response": "no"}, [("f", {})]),
    ],
)
def test_what_the_published_system_does_not_know_decides_beside_it(more: dict[str, Any], calls: list[CallSpec]) -> None:
    grade = graded(case_of(call("f"), **more), *calls, answer="yes")
    assert (grade.verdict, grade.status) == ("passed", "failed")


def test_a_validator_that_raises_has_not_held() -> None:
    def broken(reference: str, value: object) -> object:
        raise ZeroDivisionError("by zero")

    case = case_of(call("f", {"a": {"python": "checks:broken", "optional": True}}))
    grade = graded(case, ("f", {"a": 1}), context=CheckContext(broken))
    assert (grade.numbers["parameters"], kinds(grade)) == (0.0, ["invalid argument"])
    assert "ZeroDivisionError" in grade.issues[0].why


def test_a_required_check_that_raises_and_a_validator_without_its_function_are_errors() -> None:
    required = case_of(call("f", {"a": {"python": "checks:broken"}}))
    with pytest.raises(CheckError, match=r"f\.a: .*raised ValueError: no"):
        graded(required, ("f", {"a": 1}), context=CheckContext(_raising(ValueError("no"))))
    optional = case_of(call("f", {"a": {"python": "checks:gone", "optional": True}}))
    with pytest.raises(CheckError, match=r"f\.a: .*needs a Python function"):
        graded(optional, ("f", {"a": 1}))
    with pytest.raises(CheckError, match=r"f\.a: .*cannot be called: not trusted"):
        graded(optional, ("f", {"a": 1}), context=CheckContext(_raising(CheckError("not trusted"))))


def _raising(error: Exception) -> Any:
    def function(reference: str, value: object) -> object:
        raise error

    return function


def test_a_judge_that_must_be_asked_first_is_asked() -> None:
    def needed(check: Any, value: Any) -> Any:
        raise JudgementNeededError(check, value)

    case = case_of(call("f", {"a": {"judged": "is polite", "optional": True}}))
    with pytest.raises(JudgementNeededError):
        graded(case, ("f", {"a": "Dear Sam"}), context=CheckContext(judge=needed))


def test_graded_checks_and_weights_give_no_share_in_between() -> None:
    near = {"near": 20, "value_range": [0, 100], "weight": 0.9}
    case = case_of(call("f", {"level": near, "room": {"equals": "hall", "weight": 0.1}}))
    assert graded(case, ("f", {"level": 30, "room": "hall"})).numbers["parameters"] == 1.0
    assert graded(case, ("f", {"level": 30, "room": "bath"})).numbers["parameters"] == 0.75


def test_arguments_show_what_each_entry_earned() -> None:
    optional = {"one_of": [1], "optional": True}
    case = case_of(call("f", {"a": 1, "b": 2, "c": optional, "d": optional}, forbidden_args=["z"]))
    (line,) = graded(case, ("f", {"a": 1, "b": 9, "c": 1, "z": 0})).pairings
    assert [(shown.argument, shown.holds, shown.score, shown.counted) for shown in line.arguments] == [
        ("a", True, pytest.approx(1 / 3), True),
        ("b", False, pytest.approx(1 / 6), True),
        ("c", True, 0.0, False),
        ("z", False, 0.0, True),
    ]
    assert (line.credit, line.parts) == (0.5, {"parameters": 0.5})


def test_nothing_is_asked_of_arguments_that_are_not_listed() -> None:
    assert graded(case_of(call("f")), ("f", {"anything": 1})).score == 1.0
    assert graded(case_of(call("f", {})), ("f", {"anything": 1})).score == 1.0


def test_arguments_that_are_no_object_count_as_none() -> None:
    grade = graded(case_of(call("f", {"a": 1})), ToolCall("c", "f", raw="[1]", problem="a list, not an object"))
    assert grade.numbers["parameters"] == 0.0
    assert kinds(grade) == ["missing argument", "broken arguments"]


def test_tools_are_the_same_only_to_the_letter() -> None:
    grade = graded(case_of(call("get_weather")), ("get.weather", {}))
    assert kinds(grade) == ["missing call", "extra call"]


def test_the_reason_names_the_dimensions_and_what_is_missing() -> None:
    grade = graded(case_of(call("f"), call("g")), ("f", {}))
    assert grade.reason == "not called: g; recall 0.50, parameters 0.50, precision 1.00, content 1.00"


def test_a_case_that_expects_nothing_lives_by_its_keywords() -> None:
    case = case_of(response_contains=["Oslo"], disallowed=[call("delete")])
    assert graded(case, ("find", {}), answer="In Oslo.").reason == "no call is expected, 1 of 1 keywords found"
    grade = graded(case, ("delete", {}), answer="In Oslo.")
    assert (grade.score, grade.status) == (1.0, "failed")
