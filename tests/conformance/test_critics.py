"""The published `critics` results, reproduced by the grader that suites run through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.conformance.vectors_of import vectors_of
from tests.results import result
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.analysis.published_reports import published_reports
from workbench.checks.check import Check
from workbench.checks.fields import NAMED_WEIGHTS
from workbench.grading.critics import grade_critics, judge, with_expected_value
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, RunResult
from workbench.grading.repeats import ArgumentStatistics, case_result
from workbench.grading.scoring import resolve_weights
from workbench.grading.status import Status
from workbench.suite.expected_calls import same_tool
from workbench.suite.grading_model import GradingTable
from workbench.suite.model import Case
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.trajectory import Trajectory

Vector = dict[str, Any]

VECTORS = vectors_of("critics")
CLOSE = 1e-9
CHECK: TypeAdapter[Check] = TypeAdapter(Check)


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in VECTORS if vector["kind"] == kind]


def check_of(critic: Mapping[str, Any], expected: Any) -> Check:
    """The check that a suite would write for a critic and its expected value; raises ValidationError if it cannot."""
    table: dict[str, Any] = dict(EMPTY_CHECKS[critic["type"]])
    for key, option in OPTIONS.items():
        if key in critic:
            table[option] = critic[key]
    for option in ("tolerance", "max_difference"):
        if option in table:
            table[option] = f"{table[option]:f}s"
    if critic["type"] == "none":
        table["weight"] = 0
    elif isinstance(table.get("weight"), str):
        table["weight"] = table["weight"].lower()
    return with_expected_value(CHECK.validate_python(table), expected)


EMPTY_CHECKS: dict[str, dict[str, Any]] = {
    "binary": {"equals": ""},
    "none": {"equals": ""},
    "numeric": {"near": 0},
    "similarity": {"similar": ""},
    "datetime": {"datetime": ""},
}
OPTIONS = {
    "weight": "weight",
    "value_range": "value_range",
    "match_threshold": "match_threshold",
    "similarity_threshold": "threshold",
    "metric": "metric",
    "tolerance_seconds": "tolerance",
    "max_difference_seconds": "max_difference",
}


def case_of(given: Mapping[str, Any]) -> Case:
    """Return the vector's case as a suite would have it."""
    critics = {critic["field"]: critic for critic in given["critics"] or []}
    direct = given.get("via") == "case"
    fields = {name for call in given["expected"] for name in call["args"]}
    expected = []
    for call in given["expected"]:
        names = [name for name in call["args"] if name in critics or not direct]
        args = {name: check_of(critics.get(name, {"type": "none"}), call["args"][name]) for name in names}
        args |= {name: check_of(critic, None) for name, critic in critics.items() if name not in fields}
        expected.append({"tool": call["name"], "args": args})
    wanted = {"ordered": expected} if expected else {"expect_no_calls": True}
    return Case.model_validate({"name": "vector", "user": "go", **wanted})


def grading_of(rubric: Mapping[str, Any]) -> Grading:
    thresholds = ("fail_threshold", "warn_threshold")
    options = {name: value for name, value in rubric.items() if name not in thresholds}
    return Grading(
        **{name: rubric[name] for name in thresholds if name in rubric},
        critics=CriticsOptions(arcade_compatible=True, **options),
    )


def grade_of(given: Mapping[str, Any]) -> Grade:
    tools = [ToolDefinition(tool["name"], parameters=tool["inputSchema"]) for tool in given.get("tools", ())]
    trajectory = trajectory_of(*((call["name"], call["args"]) for call in given["actual"]), tools=tools)
    return grade_critics(case_of(given), grading_of(given["rubric"]), trajectory)


def failure_of(reason: str) -> str | None:
    rule = reason.partition(":")[0]
    return rule if rule in ("quantity", "selection") else None


@each_row("vector", of_kind("critic"))
def test_a_critic_scores_a_value_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    check = check_of(given["critic"], given["expected"])
    if not expect.get("criticized", True):
        assert check.weight == 0
        return
    verdict = judge(check, given["actual"], True, arcade_compatible=True)
    if expect.get("raises"):
        assert not verdict.measured
        return
    assert verdict.measured
    assert verdict.holds is expect["match"]
    assert verdict.score * weight_alone(check) == pytest.approx(expect["score"], abs=CLOSE)


def weight_alone(check: Check) -> float:
    """A named weight outside of a case counts its raw value."""
    assert check.weight is not None
    return NAMED_WEIGHTS[check.weight] if isinstance(check.weight, str) else check.weight


@each_row("vector", of_kind("case"))
def test_a_case_is_graded_as_published(vector: Vector) -> None:
    expect = vector["expect"]
    grade = grade_of(vector["input"])
    if "informational" in vector["tags"]:
        assert any(grade.score == pytest.approx(score, abs=CLOSE) for score in expect["score_alternatives"])
        return
    assert grade.score == pytest.approx(expect["score"], abs=CLOSE)
    assert grade.verdict == expect["status"]
    assert failure_of(grade.reason) == expect["failure"]
    assert grade.verdict != "not applicable"
    run = replace(result(grade.verdict, grade=grade), grading=grading_of(vector["input"]["rubric"]))
    [report] = published_reports([run])
    assert report.summary.numbers["cases"][0]["status"] == expect["status_peer"]  # type: ignore[index, call-overload]
    if expect.get("results"):
        assert_results(grade, expect["results"], {c["field"]: c for c in vector["input"]["critics"] or ()})


def assert_results(grade: Grade, results: Sequence[Mapping[str, Any]], critics: Mapping[str, Any]) -> None:
    """Pair by pair, tool first, then the arguments; their order within a pair is ours."""
    pairs: list[dict[str, Mapping[str, Any]]] = []
    for each in results:
        if each["field"] == "tool_selection":
            pairs.append({})
        pairs[-1][each["field"]] = each
    paired = [line for line in grade.pairings if line.expected_call is not None and line.call is not None]
    assert len(paired) == len(pairs)
    for line, expected in zip(paired, pairs, strict=True):
        assert_tool(line, expected.pop("tool_selection"))
        assert {verdict.argument for verdict in line.arguments} == expected.keys()
        for verdict in line.arguments:
            assert_argument(verdict, expected[verdict.argument], critics.get(verdict.argument))


def assert_tool(line: CallPairing, expected: Mapping[str, Any]) -> None:
    assert line.same_tool is expected["match"]
    assert line.tool_score == pytest.approx(expected["score"], abs=CLOSE)
    assert line.tool_weight == pytest.approx(expected["weight"], abs=CLOSE)


def assert_argument(verdict: ArgumentVerdict, expected: Mapping[str, Any], critic: Mapping[str, Any] | None) -> None:
    assert verdict.score == pytest.approx(expected["score"], abs=CLOSE)
    assert verdict.weight == pytest.approx(expected["weight"], abs=CLOSE)
    if critic is not None and critic.get("weight") == 0:
        assert verdict.holds is None, "a weight of zero records without judging"
    else:
        assert verdict.holds is expected["match"]


@each_row("vector", of_kind("weights"))
def test_weights_are_resolved_as_published(vector: Vector) -> None:
    if vector["expect"].get("raises"):
        with pytest.raises(ValidationError):
            [check_of(critic, "x") for critic in vector["input"]["critics"]]
        return
    checks = [check_of(critic, "x") for critic in vector["input"]["critics"]]
    assert resolve_weights([check.weight for check in checks]) == pytest.approx(vector["expect"]["weights"], abs=CLOSE)


@each_row("vector", of_kind("tool_name"))
def test_tool_names_match_as_published(vector: Vector) -> None:
    assert same_tool(vector["input"]["expected"], vector["input"]["actual"]) is vector["expect"]["match"]


@pytest.mark.parametrize("vector", of_kind("refused"))
def test_what_the_published_system_refuses_no_suite_can_say(vector: Vector) -> None:
    with pytest.raises(ValidationError):
        check_of(vector["input"]["critic"], 1)


@each_row("vector", of_kind("multi_run"))
def test_several_runs_of_a_case_come_to_what_is_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    if expect.get("raises"):
        with pytest.raises(ValidationError):
            GradingTable(repeat_rule=given["pass_rule"])
        return
    grading = replace(grading_of(given["rubric"]), repeat_rule=given["pass_rule"])
    grades = [grade_of({**given, "actual": calls}) for calls in given["runs"]]
    runs = [
        RunResult(f"run-{repeat}", "s", "c", "C", "m", repeat, of_run(grade), Trajectory(""), (grade,), grading=grading)
        for repeat, grade in enumerate(grades)
    ]
    case = case_result(runs)
    assert case.status == expect["status"]
    assert case.score == pytest.approx(expect["score"], abs=CLOSE)
    assert failure_of(case.reason or "") == expect["failure"]
    stats = expect["run_stats"]
    assert len(case.graded) == stats["num_runs"]
    assert [run.status for run in case.graded] == stats["run_status"]
    assert [run.score for run in case.graded] == pytest.approx(stats["scores"], abs=CLOSE)
    assert case.score == pytest.approx(stats["mean_score"], abs=CLOSE)
    assert case.deviation == pytest.approx(stats["std_deviation"], abs=CLOSE)
    assert_statistics(case.arguments, expect.get("critic_stats", {}))


def of_run(grade: Grade) -> Status:
    assert grade.verdict != "not applicable"
    return grade.verdict


def assert_statistics(arguments: Sequence[ArgumentStatistics], expected: Mapping[str, Mapping[str, Any]]) -> None:
    assert [statistics.argument for statistics in arguments] == list(expected)
    for statistics, published in zip(arguments, expected.values(), strict=True):
        assert statistics.scores == pytest.approx(published["run_scores"], abs=CLOSE)
        assert statistics.mean_score == pytest.approx(published["mean_score"], abs=CLOSE)
        assert statistics.deviation == pytest.approx(published["std_deviation"], abs=CLOSE)
        assert statistics.normalised == pytest.approx(published["run_scores_normalized"], abs=CLOSE)
        assert statistics.mean_normalised == pytest.approx(published["mean_score_normalized"], abs=CLOSE)
        assert statistics.normalised_deviation == pytest.approx(published["std_deviation_normalized"], abs=CLOSE)
        assert statistics.weight == pytest.approx(published["weight"], abs=CLOSE)


def test_every_vector_is_of_a_kind_that_is_tested() -> None:
    assert {vector["kind"] for vector in VECTORS} == {
        "critic",
        "case",
        "weights",
        "tool_name",
        "refused",
        "multi_run",
    }
