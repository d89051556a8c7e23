from __future__ import annotations

from typing import Any

import pytest

from tests.grading.cases import call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import CheckContext
from workbench.checks.patterns import CheckError
from workbench.grading.grade import Grade
from workbench.grading.run import grade_run
from workbench.grading.status import Status
from workbench.suite.grading_model import LimitsTable
from workbench.suite.model import Case, Suite
from workbench.trajectory.events import JsonValue


def graded(case: Case, *calls: CallSpec, answer: str = "", **suite: Any) -> tuple[Grade, Status]:
    document = Suite.model_validate({"format": 1, "name": "suite", "cases": [case], **suite})
    grades, status = grade_run(document, case, trajectory_of(*calls, answer=answer))
    grade = grades[0]
    return grade, status


def test_the_status_is_the_verdict_of_the_grader_that_decides() -> None:
    case = case_of(call("f", {"a": 1, "b": 2}))
    assert graded(case, ("f", {"a": 1, "b": 2}))[1] == "passed"
    assert graded(case, ("f", {"a": 1, "b": 0}))[1] == "failed"


def test_the_settings_of_suite_and_case_are_merged() -> None:
    checks = {"a": 1, "b": {"equals": 2, "required": False}}
    case = case_of(call("f", checks), grading={"warn_threshold": 0.75})
    assert graded(case, ("f", {"a": 1, "b": 0}), grading={"fail_threshold": 0.7})[1] == "passed"


@pytest.mark.parametrize(
    ("more", "calls", "answer"),
    [
        ({"disallowed": [call("g")]}, [("f", {"a": 1}), ("g", {})], ""),
        ({"response_contains": ["door"]}, [("f", {"a": 1})], "the window"),
        ({"response": "yes"}, [("f", {"a": 1})], "no"),
        ({"extra_calls": "forbid"}, [("f", {"a": 1}), ("h", {})], ""),
        ({}, [("f", {"a": 1, "speed": 9})], ""),
    ],
)
def test_a_requirement_fails_the_status_and_leaves_the_score(
    more: dict[str, Any], calls: list[CallSpec], answer: str
) -> None:
    case = case_of(call("f", {"a": 1}, forbidden_args=["speed"]), **more)
    grading = {"critics": {"fail_on_tool_call_quantity": False}}
    grade, status = graded(case, *calls, answer=answer, grading=grading)
    assert (grade.score, grade.verdict, status) == (1.0, "passed", "failed")
    assert [issue.decides for issue in grade.issues] == [True]


def test_a_case_without_expected_calls_lives_by_its_requirements_alone() -> None:
    case = case_of(response_contains=["Oslo"], disallowed=[call("delete")])
    grade, status = graded(case, ("find", {}), answer="In Oslo.")
    assert (grade.score, grade.verdict, status) == (None, "not applicable", "passed")
    assert graded(case, ("delete", {}), answer="In Oslo.")[1] == "failed"
    assert graded(case, answer="In Rome.")[1] == "failed"


def test_a_call_is_called_wrong_once() -> None:
    case = case_of(call("f"), extra_calls="forbid", disallowed=[call("g")])
    grade, _ = graded(case, ("f", {}), ("g", {}), ("h", {}))
    assert [(issue.kind, issue.call) for issue in grade.issues] == [
        ("forbidden call", 1),
        ("extra call", 2),
    ]


def test_a_plain_value_in_a_prohibition_is_compared_as_the_grader_compares() -> None:
    case = case_of(disallowed=[call("set", {"level": 5})])
    assert graded(case, ("set", {"level": "5"}))[1] == "failed"


@pytest.mark.parametrize("options", [{}, {"latency": "model"}])
def test_dimensions_goes_by_the_wall_clock_and_the_others_by_the_model(options: dict[str, Any]) -> None:
    """Exceeded time limits only inform, whatever the clock."""
    run = trajectory_of(("f", {}), latency_ms=250.0, loop_ms=900.0)
    case = case_of(call("f"), grading={"dimensions": options})

    def told(max_latency_ms: float) -> dict[str, list[str | None]]:
        limited = case.model_copy(update={"limits": LimitsTable(max_latency_ms=max_latency_ms)})
        grades, status = grade_run(Suite(format=1, name="suite", cases=(limited,)), limited, run)
        assert status == "passed"
        dimensions = next(grade for grade in grades if grade.grader == "dimensions")
        assert dimensions.numbers["latency_ms"] == (250.0 if options else 900.0)
        assert dimensions.numbers["latency_ok"] == float(not dimensions.issues)
        return {grade.grader: [issue.got for issue in grade.issues] for grade in grades}

    assert told(900.0) == {"critics": [], "decision": [], "accuracy": [], "trajectory": [], "dimensions": []}
    assert told(250.0) == told(900.0) | {"dimensions": [] if options else ["900 ms"]}
    late = ["250 ms"]
    others = {"critics": late, "decision": late, "accuracy": late, "trajectory": late}
    assert told(249.9) == others | {"dimensions": late if options else ["900 ms"]}


def test_a_check_that_cannot_be_evaluated_gives_no_grade() -> None:
    with pytest.raises(CheckError, match=r"f\.n.*checks:even"):
        graded(case_of(call("f", {"n": {"python": "checks:even"}})), ("f", {"n": 4}))


def test_python_checks_are_asked_in_arguments_prohibitions_and_answers() -> None:
    check = {"python": "checks:fine"}
    case = case_of(call("f", {"n": check}), disallowed=[call("g", {"n": check})], response=check)
    document = Suite.model_validate({"format": 1, "name": "suite", "cases": [case]})
    asked: list[JsonValue] = []

    def fine(reference: str, value: JsonValue) -> bool:
        asked.append(value)
        return True

    trajectory = trajectory_of(("f", {"n": 1}), ("g", {"n": 2}), answer="done")
    (grade, *_), _ = grade_run(document, case, trajectory, context=CheckContext(fine))
    assert sorted(map(repr, asked)) == ["'done'", "1", "2"], "once for all graders"
    assert "forbidden call" in {issue.kind for issue in grade.issues}


def test_a_check_that_holds_but_costs_points_is_named() -> None:
    near = {"similar": "world hello", "metric": "ratio", "threshold": 0.3}
    grade, status = graded(case_of(call("f", {"a": near})), ("f", {"a": "hello world"}))
    assert status == "failed"
    (issue,) = grade.issues
    assert (issue.kind, issue.argument) == ("partial credit", "a")
    assert issue.why.startswith("holds, but earns 0.")
    full, _ = graded(case_of(call("f", {"a": near})), ("f", {"a": "world hello"}))
    assert full.issues == ()
