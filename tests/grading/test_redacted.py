"""A stored run without its secrets is regraded if no check needs a secret. Otherwise it keeps its verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.tables import each_row
from workbench.checks.check import EMPTY_CONTEXT
from workbench.config.secrets import Secrets
from workbench.engine.plan import plan_runs
from workbench.engine.planned_run import result_of
from workbench.engine.redaction import SuiteParts, redacted_result, redacted_suite_text
from workbench.evaluation.regrade import regrade_result
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_to_json
from workbench.grading.status import Status
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import RunFinished, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

KEY = "sk-planted-0123456789"
SUITE = """
format = 1
name = "Shop"
[[tools]]
name = "buy"
[[cases]]
name = "Buy"
user = "Buy with 47110815."
CASE
"""
CALL = ToolCall("c", "buy", {"what": "tea", "key": KEY, "pin": 47110815})
MADE = Trajectory(
    "run-1",
    rounds=(
        Round(1, calls=(CallRecord(CALL, 1),), stop_reason="tool calls"),
        Round(2, text=f"Bought with {KEY}.", stop_reason="answered"),
    ),
    finish=RunFinished("answered"),
)


def secrets() -> Secrets:
    known = Secrets()
    known.add("SHOP_KEY", KEY)
    known.add("PIN", "47110815")
    return known


@each_row(
    ("case", "why"),
    [
        ('ordered = [{ tool = "buy", args = { what = "tea" } }]', None),
        ('ordered = [{ tool = "buy" }]\nextra_calls = "forbid"', None),
        (
            f'ordered = [{{ tool = "buy", args = {{ what = "tea", key = "{KEY}" }} }}]',
            "'key' of call 1 (buy)",
        ),
        (
            'unordered = [{ tool = "buy", args = { what = "tea", pin = 47110815 } }]',
            "'pin' of call 1 (buy)",
        ),
        ('disallowed = [{ tool = "buy", args = { key = { prefix = "pk" } } }]', "'key' of call 1 (buy)"),
        ('ordered = [{ tool = "buy" }]\nresponse_contains = ["Bought"]', "the answer holds a secret"),
    ],
)
def test_a_run_is_graded_again_unless_a_check_looks_at_what_is_not_stored(case: str, why: str | None) -> None:
    (planned,) = plan_runs([parse_suite(SUITE.replace("CASE", case), Path("shop.toml"))])
    made = regrade_result(result_of(planned, Status.PASSED, MADE), planned, EMPTY_CONTEXT)
    assert made.status == "passed"
    stored = redacted_result(made, SuiteParts(secrets()), planned.case)
    assert KEY not in repr(stored)
    read = outcome_from_json(outcome_to_json(outcome_of(stored)))
    again = regrade_result(replace(stored, redacted=read.redacted), planned, EMPTY_CONTEXT)
    assert (again.status, again.score) == ("passed", made.score)
    assert again.not_regraded is None if why is None else why in (again.not_regraded or "")
    assert "redacted" not in outcome_to_json(outcome_of(made))


def test_a_suite_that_is_stored_stays_a_suite_whatever_is_secret_in_it() -> None:
    text = SUITE.replace("CASE", 'ordered = [{ tool = "buy", args = { pin = 47110815, pins = [47110815, 1] } }]')
    shown = redacted_suite_text(text, secrets())
    assert "47110815" not in shown
    suite = parse_suite(shown, Path("shop.toml")).suite
    assert suite is not None and suite.cases[0].user == "Buy with $PIN."
    same = SUITE.replace("CASE", "").replace("47110815", "cash")
    assert redacted_suite_text(same, secrets()) is same
