"""What became of a run, as JSON: the words of the JSON report, and all of it again when it is read."""

from __future__ import annotations

import json
import math
import sys

import pytest

from tests.results import result
from workbench.dataclasses import compact_json
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue
from workbench.grading.result_json import outcome_from_json, outcome_of, outcome_pieces, outcome_to_json
from workbench.grading.status import Status
from workbench.show.json.run_report import GradeReport

GRADE = Grade(
    "critics",
    0.5,
    Status.FAILED,
    "one of two",
    (CallPairing(0, 1, True, 1.0, 1.0, (ArgumentVerdict("city", False, 0.0, 1.0, '"A"', ["B"], True, "no"),)),),
    (Issue("wrong argument", "no", "t", 1, 0, "city", '"A"', '["B"]', True),),
)


def test_it_reads_back_to_the_same_grades() -> None:
    outcome = outcome_of(result(Status.FAILED, grade=GRADE))
    assert (outcome.status, outcome.error, outcome.score, outcome.grades) == ("failed", None, 0.5, (GRADE,))
    assert outcome_from_json(json.loads(json.dumps(outcome_to_json(outcome)))) == outcome
    assert "".join(outcome_pieces(outcome)) == compact_json(outcome_to_json(outcome))


def test_its_words_are_those_of_the_json_report() -> None:
    [grade] = json.loads(json.dumps(outcome_to_json(outcome_of(result(Status.FAILED, grade=GRADE)))))["grades"]
    pairing = grade["pairings"][0]
    # A recording has the whole grade. Parts that the report lacks are left out here.
    for name in ("tool_score", "tool_weight"):
        del pairing[name]
    del pairing["arguments"][0]["counted"]
    reported = GradeReport.model_validate(GRADE).model_dump(mode="json")
    # The suite's reason is left out if there is none.
    for issue in reported["issues"]:
        assert issue.pop("because") is None
    assert grade == reported


def test_an_infinite_score_becomes_the_largest_number_and_is_read_as_an_infinite_one() -> None:
    outcome = outcome_of(result(Status.FAILED, grade=GRADE._replace(score=-math.inf)))
    written = outcome_to_json(outcome)
    assert written["score"] == -sys.float_info.max
    assert outcome_from_json(json.loads(json.dumps(written))) == outcome


@pytest.mark.parametrize(
    "broken", [{}, {"status": "fine", "error": None, "grades": []}, {"status": "passed", "grades": 3}]
)
def test_what_is_no_result_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"missing|must be"):
        outcome_from_json(broken)  # type: ignore[arg-type]


def test_a_grade_by_no_grader_of_this_program_is_refused() -> None:
    written = outcome_to_json(outcome_of(result(Status.FAILED, grade=GRADE._replace(grader="mine"))))
    with pytest.raises(ValueError, match="a grade is by 'mine', which is not one of critics, decision"):
        outcome_from_json(written)
