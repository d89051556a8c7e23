"""The reason that a suite gives for a check is shown with the issue, wherever the issue is shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.grading.cases import call, case_of
from tests.results import result
from tests.trajectories import trajectory_of
from workbench.checks.check import read_check
from workbench.grading.grade import Issue
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_pieces, outcome_to_json
from workbench.grading.run import graded_run
from workbench.grading.status import Status
from workbench.integrations.mcp_server import _issue_text
from workbench.show.views.grades import issue_note, issue_text
from workbench.suite.model import Case, Suite

CENTS = "amounts are in cents"
EXACT = {"equals": 5, "because": CENTS}


def issues_of(case: Case, arguments: dict[str, Any], answer: str = "") -> tuple[Issue, ...]:
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    return graded_run(suite, case, trajectory_of(("pay", arguments), answer=answer)).grades[0].issues


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        (case_of(call("pay", {"amount": EXACT})), "done"),
        (case_of(call("pay"), response={"contains": "cents", "because": CENTS}), "done"),
        (case_of(call("pay"), response={"unit": {"contains": "cents", "because": CENTS}}), "done"),
    ],
)
def test_the_reason_stands_with_the_issue_and_in_json(case: Case, answer: str) -> None:
    [issue] = issues_of(case, {"amount": 500}, answer)
    assert issue.because == CENTS
    assert all(f"because: {CENTS}" in text(issue) for text in (issue_text, issue_note, _issue_text))


@pytest.mark.parametrize(
    "check",
    [
        {"has_fields": {"amount": EXACT}},
        {"all_of": [{"type": "object"}, {"has_fields": {"amount": EXACT}}]},
    ],
)
def test_the_reason_of_an_inner_check_stands_in_the_explanation(check: dict[str, Any]) -> None:
    [issue] = issues_of(case_of(call("pay", {"request": check})), {"request": {"amount": 500}}, "done")
    assert issue.because is None
    assert f"because: {CENTS}" in issue_text(issue)


def test_the_reason_is_written_only_where_there_is_one_and_read_again() -> None:
    case = case_of(call("pay", {"amount": EXACT, "to": "Ada"}))
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    graded = graded_run(suite, case, trajectory_of(("pay", {"amount": 500, "to": "Bob"}), answer="done"))
    outcome = outcome_of(result(Status.FAILED, grade=graded.grades[0]))
    written: Any = outcome_to_json(outcome)
    assert [issue.get("because") for issue in written["grades"][0]["issues"]] == [CENTS, None]
    assert "because" not in written["grades"][0]["issues"][1]
    assert outcome_from_json(written) == outcome
    assert '"because":null' not in "".join(outcome_pieces(outcome))


def test_answers_may_have_a_check_of_this_name_and_tables_of_this_key_are_values() -> None:
    named = case_of(call("pay"), response={"because": {"contains": "cents"}})
    assert isinstance(named.response, dict)
    assert read_check({"because": "x"}).bare_value == {"because": "x"}
