"""Surplus calls: those that `extra_calls` frees never change a verdict, all others fail, under every grader."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import call
from tests.results import result
from tests.trajectories import CallSpec, trajectory_of
from workbench.analysis.published_reports import published_reports
from workbench.grading.explanation import explain
from workbench.grading.grade import Grade
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_to_json
from workbench.grading.run import GRADERS_BY_NAME, grade_run
from workbench.history.packing import grading_from, grading_text
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading, settings_of
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.trajectory import Trajectory

TOOLS = (
    ToolDefinition("search", annotations={"readOnlyHint": True}),
    ToolDefinition("read", annotations={"readOnlyHint": True}),
    ToolDefinition("pay"),
    ToolDefinition("delete", annotations={"readOnlyHint": False}),
)
RULES = ["allow", "allow_read_only", ["search", "read"], ["Search", "READ"]]
PAYMENT: CallSpec = ("pay", {"to": "bob"})
SEARCH: CallSpec = ("search", {"q": "bob"})
PAYS = {"ordered": [call("pay", {"to": "bob"})]}
SEARCHES_AND_PAYS = {"ordered": [call("search", {"q": "bob"}), call("pay", {"to": "bob"})]}


def run_of(*calls: CallSpec) -> Trajectory:
    return trajectory_of(*calls, tools=TOOLS, answer="Done.")


def grades_of(case: dict[str, Any], run: Trajectory, grading: dict[str, Any] | None = None) -> dict[str, Grade]:
    suite = Suite.model_validate({"format": 1, "name": "suite", "grading": grading or {}})
    read = Case.model_validate({"name": "case", "user": "go", **case})
    return {grade.grader: grade for grade in grade_run(suite, read, run)[0]}


def statuses(case: dict[str, Any], *calls: CallSpec, **grading: Any) -> set[str | None]:
    return {grade.status for grade in grades_of(case, run_of(*calls), grading).values()}


@pytest.mark.parametrize("rule", RULES)
def test_a_look_up_before_the_expected_call_passes_under_every_grader(rule: object) -> None:
    assert statuses(PAYS, SEARCH, PAYMENT, extra_calls=rule) == {"passed"}
    assert statuses({**PAYS, "extra_calls": rule}, SEARCH, PAYMENT) == {"passed"}
    assert statuses({**PAYS, "grading": {"extra_calls": rule}}, SEARCH, PAYMENT, SEARCH) == {"passed"}


@pytest.mark.parametrize("rule", [*RULES[1:], "forbid", []])
def test_a_second_payment_fails_under_every_grader(rule: object) -> None:
    assert statuses(PAYS, PAYMENT, PAYMENT, extra_calls=rule) == {"failed"}
    assert statuses(PAYS, PAYMENT, ("delete", {}), extra_calls=rule) == {"failed"}


def test_a_look_up_fails_under_every_grader_where_extra_calls_are_forbidden() -> None:
    assert statuses(PAYS, SEARCH, PAYMENT, extra_calls="forbid") == {"failed"}


def test_where_nothing_is_written_the_rule_of_the_grader_counts_and_the_issue_names_the_key() -> None:
    found = grades_of(PAYS, run_of(SEARCH, PAYMENT))["critics"]
    assert (found.score, found.status) == (0.0, "failed")
    (issue,) = [each for each in found.issues if each.kind == "extra call"]
    assert 'under `critics` a further call scores 0 for the run; extra_calls = "allow_read_only" frees it' in issue.why
    twice = grades_of(PAYS, run_of(PAYMENT, PAYMENT))["critics"]
    assert [each.why.partition("; ")[2] for each in twice.issues] == ['extra_calls = ["pay"] frees it']


def test_allow_wins_over_the_quantity_flag_and_leaves_a_missing_call_at_0() -> None:
    options = {"extra_calls": "allow", "critics": {"fail_on_tool_call_quantity": True}}
    assert grades_of(PAYS, run_of(SEARCH, PAYMENT), options)["critics"].score == 1.0
    for calls in ([], [SEARCH]):
        missing = grades_of(PAYS, run_of(*calls), options)["critics"]
        assert (missing.score, missing.status) == (0.0, "failed")


def test_the_scores_of_modes_that_compute_as_published_stay() -> None:
    options = {
        "extra_calls": "allow",
        "critics": {"arcade_compatible": True},
        "dimensions": {"repeated_calls": "as published"},
    }
    written = grades_of(PAYS, run_of(SEARCH, PAYMENT), options)
    without = grades_of(PAYS, run_of(SEARCH, PAYMENT), {**options, "extra_calls": "forbid"})
    for grader in ("critics", "dimensions"):
        assert written[grader].score == without[grader].score != 1.0


@pytest.mark.parametrize("grader", GRADERS_BY_NAME)
def test_what_the_published_system_reports_stays(grader: GraderName) -> None:
    case = {"name": "case", "user": "go", **PAYS}

    def reported(rule: str | None) -> object:
        grading = {"by": grader, **({"extra_calls": rule} if rule else {})}
        suite = Suite.model_validate({"format": 1, "name": "suite", "grading": grading, "cases": [case]})
        grades, status = grade_run(suite, suite.cases[0], run_of(SEARCH, PAYMENT))
        run = replace(result(status, grade=grades[0]), grading=settings_of(suite, suite.cases[0]).grading)
        stored = outcome_from_json(outcome_to_json(outcome_of(run)))
        assert stored.grades == run.grades
        (report,) = published_reports([run])
        return report.summary

    assert reported("allow") == reported(None)


def test_a_free_call_has_a_line_and_is_explained_as_left_out() -> None:
    for name, grade in grades_of(PAYS, run_of(SEARCH, PAYMENT), {"extra_calls": "allow_read_only"}).items():
        (line,) = [line for line in grade.pairings if line.call == 0]
        assert line.outcome == "extra, allowed"
        said = " ".join(explain(grade, Grading(by=grade.grader)).more)  # type: ignore[arg-type]
        assert ("removed before anything is compared" in said) == (name != "trajectory")


def test_of_several_calls_of_a_free_tool_those_that_fit_best_count() -> None:
    other: CallSpec = ("search", {"q": "alice"})
    for calls in ([other, SEARCH, PAYMENT], [SEARCH, other, PAYMENT], [SEARCH, PAYMENT, other]):
        assert statuses(SEARCHES_AND_PAYS, *calls, extra_calls="allow_read_only") == {"passed"}
    # The only look-up is never surplus, at any place.
    late = grades_of(SEARCHES_AND_PAYS, run_of(PAYMENT, SEARCH), {"extra_calls": "allow_read_only"})
    assert {name: grade.status for name, grade in late.items()} == {
        "critics": "passed",
        "decision": "failed",
        "accuracy": "failed",
        "trajectory": "failed",
        "dimensions": "passed",
    }


def test_a_call_of_any_tool_is_met_by_one_that_would_not_be_free() -> None:
    case = {"ordered": [{"tool": "*"}], "extra_calls": "allow_read_only"}
    assert statuses(case, SEARCH, PAYMENT) == {"passed"}


@pytest.mark.parametrize("where", ["case", "suite"])
def test_a_surplus_call_follows_the_rule_also_if_no_optional_call_is_made(where: str) -> None:
    def found(rule: object, *calls: CallSpec) -> set[str | None]:
        case: dict[str, Any] = {"ordered": [{"tool": "delete", "optional": True}]}
        if where == "suite":
            return statuses(case, *calls, extra_calls=rule)
        return statuses({**case, "extra_calls": rule}, *calls)

    assert found("allow", PAYMENT) == {"passed"}
    for rule in RULES:
        assert found(rule, SEARCH) == {"passed"}, rule
    for rule in [*RULES[1:], "forbid", []]:
        assert found(rule, PAYMENT) == {"failed"}, rule


def test_a_disallowed_call_is_wrong_even_where_its_tool_is_free() -> None:
    case = {**PAYS, "disallowed": [call("search")], "extra_calls": "allow"}
    assert statuses(case, SEARCH, PAYMENT) == {"failed"}


def test_a_list_of_tools_is_stored_with_a_run() -> None:
    grading = Grading(extra_calls=("search", "read"))
    assert grading_from(grading_text(grading)) == grading


@pytest.mark.parametrize(
    "case", [{"response_contains": ["done"]}, {"steps": [{"user": "go", "tool": "pay"}]}, {"expect_no_calls": True}]
)
def test_the_rule_of_a_suite_holds_only_where_calls_are_expected(case: dict[str, Any]) -> None:
    suite = Suite.model_validate({"format": 1, "name": "suite", "grading": {"extra_calls": ["search"]}})
    user = {} if "steps" in case else {"user": "go"}
    read = Case.model_validate({"name": "case", **user, **case})
    assert settings_of(suite, read).grading.extra_calls is None


EXPECTED = st.sampled_from([call("pay", {"to": "bob"}), call("search", {"q": "bob"}), call("delete")])
MADE: st.SearchStrategy[CallSpec] = st.sampled_from(
    [PAYMENT, SEARCH, ("pay", {"to": "eve"}), ("search", {"q": "eve"}), ("delete", {})]
)
CASES = st.fixed_dictionaries(
    {"ordered": st.lists(EXPECTED, min_size=1, max_size=3)}, optional={"unordered": st.lists(EXPECTED, max_size=2)}
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "accuracy": st.sampled_from([{"mode": "flexible"}, {"mode": "exact"}]),
        "critics": st.sampled_from([{"fail_on_tool_call_quantity": False}, {"fail_on_tool_selection": False}]),
    },
)
READ: CallSpec = ("read", {"id": 1})


def with_inserted(calls: list[CallSpec], places: list[int], added: CallSpec) -> list[CallSpec]:
    calls = list(calls)
    for place in places:
        calls.insert(place % (len(calls) + 1), added)
    return calls


PLACES = st.lists(st.integers(0, 5), min_size=1, max_size=3)


@given(CASES, st.lists(MADE, max_size=4), PLACES, st.sampled_from(RULES), OPTIONS)
def test_free_surplus_calls_change_no_verdict(
    case: dict[str, Any], calls: list[CallSpec], places: list[int], rule: object, options: dict[str, Any]
) -> None:
    grading = {**options, "extra_calls": rule}
    before = grades_of(case, run_of(*calls), grading)
    after = grades_of(case, run_of(*with_inserted(calls, places, READ)), grading)
    for name, grade in before.items():
        assert (after[name].score, after[name].verdict, after[name].status) == (
            grade.score,
            grade.verdict,
            grade.status,
        ), name


@given(CASES, PLACES, OPTIONS)
def test_a_right_run_stays_right_with_more_calls_of_expected_free_tools(
    case: dict[str, Any], places: list[int], options: dict[str, Any]
) -> None:
    expected = [*case["ordered"], *case.get("unordered", [])]
    right: list[CallSpec] = [(each["tool"], each.get("args", {})) for each in expected]
    grading = {**options, "extra_calls": "allow_read_only"}
    for added in (SEARCH, ("search", {"q": "eve"})):
        calls = with_inserted(right, places, added)
        missing = sum(each["tool"] == "search" for each in expected)
        # Without an expected search all searches are surplus, otherwise those beyond the expected number.
        assert missing <= sum(tool == "search" for tool, _ in calls)
        assert {grade.status for grade in grades_of(case, run_of(*calls), grading).values()} == {"passed"}


@given(CASES, st.lists(MADE, max_size=4), PLACES, st.sampled_from([*RULES[1:], "forbid"]), OPTIONS)
def test_a_surplus_call_that_is_not_free_fails_the_run(
    case: dict[str, Any], calls: list[CallSpec], places: list[int], rule: object, options: dict[str, Any]
) -> None:
    made = with_inserted(calls, places, ("transfer", {}))
    grades = grades_of(case, run_of(*made), {**options, "extra_calls": rule})
    assert {grade.status for grade in grades.values()} == {"failed"}
    assert all(any(issue.kind == "extra call" and issue.decides for issue in grade.issues) for grade in grades.values())
