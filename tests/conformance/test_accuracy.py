"""The published `accuracy` results, reproduced by the grader that suites run through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.conformance.evalite import run_summary
from tests.conformance.vectors_of import vectors_of
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.analysis.published_reports import flexible_details, score_metadata
from workbench.checks.check import Check
from workbench.grading.accuracy import grade_accuracy
from workbench.grading.critics import with_expected_value
from workbench.suite.grading_model import GradingTable
from workbench.suite.model import Case, Suite
from workbench.suite.settings import Grading, settings_of
from workbench.trajectory.events import ToolCall

Vector = dict[str, Any]
Call = Mapping[str, Any]

VECTORS = vectors_of("accuracy")
CLOSE = 1e-9
CHECK: TypeAdapter[Check] = TypeAdapter(Check)
OPTIONS = {"nameOnly": "name_only", "extraPenalty": "extra_penalty", "wrongPenalty": "wrong_penalty"}


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in VECTORS if vector["kind"] == kind]


def input_of(call: Call) -> dict[str, Any] | None:
    """Return a call's input as an object, or `None` without one. Other values are wrapped in an object."""
    if "input" not in call:
        return None
    given = call["input"]
    return given if isinstance(given, dict) else {"": given}


def case_of(expected: Sequence[Call]) -> Case:
    """The case of a suite that expects these calls."""
    written = []
    for call in expected:
        wanted = input_of(call)
        equals = CHECK.validate_python({"equals": ""})
        args = None if wanted is None else {name: with_expected_value(equals, value) for name, value in wanted.items()}
        written.append({"tool": call["name"], **({} if args is None else {"args": args})})
    wanted_calls: dict[str, Any] = {"ordered": written} if written else {"expect_no_calls": True}
    return Case.model_validate({"name": "vector", "user": "go", **wanted_calls})


def made_of(actual: Sequence[Call]) -> list[ToolCall]:
    """Calls as a model makes them; for one without input it has written nothing."""
    calls = []
    for index, call in enumerate(actual):
        given = input_of(call)
        calls.append(ToolCall(f"call-{index}", call["name"], given or {}, "" if given is None else None))
    return calls


def published(call: Call) -> dict[str, Any]:
    """A call under the scorer's own names, its input as an object."""
    given = input_of(call)
    return {"toolName": call["name"], **({} if given is None else {"input": given})}


def grading_of(given: Mapping[str, Any]) -> Grading:
    """Return the grading of a suite with the vector's mode and weights. Raises ValidationError if it is invalid."""
    options = {OPTIONS[name]: value for name, value in given.get("weights", {}).items() if name in OPTIONS}
    if given.get("mode") is not None:
        options["mode"] = given["mode"]
    table = GradingTable.model_validate({"by": "accuracy", "accuracy": options})
    suite = Suite(format=1, name="vector", grading=table)
    return settings_of(suite, case_of(())).grading


@each_row("vector", of_kind("tool_calls"))
def test_calls_score_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    if expect.get("raises"):
        with pytest.raises(ValidationError):
            grading_of(given)
        return
    case = case_of(given["expected"])
    grade = grade_accuracy(case, grading_of(given), trajectory_of(*made_of(given["actual"])))
    assert grade.score == pytest.approx(expect["score"], abs=CLOSE)
    assert score_metadata(grade) == {name: said for name, said in expect["metadata"].items() if name != "details"}
    if "details" in expect["metadata"]:
        details = flexible_details(grade, trajectory_of(*made_of(given["actual"])).calls, case.expected_calls())
        assert details == {
            name: [published(call) for call in calls] for name, calls in expect["metadata"]["details"].items()
        }


@pytest.mark.parametrize("vector", of_kind("summary"))
def test_a_run_is_summed_up_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    summary = run_summary(given["evals"], given["threshold"], given["failed_evals"])
    assert summary.average == pytest.approx(expect["average"], abs=CLOSE)
    assert summary.exit_code == expect["exit_code"]
    assert summary.failed_threshold == expect["failed_threshold"]


def test_a_run_without_scores_reaches_no_threshold() -> None:
    assert run_summary([], 0).exit_code == 1
    assert run_summary([[None, 1]], 50).exit_code == 0
    assert run_summary([[1]], 50, failed_evals=1).exit_code == 1


def test_every_vector_is_of_a_kind_that_is_tested() -> None:
    assert {vector["kind"] for vector in VECTORS} == {"tool_calls", "summary"}
    assert len(VECTORS) == 98
