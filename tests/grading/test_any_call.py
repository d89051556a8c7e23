"""A call of any tool, and calls that allow no further arguments, under all five graders."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.chains import chain_run
from tests.grading.cases import call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.grading.pairing_issues import describe_expected
from workbench.grading.run import grade_run
from workbench.suite.grading_model import AccuracyTable, GraderName, GradingTable
from workbench.suite.model import Case, Suite
from workbench.trajectory.trajectory import Trajectory

GRADERS = get_args(GraderName)
RIGHT = (1, "passed")


def graded(grader: GraderName, case: Case, *made: CallSpec) -> tuple[float | None, str | None]:
    return graded_run(grader, case, trajectory_of(*made))


def graded_run(grader: GraderName, case: Case, run: Trajectory) -> tuple[float | None, str | None]:
    suite = Suite.model_validate({"format": 1, "name": "s", "grading": {"by": grader}, "cases": [case]})
    grades, status = grade_run(suite, suite.cases[0], run)
    return grades[0].score, status


def flexible(case: Case) -> Case:
    """The case for a grader that does not go place by place."""
    return case.model_copy(update={"grading": GradingTable(accuracy=AccuracyTable(mode="flexible"))})


@pytest.mark.parametrize("grader", GRADERS)
class TestEveryGrader:
    def test_a_call_of_any_tool_is_met_by_each_and_missed_without_one(self, grader: GraderName) -> None:
        case = case_of(call("*"))
        for made in [("a", {}), ("b", {"x": 1})]:
            assert graded(grader, case, made) == RIGHT
        assert graded(grader, case)[1] == "failed"
        # A name that the model invented is a call, so no call of the tool "*" is needed.
        assert graded(grader, case, ("*", {}))[1] == "passed"

    def test_its_arguments_are_checked(self, grader: GraderName) -> None:
        case = case_of(call("*", {"city": "Oslo"}))
        assert graded(grader, case, ("weather", {"city": "Oslo"})) == RIGHT
        assert graded(grader, case, ("weather", {"city": "Rome"})) != RIGHT

    def test_calls_that_are_named_come_first(self, grader: GraderName) -> None:
        case = case_of(unordered=[call("a"), call("*")])
        assert graded(grader, case, ("a", {}), ("b", {})) == RIGHT
        if grader != "decision":  # which goes place by place
            assert graded(grader, flexible(case), ("b", {}), ("a", {})) == RIGHT
        assert graded(grader, case, ("b", {}), ("c", {})) != RIGHT
        assert graded(grader, case, ("a", {})) != RIGHT

    def test_a_chain_expects_some_call(self, grader: GraderName) -> None:
        case = Case.model_validate(
            {"name": "c", "steps": [{"user": "go", "tool": "*"}, {"tool": "*", "args": {"x": 1}}]}
        )
        assert graded_run(grader, case, chain_run([("a", {})], [("b", {"x": 1})])) == RIGHT
        assert graded_run(grader, case, chain_run([("a", {})], [("b", {"x": 2})])) != RIGHT
        assert graded_run(grader, case, chain_run([], [("b", {"x": 1})]))[1] == "failed"

    def test_any_call_can_be_forbidden_with_some_arguments(self, grader: GraderName) -> None:
        case = case_of(call("a"), disallowed=[call("*", {"force": True})])
        assert graded(grader, case, ("a", {"x": 1}))[1] == "passed"
        assert graded(grader, case, ("a", {"force": True}))[1] == "failed"

    def test_no_further_argument_may_be_given(self, grader: GraderName) -> None:
        case = case_of(call("a", {"x": 1, "y": {"equals": 2, "optional": True}}, only_args=True))
        assert graded(grader, case, ("a", {"x": 1})) == RIGHT
        assert graded(grader, case, ("a", {"x": 1, "y": 2}))[1] == "passed"
        assert graded(grader, case, ("a", {"x": 1, "z": 2})) != RIGHT
        assert graded(grader, case_of(call("a", {}, only_args=True)), ("a", {"z": 2}))[1] == "failed"

    def test_a_prohibition_with_only_some_arguments_lets_others_pass(self, grader: GraderName) -> None:
        case = case_of(call("a"), disallowed=[call("a", {"x": 1}, only_args=True)])
        assert graded(grader, case, ("a", {"x": 1}))[1] == "failed"
        assert graded(grader, case, ("a", {"x": 1, "y": 2}))[1] == "passed"


def test_they_are_described_in_words() -> None:
    case = case_of(call("*"), call("*", {"x": 1}, only_args=True), call("a", {}, only_args=True))
    said = [describe_expected(each) for each in case.expected_calls()]
    assert said == ["any tool(…)", "any tool(x=1, nothing else)", "a(nothing else)"]
