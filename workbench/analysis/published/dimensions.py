"""The suite report of the five-dimension tool evaluator, and its advice from what failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from workbench.analysis.published.system import Summary, System, share
from workbench.dataclasses import dataclass
from workbench.grading.grade import Grade, Issue, RunResult
from workbench.grading.status import Status
from workbench.trajectory.events import JsonValue

Group = Literal["param_errors", "wrong_tool", "missing_tool", "over_calling"]

ADVICE: dict[Group, tuple[str, str]] = {
    "param_errors": (
        "improve_param_descriptions",
        "parameters went wrong: describe them better, with examples",
    ),
    "wrong_tool": (
        "disambiguate_tool_descriptions",
        "tools were confused: say in their descriptions what tells similar ones apart",
    ),
    "missing_tool": (
        "add_trigger_phrases",
        "tools were not called: say in their descriptions when to use them",
    ),
    "over_calling": (
        "curb_unnecessary_calls",
        "tools were called needlessly: say when not to call them",
    ),
}
"""The groups of failures in the order of the report, each with the code of its advice and its text."""

_GROUP_OF: dict[str, Group] = {
    "missing argument": "param_errors",
    "wrong argument": "param_errors",
    "forbidden argument": "param_errors",
    "invalid argument": "param_errors",
    "extra call": "wrong_tool",
    "missing call": "missing_tool",
    "over calling": "over_calling",
}


@dataclass(frozen=True)
class GradedTest:
    """One test, its numbers already rounded to three digits as the published system does."""

    test_id: str
    passed: bool
    score: float
    precision: float
    recall: float
    parameters: float
    latency_ms: float
    groups: frozenset[Group] = frozenset()


def graded_test(run: RunResult) -> GradedTest:
    """Returns a run that `dimensions` graded as a test of the published system."""
    grade = run.grade
    assert grade is not None and grade.score is not None
    numbers = {name: round(amount, 3) for name, amount in grade.numbers.items()}
    return GradedTest(
        run.case_id,
        grade.verdict == Status.PASSED,
        round(grade.score, 3),
        numbers["precision"],
        numbers["recall"],
        numbers["parameters"],
        grade.numbers["latency_ms"],
        frozenset(group for issue in grade.issues if (group := _group(grade, issue)) is not None),
    )


def _group(grade: Grade, issue: Issue) -> Group | None:
    # A call where none is expected is a call too many; any other unaccounted call is one of a wrong tool.
    if issue.kind == "extra call" and all(line.expected_call is None for line in grade.pairings):
        return "over_calling"
    return _GROUP_OF.get(issue.kind)


def suite_report(tests: Sequence[GradedTest]) -> dict[str, JsonValue]:
    """Returns counts and means; everything is 0 without tests."""
    passed = sum(test.passed for test in tests)
    number = len(tests) or 1
    return {
        "total": len(tests),
        "passed": passed,
        "failed": len(tests) - passed,
        "pass_rate": share(passed, len(tests), 1),
        "avg_score": round(sum(test.score for test in tests) / number, 3),
        "avg_precision": round(sum(test.precision for test in tests) / number, 3),
        "avg_recall": round(sum(test.recall for test in tests) / number, 3),
        "avg_param_accuracy": round(sum(test.parameters for test in tests) / number, 3),
        "avg_latency_ms": round(sum(test.latency_ms for test in tests) / number),
        "failures": list(dict.fromkeys(test.test_id for test in tests if not test.passed)),
    }


def failure_analysis(tests: Sequence[GradedTest]) -> dict[str, JsonValue]:
    """Returns the ids of the failed tests by group, and the codes of the advice; a message when nothing failed."""
    failed = [test for test in tests if not test.passed]
    if not failed:
        return {"message": "no_failures"}
    groups = {group: dict.fromkeys(test.test_id for test in failed if group in test.groups) for group in ADVICE}
    return {
        **{group: list(ids) for group, ids in groups.items()},
        "recommendations": [code for group, (code, _) in ADVICE.items() if groups[group]],
    }


def _summary(runs: Sequence[RunResult]) -> Summary:
    tests = [graded_test(run) for run in runs]
    report, analysis = suite_report(tests), failure_analysis(tests)
    headline = (
        f"{report['passed']} of {report['total']} passed ({report['pass_rate']}%), score {report['avg_score']},"
        f" precision {report['avg_precision']}, recall {report['avg_recall']},"
        f" parameters {report['avg_param_accuracy']}, {report['avg_latency_ms']} ms"
    )
    of_groups = [("failed", report["failures"]), *((advice, analysis.get(key)) for key, (_, advice) in ADVICE.items())]
    details = (f"{what}: {', '.join(map(str, ids))}" for what, ids in of_groups if isinstance(ids, list) and ids)
    return Summary(headline, tuple(details), {**report, "analysis": analysis})


SYSTEM = System(_summary)
