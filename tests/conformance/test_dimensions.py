"""The published `dimensions` results, reproduced by the grader that suites run through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.vectors_of import vectors_of
from tests.results import result
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.analysis.gates import quality_of
from workbench.analysis.published_reports import FailureGroup, GradedTest, failure_analysis, graded_test, suite_report
from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.grading.grade import Grade, Issue
from workbench.grading.run import grade_by
from workbench.grading.status import Status
from workbench.suite.grading_model import Gate
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of

Vector = dict[str, Any]

VECTORS = vectors_of("dimensions")
CLOSE = 0.001


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in VECTORS if vector["input"]["kind"] == kind]


OPERATORS: dict[str, Any] = {
    "in": lambda rule: {"one_of": rule["values"]},
    "between": lambda rule: {
        "range": [
            float("-inf") if rule.get("minimum") is None else rule["minimum"],
            float("inf") if rule.get("maximum") is None else rule["maximum"],
        ]
    },
    "matches": lambda rule: {"pattern": rule["regex"]},
}


def case_of(given: Mapping[str, Any]) -> Case:
    """Return the vector's case as a suite would have it."""
    expected = []
    for call in given["expected_calls"]:
        args: dict[str, Any] = {
            name: {"present": True} if value is None else {"equals": value}
            for name, value in call.get("required", {}).items()
        }
        for name, rule in call.get("validators", {}).items():
            args[name] = {**OPERATORS[rule["op"]](rule), "optional": True}
        expected.append({"tool": call["tool"], "args": args, "forbidden_args": call.get("forbidden", [])})
    return Case.model_validate(
        {
            "name": "vector",
            "user": "go",
            "ordered": expected,
            "expect_no_calls": given.get("should_not_call_tools", False),
            "response_contains": given["keywords"],
            "limits": {
                "max_tool_calls": given.get("max_tool_calls", 5),
                "max_latency_ms": given.get("max_latency_ms", 10_000),
            },
        }
    )


def grade_of(given: Mapping[str, Any], context: CheckContext = EMPTY_CONTEXT, **options: str) -> Grade:
    case, run = case_of(given["case"]), given["run"]
    suite = Suite.model_validate({"format": 1, "name": "vectors", "cases": [case], "grading": {"dimensions": options}})
    trajectory = trajectory_of(
        *((call["tool"], call["arguments"]) for call in run["calls"]),
        answer=run["response"],
        latency_ms=run["latency_ms"],
    )
    return grade_by("dimensions", case, settings_of(suite, case), trajectory, context)


ARGUMENT_KINDS = {
    "missing argument": "missing_param",
    "wrong argument": "wrong_param",
    "forbidden argument": "forbidden_param",
    "invalid argument": "invalid_param",
}


def found_in(grade: Grade) -> Counter[tuple[Any, ...]]:
    """Return the issues in the published terms: kind and subject."""
    single = Counter[tuple[Any, ...]]()
    lists: dict[str, list[Any]] = {}
    for issue in grade.issues:
        if issue.kind in ARGUMENT_KINDS:
            single[ARGUMENT_KINDS[issue.kind], issue.tool, issue.argument] += 1
        elif issue.kind == "extra call":
            kind = "called_tools_when_forbidden" if issue.decides else "unexpected_tools"
            lists.setdefault(kind, []).append(issue.tool)
        elif issue.kind == "missing call":
            lists.setdefault("missing_tools", []).append(issue.tool)
        elif issue.kind == "response":
            lists.setdefault("missing_keywords", []).append(keyword_of(issue))
        else:
            single[issue.kind.replace(" ", "_"),] += 1
    return single + Counter((kind, tuple(items)) for kind, items in lists.items())


def keyword_of(issue: Issue) -> str:
    assert issue.expected is not None
    return issue.expected.removeprefix('containing "').removesuffix('"')


def wanted_in(issues: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    wanted = Counter[tuple[Any, ...]]()
    for issue in issues:
        items = issue.get("tools", issue.get("keywords"))
        if items is not None:
            wanted[issue["kind"], tuple(items)] += 1
        elif "param" in issue:
            wanted[issue["kind"], issue["tool"], issue["param"]] += 1
        else:
            wanted[issue["kind"],] += 1
    return wanted


@each_row("vector", of_kind("case"))
def test_a_case_is_graded_as_published(vector: Vector) -> None:
    expect = vector["expect"]
    grade = grade_of(vector["input"])
    assert grade.score == pytest.approx(expect["score"], abs=CLOSE)
    assert (grade.verdict == Status.PASSED) is expect["passed"]
    assert grade.status == grade.verdict, "the published rule is the whole rule here"
    for name, key in (("precision",) * 2, ("recall",) * 2, ("parameters", "param_accuracy"), ("content",) * 2):
        assert grade.numbers[name] == pytest.approx(expect[key], abs=CLOSE)
    assert bool(grade.numbers["latency_ok"]) is expect["latency_ok"]
    assert found_in(grade) == wanted_in(expect["issues"])


GROUPS: dict[str, FailureGroup] = {
    "wrong_param": "param_errors",
    "missing_param": "param_errors",
    "forbidden_param": "param_errors",
    "invalid_param": "param_errors",
    "unexpected_tools": "wrong_tool",
    "missing_tools": "missing_tool",
    "over_calling": "over_calling",
    "called_tools_when_forbidden": "over_calling",
}


def graded_tests(results: Sequence[Mapping[str, Any]]) -> list[GradedTest]:
    return [
        GradedTest(
            given["test_id"],
            given["passed"],
            given["score"],
            given["precision"],
            given["recall"],
            given["param_accuracy"],
            given["latency_ms"],
            frozenset(GROUPS[issue["kind"]] for issue in given["issues"]),
        )
        for given in results
    ]


@pytest.mark.parametrize("vector", of_kind("suite"))
def test_a_suite_is_reported_as_published(vector: Vector) -> None:
    assert suite_report(graded_tests(vector["input"]["results"])) == vector["expect"]


@each_row("vector", of_kind("analysis"))
def test_failures_are_analysed_as_published(vector: Vector) -> None:
    assert failure_analysis(graded_tests(vector["input"]["results"])) == vector["expect"]


@each_row("vector", of_kind("gate"))
def test_a_suite_s_gate_is_met_as_published(vector: Vector) -> None:
    given = vector["input"]
    runs = [
        result(Status.PASSED if number < given[Status.PASSED] else Status.FAILED, 1.0, case=f"case-{number}")
        for number in range(given["total"])
    ]
    # No run names a suite without cases, so its gate gets runs of which none was graded.
    runs = runs or [result(Status.SKIPPED)]
    quality = quality_of(runs, {"suite.toml": Gate(min_pass_rate=given["min_pass_rate"])})
    assert quality.met is vector["expect"]["gate_passed"]
    assert int(not quality.met) == vector["expect"]["exit_code"]


def test_every_issue_of_a_graded_run_falls_into_the_published_group() -> None:
    for vector in VECTORS:
        if vector["input"]["kind"] != "case":
            continue
        run = result(Status.PASSED, grade=grade_of(vector["input"]))
        wanted = {GROUPS[issue["kind"]] for issue in vector["expect"]["issues"] if issue["kind"] in GROUPS}
        assert graded_test(run).groups == wanted, vector["id"]


def test_every_vector_is_of_a_kind_that_is_tested() -> None:
    assert {vector["input"]["kind"] for vector in VECTORS} == {"case", "suite", "analysis", "gate"}


BOTH = {"all_of": [{"equals": "Hanoi"}, {"pattern": "^[A-Z]"}, {"one_of": ["Hanoi", "Hue", "Oslo", "hue"]}]}


@each_row(
    ("check", "arguments", "parameters", "kinds"),
    [
        (BOTH, {"city": "Hanoi", "days": 1}, 1, []),
        (BOTH, {"city": "Hue", "days": 1}, (0.5 + 1) / 2, ["wrong argument"]),
        (BOTH, {"city": "hue", "days": 1}, (0.5 + 0 + 1) / 3, ["wrong argument", "invalid argument"]),
        (BOTH, {"city": "rome", "days": 1}, (0.5 + 0 + 0 + 1) / 4, ["wrong argument"] + ["invalid argument"] * 2),
        (BOTH, {"days": 1}, (0 + 1) / 2, ["missing argument"]),
        ({"all_of": [{"equals": "rome"}, {"pattern": "^[A-Z]"}]}, {"city": "rome", "days": 1}, (1 + 0 + 1) / 3,
         ["invalid argument"]),
        ({"all_of": [{"present": True}, {"pattern": "^[A-Z]"}]}, {"city": "rome"}, (1 + 0 + 0) / 3,
         ["invalid argument", "missing argument"]),
    ],
)  # fmt: skip
def test_a_required_value_and_its_validators_are_entries_of_their_own_as_published(
    check: dict[str, Any], arguments: dict[str, Any], parameters: float, kinds: list[str]
) -> None:
    case = Case.model_validate(
        {"name": "both", "user": "go", "ordered": [{"tool": "get_weather", "args": {"city": check, "days": 1}}]}
    )
    options = {"dimensions": {"repeated_calls": "as published"}}
    suite = Suite.model_validate({"format": 1, "name": "both", "cases": [case], "grading": options})
    run = trajectory_of(("get_weather", arguments), answer="")
    grade = grade_by("dimensions", case, settings_of(suite, case), run, EMPTY_CONTEXT)
    assert grade.numbers["parameters"] == pytest.approx(parameters)
    assert [issue.kind for issue in grade.issues] == kinds


LITERAL = [pytest.param(vector, id=vector["id"]) for vector in VECTORS if {"F2", "F3"} & {*vector.get("tags", ())}]


@each_row("vector", LITERAL)
def test_repeated_calls_count_as_published_where_that_is_asked_for(vector: Vector) -> None:
    literal = vector.get("literal", {})
    grade = grade_of(vector["input"], repeated_calls="as published")
    expect = {**vector["expect"], **literal}
    assert grade.score == pytest.approx(expect["score"], abs=CLOSE)
    assert (grade.verdict == Status.PASSED) is expect["passed"]
    assert grade.numbers["recall"] == pytest.approx(expect["recall"], abs=CLOSE)
    assert grade.numbers["parameters"] == pytest.approx(expect["param_accuracy"], abs=CLOSE)
