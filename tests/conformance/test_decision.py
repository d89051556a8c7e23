"""The published `decision` results, reproduced by the grader that suites run through."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.vectors_of import vectors_of
from tests.tables import each_row
from tests.trajectories import trajectory_of
from workbench.analysis.gates import GateResult
from workbench.analysis.published_reports import overall_score, printed_latency
from workbench.grading.decision import grade_decision, judge_decision, judge_expected_arguments
from workbench.grading.grade import Grade
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import Grading
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

Vector = dict[str, Any]

VECTORS = vectors_of("decision")
CLOSE = 1e-9
PRINTED = 0.051


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(vector, id=vector["id"]) for vector in VECTORS if vector["kind"] == kind]


def args_of(expected: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Expected arguments as a suite writes them: null is the wildcard."""
    if expected is None:
        return None
    return {name: {"present": True} if value is None else {"equals": value} for name, value in expected.items()}


def call_of(tool: str, expected: Mapping[str, Any] | None) -> ExpectedCall:
    args = args_of(expected)
    return ExpectedCall.model_validate({"tool": tool, **({} if args is None else {"args": args})})


def tool_call(tool: str, arguments: Any, number: int = 0) -> ToolCall:
    """Return a call as a provider delivers it. Arguments that are not an object count as none."""
    if isinstance(arguments, dict):
        return ToolCall(f"call-{number}", tool, arguments)
    return ToolCall(f"call-{number}", tool, raw=json.dumps(arguments), problem="no object")


def example_of(expected: ExpectedCall | None) -> Case:
    wanted: dict[str, Any] = {"ordered": (expected,)} if expected else {"expect_no_calls": True}
    return Case.model_validate({"name": "example", "user": "go", **wanted})


def only_parts(grade: Grade) -> dict[str, float]:
    """The parts of a grade of one decision; a refusal that is right has no line, and all of them."""
    return (
        dict(grade.pairings[0].parts) if grade.pairings else dict.fromkeys(("should_call", "tool_name", "arguments"), 1)
    )


@each_row("vector", of_kind("arguments"))
def test_arguments_score_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    expected, predicted = call_of("tool", given["expected"]), tool_call("tool", given["predicted"])
    score, verdicts = judge_expected_arguments("tool", expected.args, predicted.arguments)
    assert score == pytest.approx(expect["score"], abs=CLOSE)
    if predicted.problem is None:
        assert [verdict.argument for verdict in verdicts if verdict.listed and not verdict.holds] == expect[
            "mismatched_keys"
        ]
    grade = grade_decision(example_of(expected), Grading(), trajectory_of(predicted))
    assert grade.pairings[0].parts["arguments"] == pytest.approx(expect["score"], abs=CLOSE)
    unexpected = [issue.argument for issue in grade.issues if issue.kind == "unexpected argument"]
    assert unexpected == expect["extra_keys"]


@each_row("vector", of_kind("metric"))
def test_a_decision_scores_as_published(vector: Vector) -> None:
    example, prediction, expect = vector["input"]["example"], vector["input"]["prediction"], vector["expect"]
    called, tool = bool(prediction["should_call"]), prediction["tool_name"]
    predicted = tool_call(tool, prediction.get("arguments", {}))
    expected = None
    if example["expected_should_call"]:
        # A suite always names the tool. An example without a tool accepts any.
        expected = call_of(example.get("expected_tool_name") or tool, example["expected_arguments"])
    judged = judge_decision(expected, called, tool, predicted.arguments)
    assert judged.score == pytest.approx(expect["score"], abs=CLOSE)
    assert judged.should_call == expect["should_call_score"]
    assert judged.tool_name == expect["tool_name_score"]
    assert judged.arguments == pytest.approx(expect["arg_score"], abs=CLOSE)
    if called or not predicted.arguments:  # a run without calls has no arguments either
        grade = grade_decision(example_of(expected), Grading(), trajectory_of(*[predicted] * called))
        assert grade.score == pytest.approx(expect["score"], abs=CLOSE)
        assert only_parts(grade) == {
            "should_call": judged.should_call,
            "tool_name": judged.tool_name,
            "arguments": judged.arguments,
        }


@each_row("vector", of_kind("eval"))
def test_an_evaluation_scores_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    grades = []
    for example, answer in zip(given["examples"], given["model_answers"], strict=True):
        positive = example["method"] == "add_positive"
        expected = call_of(example["tool"], example["arguments"]) if positive else None
        calls = [tool_call(example["tool"], json.loads(answer["arguments_json"]))] * answer["should_call"]
        grades.append(grade_decision(example_of(expected), Grading(), trajectory_of(*calls)))
    scores = [grade.score or 0.0 for grade in grades]
    assert scores == pytest.approx(expect["scores"], abs=CLOSE)
    assert overall_score(scores) == pytest.approx(expect["score"], abs=CLOSE)
    for grade, breakdown in zip(grades, expect["breakdown"], strict=True):
        parts = only_parts(grade)
        assert parts["should_call"] == breakdown["should_call_score"]
        assert parts["tool_name"] == breakdown["tool_name_score"]
        assert parts["arguments"] == pytest.approx(breakdown["arg_score"], abs=CLOSE)


@pytest.mark.parametrize("vector", of_kind("latency"))
def test_latency_is_printed_as_published(vector: Vector) -> None:
    printed, expect = printed_latency(vector["input"]["latencies_ms"]), vector["expect"]["printed"]
    assert printed.mean == pytest.approx(expect["mean"], abs=PRINTED)
    assert printed.p50 == pytest.approx(expect["p50"], abs=PRINTED)
    assert printed.p95 == pytest.approx(expect["p95"], abs=PRINTED)
    assert printed.max == pytest.approx(expect["max"], abs=PRINTED)


@each_row("vector", of_kind("chain"))
def test_a_chain_scores_as_published(vector: Vector) -> None:
    given, expect = vector["input"], vector["expect"]
    if expect.get("raises"):
        assert not_a_suite(given["chains"])
        return
    answers = iter(given["model_answers"])
    grades = []
    for chain in given["chains"]:
        tools = [step["expected_tool"] for step in chain["steps"]]
        trajectory = rounds_of([(tool, next(answers)) for tool in tools])
        grades.append(grade_decision(Case.model_validate(chain_case(chain)), Grading(), trajectory))
    assert [grade.score for grade in grades] == pytest.approx(expect["chain_scores"], abs=CLOSE)
    assert overall_score([grade.score or 0.0 for grade in grades]) == pytest.approx(expect["score"], abs=CLOSE)
    assert sum(grade.numbers["items"] for grade in grades) == expect["num_steps"]
    for grade, steps in zip(grades, expect["steps"], strict=True):
        for line, step in zip(grade.pairings, steps, strict=True):
            assert line.parts["tool_name"] == step["tool_correct"]
            assert line.parts["arguments"] == pytest.approx(step["args_score"], abs=CLOSE)


def chain_case(chain: Mapping[str, Any]) -> dict[str, Any]:
    """The case of a chain, as a suite writes it."""
    steps: list[dict[str, Any]] = []
    for step in chain["steps"]:
        args = args_of(step["expected_arguments"])
        steps.append({"tool": step["expected_tool"], **({} if args is None else {"args": args})})
        keys = {"initial_query": "user", "system_prompt": "system", "mock_result": "mock_result"}
        steps[-1] |= {ours: step[theirs] for theirs, ours in keys.items() if theirs in step}
    return {"name": "chain", "steps": steps}


def rounds_of(answers: Sequence[tuple[str, Mapping[str, Any]]]) -> Trajectory:
    """A run with one round for each step; in the published evaluation the model has only the step's tool."""
    rounds = []
    for number, (tool, answer) in enumerate(answers, start=1):
        call = tool_call(tool, json.loads(answer["arguments_json"]), number)
        rounds.append(Round(number, calls=(CallRecord(call, number),) * answer["should_call"]))
    return Trajectory("run", rounds=tuple(rounds))


def not_a_suite(chains: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a suite refuses such a chain. A chain without steps is no chain."""
    steps = chain_case(chains[0] if chains else {"steps": []})["steps"]
    written = "".join(f'[[cases.steps]]\ntool = "{step["tool"]}"\n' for step in steps) or "steps = []\n"
    text = f'format = 1\nname = "s"\n[[cases]]\nname = "chain"\n{written}'
    return bool(parse_suite(text, Path("chain.toml")).errors)


def test_the_gate_is_below_the_minimum_only() -> None:
    assert not GateResult(None, "mean score", 0.8, 0.79).met
    assert GateResult(None, "mean score", 0.8, 0.8).met
    assert GateResult(None, "mean score", 0.0, 0.0).met


def test_every_vector_is_of_a_kind_that_is_tested() -> None:
    assert {vector["kind"] for vector in VECTORS} == {"arguments", "metric", "eval", "latency", "chain"}
    assert len(VECTORS) == 78
