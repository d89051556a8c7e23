"""The `trajectory` vectors, reproduced by the grader and the aggregates that suites run through."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest

from tests.conformance.vectors_of import vectors_of
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.analysis.gates import gate_holds, statistic
from workbench.checks.check import CheckContext, CheckVerdict, Judge
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.grading.grade import Grade, GradingError
from workbench.grading.requirements import extra_call_rule_of
from workbench.grading.status import Status
from workbench.grading.trajectory import grade_trajectory
from workbench.suite.expected_calls import AnyOrder
from workbench.suite.grading_model import Statistic
from workbench.suite.model import Case
from workbench.suite.rules import cases_rules
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import Trajectory

Vector = dict[str, Any]

VECTORS = vectors_of("trajectory")
CLOSE = 1e-9


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in VECTORS if vector["input"]["kind"] == kind]


def check_of(matcher: Mapping[str, Any]) -> dict[str, Any]:
    """Return the suite's text for one of the nine matchers."""
    match matcher["kind"]:
        case "exact":
            return {"equals": matcher["value"]}
        case "key_only":
            return {"present": True}
        case "one_of":
            return {"one_of": matcher["values"]}
        case "range":
            low, high = matcher["minimum"], matcher["maximum"]
            return {"range": [-math.inf if low is None else low, math.inf if high is None else high]}
        case "pattern":
            return {"pattern": matcher["regex"]}
        case "contains":
            return {"contains": matcher["substring"]}
        case "has_prefix":
            return {"prefix": matcher["prefix"]}
        case "has_suffix":
            return {"suffix": matcher["suffix"]}
        case "natural_language":
            return {"judged": matcher["criteria"]}
        case other:
            raise AssertionError(f"no check for the matcher {other}")


def call_of(single: Mapping[str, Any]) -> dict[str, Any]:
    """The expected call that a suite writes; a group stays one, so that the suite's rules can refuse it."""
    if "any_order" in single:
        return {"any_order": [call_of(member) for member in single["any_order"]]}
    by_argument: dict[str, list[Mapping[str, Any]]] = {}
    for matcher in single["arguments"]:
        by_argument.setdefault(matcher["argument"], []).append(matcher)
    args = {name: both_of(matchers) for name, matchers in by_argument.items()}
    return {"tool": single["tool"], **({"args": args} if args else {})}


def both_of(matchers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A suite has one check for an argument: a prefix and a suffix together are written as a pattern."""
    if len(matchers) == 1:
        return check_of(matchers[0])
    prefix, suffix = re.escape(matchers[0]["prefix"]), re.escape(matchers[1]["suffix"])
    return {"pattern": rf"\A{prefix}.*{suffix}\Z"}


def case_of(expectation: Mapping[str, Any] | None) -> Case:
    """Return the vector's case as a suite would have it. A case without expected calls has no trajectory."""
    if expectation is None:
        return Case.model_validate({"name": "vector", "user": "go"})
    lists = {name: [call_of(single) for single in expectation[name]] for name in ("ordered", "unordered", "disallowed")}
    extra_calls = "allow" if expectation["allows_additional"] else "forbid"
    raw = {"name": "vector", "user": "go", "extra_calls": extra_calls, **lists}
    for finding in cases_rules([raw]):
        raise ValueError(finding.message)
    return Case.model_validate(raw)


def judge_of(canned: Mapping[str, Any] | None) -> Judge | None:
    if canned is None:
        return None

    def judge(check: Judged, value: JsonValue) -> CheckVerdict:
        for verdict in canned["verdicts"]:
            if (verdict["criteria"], verdict["value"]) == (check.judged, value):
                return CheckVerdict(float(verdict["satisfied"]), verdict["satisfied"])
        return CheckVerdict(float(canned["default"]), canned["default"])

    return judge


def grade_of(given: Mapping[str, Any], case: Case) -> Grade:
    if given["calls"] is None:
        trajectory = Trajectory("run")
    else:
        trajectory = trajectory_of(*((call["tool"], call["arguments"]) for call in given["calls"]))
    rule = extra_call_rule_of(case, Grading(), trajectory)
    return grade_trajectory(case, rule, trajectory, context=CheckContext(judge=judge_of(given.get("judge"))))


@each_row("vector", of_kind("matcher"))
def test_a_matcher_holds_as_published(vector: Vector) -> None:
    given = vector["input"]
    single = {"tool": "tool", "arguments": [given["matcher"]]}
    expectation = {"ordered": [single], "unordered": [], "disallowed": [], "allows_additional": True}
    calls = [{"tool": "tool", "arguments": given["arguments"]}]
    grade = grade_of({"calls": calls, "judge": given.get("judge")}, case_of(expectation))
    assert (grade.verdict == Status.PASSED) is vector["expect"]["matches"]


@each_row("vector", of_kind("trajectory"))
def test_a_trajectory_is_graded_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    if expect.get("error") == "invalid_expectation":
        with pytest.raises(ValueError):
            case_of(given["expectation"])
        return
    case = case_of(given["expectation"])
    if "error" in expect:
        error = {"missing_transcript": GradingError, "judge_required": CheckError}[expect["error"]]
        with pytest.raises(error):
            grade_of(given, case)
        return
    grade = grade_of(given, case)
    if expect.get("ignored"):
        assert (grade.verdict, grade.score) == ("not applicable", None)
        return
    assert grade.score == pytest.approx(expect["percentage"], abs=CLOSE)
    assert (grade.verdict == Status.PASSED) is expect["all_pass"]
    assert (grade.numbers["matched"], grade.numbers["total"]) == (expect["matched"], expect["total"])
    assert grade.numbers["all_pass"] == expect["all_pass"]
    assert_lines(case, grade, expect)


def assert_lines(case: Case, grade: Grade, expect: Mapping[str, Any]) -> None:
    """Return the pairs of expected and actual calls, read from the lines of the grade."""
    call_of = {line.expected_call: line.call for line in grade.pairings if line.outcome == "matched"}
    sizes = [len(item.any_order) if isinstance(item, AnyOrder) else 1 for item in case.ordered]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    assert [
        sorted(call_of[index] for index in range(start, start + size) if index in call_of)  # type: ignore[type-var]
        for start, size in zip(starts, sizes, strict=True)
    ] == expect["ordered_calls"]
    assert sum(index is not None and index >= sum(sizes) for index in call_of) == expect["unordered_matched"]
    assert [
        [line.call for line in grade.pairings if line.prohibition == index and line.outcome == "broken"]
        for index in range(len(case.disallowed))
    ] == expect["disallowed_violations"]
    unexpected = [line.call for line in grade.pairings if line.outcome == "unexpected"]
    assert unexpected == expect["unexpected_calls"]
    assert grade.numbers["unexpected"] == len(unexpected)


@each_row("vector", of_kind("aggregate"))
def test_values_are_aggregated_as_published(vector: Vector) -> None:
    expect = vector["expect"]
    values = [float(value) for value in vector["input"]["values"] if value != "ignore"]
    assert len(values) == expect["count"]
    for name in get_args(Statistic):
        if name == "p95":  # none of theirs
            continue
        wanted = expect["standard_deviation" if name == "spread" else name]
        assert statistic(name, values) == (None if wanted is None else pytest.approx(wanted, abs=CLOSE)), name
    gate = vector["input"].get("gate")
    if gate is not None:
        holds = gate_holds(statistic(gate["of"], values), gate["threshold"], strictly=gate["op"] == ">")
        assert holds is expect["gate_passed"]


def test_every_vector_is_of_a_kind_that_is_tested() -> None:
    assert {vector["input"]["kind"] for vector in VECTORS} == {"matcher", "trajectory", "aggregate"}
    assert len(VECTORS) == 146
