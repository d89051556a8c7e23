from __future__ import annotations

from typing import Any

import pytest

from tests.grading.cases import call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.checks.check import EMPTY_CONTEXT
from workbench.checks.patterns import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.dimensions import grade_dimensions
from workbench.grading.grade import Issue
from workbench.grading.requirements import requirement_issues
from workbench.grading.run import GRADERS_BY_NAME, grade_by
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading, Limits, settings_of
from workbench.trajectory.events import FinishReason, ToolCall
from workbench.trajectory.trajectory import Trajectory


def issues_of(case: Case, trajectory: Trajectory, limits: Limits | None = None) -> tuple[Issue, ...]:
    pairings = grade_critics(case, Grading(), trajectory).pairings
    return requirement_issues(case, limits or Limits(), trajectory, pairings)


def decisive(case: Case, *calls: CallSpec, answer: str = "") -> list[tuple[str, int | None, str | None]]:
    found = issues_of(case, trajectory_of(*calls, answer=answer))
    assert all(issue.decides for issue in found)
    return [(issue.kind, issue.call, issue.argument) for issue in found]


@pytest.mark.parametrize("grader", [name for name in GRADERS_BY_NAME if name != "trajectory"])
def test_a_call_out_of_its_place_is_no_extra_one(grader: GraderName) -> None:
    suite = suite_of_case(case_of(call("a"), call("b"), extra_calls="forbid"))
    (case,) = suite.cases
    settings = settings_of(suite, case)
    swapped = grade_by(grader, case, settings, trajectory_of(("b", {}), ("a", {})), EMPTY_CONTEXT)
    assert [issue for issue in swapped.issues if issue.kind == "extra call"] == []
    twice = grade_by(grader, case, settings, trajectory_of(("b", {}), ("a", {}), ("b", {})), EMPTY_CONTEXT)
    assert [issue.tool for issue in twice.issues if issue.kind == "extra call" and issue.decides] == ["b"]


def suite_of_case(case: Case) -> Suite:
    return Suite.model_validate({"format": 1, "name": "suite", "cases": [case]})


class TestProhibitions:
    def test_a_forbidden_tool_must_not_be_called(self) -> None:
        case = case_of(disallowed=[call("unlock-door")])
        assert decisive(case, ("lock_door", {}), ("unlock_door", {})) == [("forbidden call", 1, None)]

    def test_a_prohibition_with_arguments_means_only_calls_that_fit_them(self) -> None:
        case = case_of(disallowed=[call("set_oven", {"degrees": {"range": [250, 500]}})])
        assert decisive(case, ("set_oven", {"degrees": 180}), ("set_oven", {})) == []
        assert decisive(case, ("set_oven", {"degrees": 300})) == [("forbidden call", 0, None)]

    def test_a_prohibition_with_no_arguments_means_only_a_call_without_any(self) -> None:
        case = case_of(disallowed=[call("reset", {})])
        assert decisive(case, ("reset", {"room": "hall"})) == []
        assert decisive(case, ("reset", {})) == [("forbidden call", 0, None)]

    def test_a_call_with_an_argument_that_the_prohibition_excludes_is_allowed(self) -> None:
        case = case_of(disallowed=[call("delete", forbidden_args=["dry_run"])])
        assert decisive(case, ("delete", {"dry_run": True})) == []
        assert decisive(case, ("delete", {})) == [("forbidden call", 0, None)]

    def test_a_check_that_cannot_be_evaluated_is_no_verdict(self) -> None:
        case = case_of(disallowed=[call("say", {"text": {"judged": "rude"}})])
        with pytest.raises(CheckError, match="disallowed say"):
            decisive(case, ("say", {"text": "hello"}))

    def test_forbidden_arguments_must_not_be_given_even_as_null(self) -> None:
        case = case_of(call("close", {"room": "hall"}, forbidden_args=["speed", "force"]))
        assert decisive(case, ("close", {"room": "hall", "speed": None})) == [("forbidden argument", 0, "speed")]


class TestExtraCalls:
    def test_extra_calls_are_wrong_where_they_are_forbidden(self) -> None:
        case = case_of(call("f", {"a": 1}), extra_calls="forbid")
        assert decisive(case, ("g", {}), ("f", {"a": 1})) == [("extra call", 0, None)]
        assert decisive(case, ("f", {"a": 2})) == []

    def test_a_call_of_a_wrong_tool_is_not_accounted_for(self) -> None:
        assert decisive(case_of(call("f"), extra_calls="forbid"), ("g", {})) == [("extra call", 0, None)]

    def test_they_are_allowed_otherwise(self) -> None:
        assert decisive(case_of(call("f")), ("f", {}), ("g", {})) == []

    def test_a_forbidden_call_is_not_also_an_extra_one(self) -> None:
        case = case_of(disallowed=[call("g")], extra_calls="forbid")
        assert decisive(case, ("g", {}), ("h", {})) == [("forbidden call", 0, None), ("extra call", 1, None)]

    def test_any_call_is_wrong_where_none_is_expected(self) -> None:
        assert decisive(case_of(expect_no_calls=True), ("f", {})) == [("extra call", 0, None)]


class TestAnswer:
    @pytest.mark.parametrize(
        ("keywords", "answer"),
        [
            (["door", "LIGHTS"], "The DOOR and the lights."),
            (["Stra\u00dfe"], "STRA\u00dfE"),
            (["Z\u00fcrich"], "ZU\u0308RICH"),
            (["Zu\u0308rich"], "Z\u00dcRICH"),
        ],
    )
    def test_keywords_are_found_in_either_case_however_they_are_composed(
        self, keywords: list[str], answer: str
    ) -> None:
        case = case_of(response_contains=keywords)
        assert decisive(case, answer=answer) == []
        assert grade_dimensions(case, Limits(), trajectory_of(answer=answer)).numbers["content"] == 1

    def test_each_keyword_that_is_not_there_is_an_issue(self) -> None:
        case = case_of(response_contains=["door", "lights", "Stra\u00dfe"])
        found = issues_of(case, trajectory_of(answer="DOOR, STRASSE"))
        assert [(issue.kind, issue.expected, issue.got) for issue in found] == [
            ("response", 'containing "lights"', '"DOOR, STRASSE"'),
            ("response", 'containing "Stra\u00dfe"', '"DOOR, STRASSE"'),
        ]
        assert grade_dimensions(case, Limits(), trajectory_of(answer="DOOR, STRASSE")).numbers["content"] == 1 / 3

    def test_a_plain_text_is_compared_trimmed(self) -> None:
        case = case_of(response=" Good night. ")
        assert decisive(case, answer="Good night.\n") == []
        assert decisive(case, answer="good night.") == [("response", None, None)]

    def test_any_other_check_is_made_on_the_whole_text(self) -> None:
        assert decisive(case_of(response={"similar": "Good night", "threshold": 0.5}), answer="Good night!") == []
        assert decisive(case_of(response={"equals": "Good night"}), answer="Good night ") == [("response", None, None)]
        assert decisive(case_of(response={"prefix": "Good"}), answer="Bad") == [("response", None, None)]

    @pytest.mark.parametrize("response", ["x", {"contains": "x"}, {"present": True}, {"equals_null": True}])
    def test_no_answer_meets_no_check(self, response: Any) -> None:
        found = issues_of(case_of(response=response), trajectory_of(("f", {}), reason="rounds exhausted"))
        assert [(issue.kind, issue.got) for issue in found if issue.decides] == [("response", "no final answer")]

    def test_a_judge_that_is_not_there_is_no_verdict(self) -> None:
        with pytest.raises(CheckError, match=r"response: .*polite"):
            decisive(case_of(response={"judged": "polite"}), answer="hello")


class TestWhatOnlyInforms:
    def informing(self, trajectory: Trajectory, limits: Limits | None = None) -> list[tuple[str, str | None]]:
        found = issues_of(case_of(call("f")), trajectory, limits)
        assert not any(issue.decides for issue in found)
        return [(issue.kind, issue.got) for issue in found]

    def test_a_run_within_its_limits_has_nothing_to_say(self) -> None:
        assert self.informing(trajectory_of(("f", {}))) == []

    def test_more_calls_than_the_limit(self) -> None:
        limits = Limits(max_tool_calls=1)
        assert self.informing(trajectory_of(("f", {}), ("f", {})), limits) == [("over calling", "2")]

    def test_rounds_that_ran_out(self) -> None:
        assert self.informing(trajectory_of(("f", {}), reason="rounds exhausted")) == [("rounds exhausted", None)]

    @pytest.mark.parametrize("reason", ["decided", "rounds exhausted"])
    def test_one_round_is_all_of_a_case_that_asks_no_answer(self, reason: FinishReason) -> None:
        made, once = trajectory_of(("f", {}), reason=reason), Limits(max_rounds=1)
        assert self.informing(made, once) == []
        asked = issues_of(case_of(call("f"), response_contains=["x"]), made, once)
        assert [(issue.kind, issue.expected) for issue in asked if not issue.decides] == [
            ("rounds exhausted", "an answer within 1 round")
        ]
        assert self.informing(made, Limits(max_rounds=2)) == [("rounds exhausted", None)]

    def test_arguments_that_are_not_a_json_object(self) -> None:
        broken = ToolCall("c", "f", raw='{"a": ', problem="the JSON ends too early")
        found = issues_of(case_of(call("f", {"a": 1})), trajectory_of(broken))
        assert [(issue.kind, issue.call, issue.why, issue.got) for issue in found] == [
            ("broken arguments", 0, "the JSON ends too early", '{"a": ')
        ]
