"""Calls that are forbidden before or after others, or a second time, and the most that a run may take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.grading.grade import Grade, GradingError, Issue
from workbench.grading.run import graded_run
from workbench.grading.status import Status
from workbench.suite.grading_model import GRADERS
from workbench.suite.model import Case, Suite
from workbench.trajectory.events import ResultReceived, RunFinished, RunStarted, StopReason, ToolCall, Usage
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

V, E, R, C = "verify", "verify!", "refund", "close"
"""Calls: `!` ends one that returns an error."""


def run_of(*rounds: Sequence[str], usage: Usage | None = None, latency_ms: float = 10.0) -> Trajectory:
    """Return a run whose answers make these calls. The text after a call's colon is its argument."""
    made = []
    for number, names in enumerate(rounds, 1):
        records = []
        for index, name in enumerate(names):
            tool, _, argument = name.removesuffix("!").partition(":")
            call = ToolCall(f"{number}.{index}", tool, {"x": argument} if argument else {})
            error = name.endswith("!")
            result = ResultReceived(call.id, "failed" if error else '{"ok": true}', error, "default", 0.0)
            records.append(CallRecord(call, number, result=result))
        stop: StopReason = "tool calls" if names else "answered"
        made.append(Round(number, calls=tuple(records), stop_reason=stop, usage=usage, latency_ms=latency_ms))
    return Trajectory("run", RunStarted("", "", "", "m", None, (), ()), tuple(made), RunFinished("answered"))


def graded(case: dict[str, Any], run: Trajectory, by: str = "critics", cost_usd: float | None = None) -> Grade:
    """Grade a run by one grader; surplus calls are free."""
    table = {"name": "a", "user": "b", "extra_calls": ["*"], **case, "grading": {"by": by}}
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [table]})
    return graded_run(suite, suite.cases[0], run, cost_usd=cost_usd).grades[0]


def issues(case: dict[str, Any], run: Trajectory, kind: str, by: str = "critics") -> list[int | None]:
    return [issue.call for issue in graded(case, run, by).issues if issue.kind == kind]


def verified(**more: Any) -> dict[str, Any]:
    return {"tool": V, **more}


@each_row(
    ("condition", "rounds", "wrong"),
    [
        ({"before": verified()}, [[V], [R]], []),
        ({"before": verified()}, [[R], [V], [R]], [0]),
        ({"before": verified()}, [[R]], [0]),
        ({"before": verified()}, [[E], [R]], []),
        ({"before": verified()}, [[V, R]], []),
        ({"before": verified()}, [[R, V]], [0]),
        # A result must have been visible, so it comes from an earlier answer.
        ({"before": verified(is_error=False)}, [[E], [R]], [1]),
        ({"before": verified(is_error=False)}, [[V, R]], [1]),
        ({"before": verified(is_error=False)}, [[E], [V], [R]], []),
        ({"before": verified(result={"has_fields": {"ok": True}})}, [[V], [R]], []),
        ({"before": verified(result={"has_fields": {"ok": False}})}, [[V], [R]], [1]),
        ({"before": verified(args={"x": "7"})}, [["verify:8"], [R], ["verify:7"], [R]], [1]),
        ({"before": {"any_of": [{"tool": C}, verified(is_error=False)]}}, [[E], [R], [C], [R]], [1]),
        ({"before": {"any_of": [{"tool": C}, verified()], "is_error": False}}, [[E], [R], [C], [R]], [1]),
        ({"after": {"tool": C}}, [[R], [C], [R]], [2]),
        ({"after": {"tool": C, "is_error": True}}, [[C], [R], ["close!"], [R, R]], [3, 4]),
        ({"after": {"tool": C, "is_error": True}}, [["close!", R]], []),
        # From one call up to another.
        ({"after": {"tool": C}, "before": verified()}, [[R], [C], [R], [V], [R]], [2]),
    ],
)
def test_a_call_is_forbidden_before_or_after_another(
    condition: dict[str, Any], rounds: list[list[str]], wrong: list[int]
) -> None:
    case = {"disallowed": [{"tool": R, **condition}]}
    for by in GRADERS:
        grade = graded(case, run_of(*rounds, []), by)
        assert [issue.call for issue in grade.issues if issue.kind == "forbidden call"] == wrong, by
        assert (grade.status == Status.PASSED) == (not wrong), by


def test_a_condition_is_one_expectation_of_trajectory_and_a_requirement_under_others() -> None:
    case = {"ordered": [{"tool": R}], "disallowed": [{"tool": R, "before": verified(), "because": "verify first"}]}
    run = run_of([R], [V], [])
    grades = {by: graded(case, run, by) for by in GRADERS}
    assert {by: grade.score for by, grade in grades.items()} == dict.fromkeys(GRADERS, 1.0) | {"trajectory": 0.5}
    assert {grade.status for grade in grades.values()} == {Status.FAILED}
    for grade in grades.values():
        (issue,) = grade.issues
        assert issue.reason == "this call must not be made before verify(…); because: verify first"


def test_the_condition_of_an_issue_names_the_result() -> None:
    case = {"disallowed": [{"tool": R, "before": verified(is_error=False, args={"x": "7"})}]}
    (issue,) = graded(case, run_of([V, R], [])).issues
    assert issue.why == 'this call must not be made before verify(x="7") has returned no error'


@each_row(
    ("expected", "rounds", "wrong"),
    [
        ([], [["pay:1"], ["pay:1"]], [1]),
        ([], [["pay:1"], ["pay:2"]], []),
        ([], [["pay:1!"], ["pay:1"]], []),
        ([], [["pay:1!"], ["pay:1"], ["pay:1"]], [2]),
        ([], [["pay:1", "pay:1"]], [1]),
        (["1"], [["pay:1"], ["pay:1"]], [1]),
        (["1", "1"], [["pay:1"], ["pay:1"]], []),
        (["1", "1"], [["pay:1"], ["pay:1"], ["pay:1"]], [2]),
        (["1", "2"], [["pay:1"], ["pay:2"], ["pay:1"]], [2]),
    ],
)
def test_a_call_must_not_be_repeated_after_it_succeeded(
    expected: list[str], rounds: list[list[str]], wrong: list[int]
) -> None:
    case = {"unordered": [{"tool": "pay", "args": {"x": x}} for x in expected], "duplicate_calls": "forbid"}
    for by in GRADERS:
        assert issues(case, run_of(*rounds, []), "duplicate call", by) == wrong, by


def test_times_are_no_duplicates_and_numbers_are_compared_as_json() -> None:
    case = {"ordered": [{"tool": "pay", "times": [1, 2]}], "duplicate_calls": "forbid"}
    assert issues(case, run_of(["pay:1"], ["pay:1"], []), "duplicate call") == []
    assert issues(case, run_of(["pay:1"], ["pay:1"], ["pay:1"], []), "duplicate call") == [2]
    records = [CallRecord(ToolCall(str(x), "pay", {"x": [x]}), 1) for x in (5, 5.0)]
    run = Trajectory("r", RunStarted("", "", "", "m", None, (), ()), (Round(1, calls=tuple(records)),))
    assert issues({"duplicate_calls": "forbid"}, run, "duplicate call") == [1]


CALLS = st.lists(st.sampled_from(["a:1", "a:2", "a:1!", "b", "b!"]), max_size=8)


@given(CALLS, CALLS)
def test_expected_calls_are_never_duplicates_and_further_ones_always(made: list[str], more: list[str]) -> None:
    expected = []
    for name in made:
        tool, _, argument = name.removesuffix("!").partition(":")
        expected.append({"tool": tool, "args": {"x": argument} if argument else {}})
    case = {"unordered": expected, "duplicate_calls": "forbid"}
    if not expected:
        return
    for by in GRADERS:
        assert issues(case, run_of(made, []), "duplicate call", by) == []
        # A call that failed leaves room for another attempt.
        done = [name for name in more if name in made and not name.endswith("!") and f"{name}!" not in made]
        if done:
            assert issues(case, run_of(made, done[:1], []), "duplicate call", by)


USAGE = Usage(100, 20)


@each_row(
    ("limit", "found"),
    [
        ({"calls": 2}, None),
        ({"calls": 1}, ("at most 1", "2")),
        ({"rounds": 3}, None),
        ({"rounds": 2}, ("at most 2", "3")),
        ({"tokens": 360}, None),
        ({"tokens": 359}, ("at most 359", "360")),
        ({"cost_usd": 0.5}, None),
        ({"cost_usd": 0.1}, ("at most $0.1000", "$0.2000")),
        ({"latency_ms": 30}, None),
        ({"latency_ms": 29}, ("at most 29 ms", "30 ms")),
    ],
)
def test_a_run_beyond_at_most_fails_under_every_grader(limit: dict[str, Any], found: tuple[str, str] | None) -> None:
    for by in GRADERS:
        case = {"ordered": [{"tool": "a"}], "at_most": limit}
        grade = graded(case, run_of(["a"], ["b"], [], usage=USAGE), by, cost_usd=0.2)
        over = [issue for issue in grade.issues if issue.kind == "over budget"]
        assert [(issue.expected, issue.got) for issue in over] == ([] if found is None else [found])
        assert (grade.status == Status.FAILED) == (found is not None)
        assert grade.verdict == Status.PASSED


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (
            {"tokens": 10},
            "the endpoint did not report the tokens of each answer",
        ),
        ({"cost_usd": 1}, "set the `price` of the model, whose endpoint must also report tokens"),
        ({"latency_ms": 1}, "the run has no latency of its model"),
    ],
)
def test_an_unknown_figure_is_an_error(limit: dict[str, Any], why: str) -> None:
    with pytest.raises(GradingError) as raised:
        graded({"at_most": limit}, run_of(["a"], [], latency_ms=0))
    (name,) = limit
    assert str(raised.value) == f"at_most.{name} cannot be checked, because the figure is unknown: {why}"


def chain_issues(run: Trajectory, **more: Any) -> list[Issue]:
    steps = [{"user": "go", "tool": "a"}, {"tool": "a"}]
    case = Case.model_validate({"name": "c", "steps": steps, **more})
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [case]})
    return list(graded_run(suite, case, run).grades[0].issues)


def test_the_requirements_of_a_chain_are_about_the_whole_run() -> None:
    run = run_of(["a:1"], ["a:1"])
    assert chain_issues(run, duplicate_calls="forbid", at_most={"calls": 2}) == []
    assert [issue.kind for issue in chain_issues(run, at_most={"calls": 1})] == ["over budget"]
