"""Several checks of one answer: each is graded separately, and its value is stored with the run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.grading.cases import call, case_of
from tests.results import result
from tests.trajectories import trajectory_of
from workbench.checks.check import CheckContext, CheckVerdict
from workbench.checks.patterns import CheckError
from workbench.engine.redaction import redacted_places, regrade_refusal
from workbench.grading.packed import SharedParts
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_pieces, outcome_to_json
from workbench.grading.run import GradedRun, graded_run
from workbench.grading.status import Status
from workbench.suite.model import Case, Suite
from workbench.trajectory.events import JsonValue, ResultReceived
from workbench.trajectory.trajectory import Trajectory

NAMED = {
    "date": {"pattern": "[0-9]+ May"},
    "polite": {"judged": "polite", "scale": [1, 5], "at_least": 4},
    "short": {"similar": "On 5 May", "threshold": 0.9, "required": False},
}


def graded(case: Case, answer: str, number: float = 4, **context: Any) -> GradedRun:
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    judge = CheckContext(lambda *_: None, lambda *_: CheckVerdict((number - 1) / 4, number >= 4, "so", number=number))
    return graded_run(suite, case, trajectory_of(("a", {"x": 1}), answer=answer), context=context.get("context", judge))


def test_each_check_is_graded_by_itself_named_and_kept() -> None:
    case = case_of(call("a"), response=NAMED)
    found = graded(case, "It comes on 5 May, sorry.")
    assert (found.status, [(metric.name, metric.holds) for metric in found.metrics]) == (
        "passed", [("date", True), ("polite", True), ("short", False)],
    )  # fmt: skip
    assert (found.metrics[1].value, found.metrics[1].number, found.metrics[1].scale) == (0.75, 4, (1, 5))
    assert 0 < found.metrics[2].value < 0.9
    [measured] = found.grades[0].issues
    assert (measured.kind, measured.decides) == ("response", False)
    assert measured.why.startswith("short: similarity")

    rude = graded(case, "On 5 May", number=2)
    [issue] = rude.grades[0].issues
    assert (rude.status, issue.decides, issue.why) == ("failed", True, "polite: so")
    assert issue.expected == "polite: judged at least 4 on 1..5: polite"
    assert [metric.holds for metric in graded(case, "").metrics] == [False] * 3


def test_one_check_without_a_name_is_as_before() -> None:
    found = graded(case_of(call("a"), response={"contains": "May"}), "June")
    assert (found.status, found.metrics) == ("failed", ())
    assert found.grades[0].issues[0].why == "does not contain it"


def test_values_are_kept_in_recordings_in_packed_results_and_between_processes() -> None:
    found = graded(case_of(call("a"), response=NAMED), "On 5 May")
    run = result(Status.PASSED, 1.0, trajectory=trajectory_of(answer="On 5 May"))
    plain = outcome_to_json(outcome_of(run))
    assert "metrics" not in plain
    run = replace(run, **found._asdict())
    text = "".join(outcome_pieces(outcome_of(run)))
    assert json.loads(text) == json.loads(json.dumps(outcome_to_json(outcome_of(run))))
    assert outcome_from_json(json.loads(text)).metrics == found.metrics
    in_common = SharedParts()
    packed = in_common.packed(run)
    assert packed == run
    assert packed.metrics == found.metrics
    assert in_common.received(packed.for_transfer, result(Status.PASSED, 1.0)).metrics == found.metrics  # type: ignore[attr-defined]


def test_a_function_may_see_the_whole_run() -> None:
    seen: list[JsonValue] = []

    def function(_reference: str, value: JsonValue) -> object:
        seen.append(value)
        return {"score": 0.5, "reason": "half"}

    check = {"python": "m:f", "sees": "run", "at_least": 0.6}
    found = graded(case_of(call("a"), response={"mine": check}), "Done.", context=CheckContext(function))
    assert (found.status, found.metrics[0].value, found.metrics[0].why) == ("failed", 0.5, "half")
    assert seen == [
        {
            "case": "case",
            "request": "go",
            "calls": [{"tool": "a", "arguments": {"x": 1}, "result": None, "is_error": None}],
            "answer": "Done.",
        }
    ]
    alone = case_of(call("a"), response=check)
    assert graded(alone, "", context=CheckContext(function)).grades[0].issues[0].why == "half"
    with pytest.raises(CheckError, match=r"response\.mine: the check 'python m:f' raised"):
        graded(case_of(response={"mine": check}), "Done.", context=CheckContext(lambda *_: 1 / 0))


def test_a_run_with_a_secret_in_a_result_is_not_shown_to_a_function_anew() -> None:
    def made(text: str) -> Trajectory:
        before = trajectory_of(("a", {}), answer="Done.")
        [record] = before.rounds[0].calls
        answered = replace(record, result=ResultReceived(record.call.id, text, False, "case mock", 0.0))
        return replace(before, rounds=(replace(before.rounds[0], calls=(answered,)), *before.rounds[1:]))

    raw, stored = made("hunter2"), made("$KEY")
    seeing = case_of(call("a"), response={"mine": {"python": "m:f", "sees": "run"}})
    assert redacted_places(raw, stored, case_of(call("a")), None) == []
    [place] = redacted_places(raw, stored, seeing, None)
    run = replace(result(Status.PASSED, trajectory=stored), redacted=(place,))
    assert "a Python function sees the run" in (regrade_refusal(run, seeing, as_stored=True) or "")
    assert regrade_refusal(run, case_of(call("a")), as_stored=True) is None
