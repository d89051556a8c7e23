"""Calls checked against their tools' schemas: the measure, its effect, and calls without a JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.tables import each_row
from workbench.grading.run import graded_run
from workbench.grading.valid_arguments import check_calls
from workbench.suite.grading_model import GRADERS, GraderName
from workbench.suite.model import Case, Suite
from workbench.trajectory.events import (
    JsonValue,
    ResultReceived,
    ResultSource,
    RunFinished,
    RunStarted,
    ToolCall,
    ToolDefinition,
)
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "required": ["room"],
    "additionalProperties": False,
    "properties": {"room": {"enum": ["hall", "kitchen"]}, "level": {"type": "integer", "maximum": 100}},
}
TOOLS = (
    ToolDefinition("set", "Set a lamp", SCHEMA),
    ToolDefinition("odd", "A tool with an invalid schema", {"type": "thing"}),
)
GOOD: dict[str, JsonValue] = {"room": "hall", "level": 5}
BAD: dict[str, JsonValue] = {"room": "hall", "level": 500}


def record(
    arguments: Mapping[str, JsonValue] | str,
    *,
    tool: str = "set",
    answer: int = 1,
    refused: bool = True,
    source: ResultSource = "default",
    content: str = "no",
    code: int | None = None,
) -> CallRecord:
    """A call with its result; arguments that are a text are no JSON object."""
    if isinstance(arguments, str):
        call = ToolCall("c", tool, raw=arguments, problem="not JSON")
    else:
        call = ToolCall("c", tool, arguments)
    return CallRecord(call, answer, result=ResultReceived("c", content, refused, source, 0.0, code))


def run_of(*calls: CallRecord) -> Trajectory:
    rounds: dict[int, list[CallRecord]] = {}
    for call in calls:
        rounds.setdefault(call.round, []).append(call)
    answered = tuple(Round(number, calls=tuple(made), stop_reason="tool calls") for number, made in rounds.items())
    last = Round(len(answered) + 1, text="done", stop_reason="answered")
    start = RunStarted("hash", "case", "Case", "model", None, (), TOOLS)
    return Trajectory("run", start, (*answered, last), RunFinished("answered"))


@each_row(
    ("calls", "valid", "corrected"),
    [
        ([record(GOOD)], [True], []),
        ([record(BAD)], [False], []),
        ([record("{")], [False], []),
        ([record(BAD), record(GOOD, answer=2)], [False, True], [0]),
        ([record("{"), record(GOOD, answer=2)], [False, True], [0]),
        # The model was not told that the call was wrong.
        ([record(BAD, refused=False), record(GOOD, answer=2)], [False, True], []),
        # Calls of one answer do not correct each other.
        ([record(BAD), record(GOOD)], [False, True], []),
        ([record(BAD), record(BAD), record(GOOD, answer=2)], [False, False, True], [0]),
        ([record(BAD), record(BAD, answer=2), record(GOOD, answer=3)], [False, False, True], [0, 1]),
        ([record(BAD), record(GOOD, tool="odd", answer=2)], [False, None], []),
        ([record(GOOD, tool="odd")], [None], []),
        ([record(GOOD, tool="unknown")], [None], []),
        ([record(GOOD, source="server", code=-32602, content="bad")], [False], []),
        ([record(GOOD, source="server", code=-32602, content="Unknown tool: set")], [True], []),
        ([record(GOOD, source="server", content="Input validation error: no")], [False], []),
        ([record(GOOD, source="server", content="1 validation error for call[set]")], [False], []),
        ([record(GOOD, source="server", content="the lamp is broken")], [True], []),
        ([record(GOOD, source="case mock", content="Input validation error: no")], [True], []),
        ([record(GOOD, source="server", refused=False, content="Input validation error: no")], [True], []),
    ],
)
def test_each_call_is_valid_or_not_or_unknown(
    calls: Sequence[CallRecord], valid: list[bool | None], corrected: list[int]
) -> None:
    checked = check_calls(run_of(*calls))
    assert [call.valid for call in checked] == valid
    assert [index for index, call in enumerate(checked) if call.corrected] == corrected


def suite_of(grading: Mapping[str, Any], **case: Any) -> tuple[Suite, Case]:
    suite = Suite.model_validate(
        {"format": 1, "name": "S", "grading": grading, "cases": [{"name": "case", "user": "go", **case}]}
    )
    return suite, suite.cases[0]


@pytest.mark.parametrize("by", GRADERS)
@pytest.mark.parametrize("args", [None, {}, {"room": {"equals": "hall", "optional": True}}])
def test_a_call_without_a_json_object_is_right_under_no_grader(by: GraderName, args: object) -> None:
    expected = {"tool": "set"} if args is None else {"tool": "set", "args": args}
    suite, case = suite_of({"by": by}, ordered=[expected])
    graded = graded_run(suite, case, run_of(record("{")))
    assert graded.status == "failed"
    assert graded.grades[0].score != 1
    broken = [issue for issue in graded.grades[0].issues if issue.kind == "broken arguments"]
    assert [issue.decides for issue in broken] == [True]


@pytest.mark.parametrize("by", GRADERS)
def test_a_violation_fails_the_run_beside_a_score_that_stays(by: GraderName) -> None:
    suite, case = suite_of({"by": by}, ordered=[{"tool": "set", "args": {"room": "hall", "level": 500}}])
    graded = graded_run(suite, case, run_of(record(BAD)))
    assert graded.status == "failed"
    assert graded.grades[0].score == 1
    assert graded.grades[0].is_broken
    (issue,) = (issue for issue in graded.grades[0].issues if issue.decides)
    assert (issue.kind, issue.tool, issue.argument) == ("schema violation", "set", "level")
    assert issue.why == "the tool's schema refuses it (maximum): 500 is greater than the maximum of 100"


@each_row(
    ("grading", "status", "issues"),
    [
        ({}, "failed", 1),
        ({"invalid_arguments": "note"}, "passed", 1),
        ({"invalid_arguments": "ignore"}, "passed", 0),
        ({"critics": {"arcade_compatible": True}}, "passed", 1),
        ({"dimensions": {"repeated_calls": "as published"}}, "passed", 1),
        ({"critics": {"arcade_compatible": True}, "invalid_arguments": "fail"}, "failed", 1),
    ],
)
def test_a_suite_says_whether_a_violation_decides(grading: Mapping[str, Any], status: str, issues: int) -> None:
    suite, case = suite_of(grading, ordered=[{"tool": "set"}])
    graded = graded_run(suite, case, run_of(record(BAD)))
    assert graded.status == status
    assert sum(issue.kind == "schema violation" for issue in graded.grades[0].issues) == issues
    assert graded.valid_arguments == (False,)


def test_a_corrected_call_is_an_issue_that_fails_nothing() -> None:
    suite, case = suite_of({"by": "trajectory"}, ordered=[{"tool": "set", "args": {"room": "hall"}}])
    graded = graded_run(suite, case, run_of(record({}), record(GOOD, answer=2)))
    assert graded.status == "passed"
    assert graded.valid_arguments == (False, True)
    (issue,) = (issue for issue in graded.grades[0].issues if issue.kind == "schema violation")
    assert issue.argument == "room"
    assert issue.why.endswith("; corrected later")


@pytest.mark.parametrize("grader", GRADERS)
@pytest.mark.parametrize("first", [{}, BAD, "{"])
def test_a_corrected_call_is_not_surplus_where_look_ups_or_named_tools_are_free(
    grader: GraderName, first: Mapping[str, JsonValue] | str
) -> None:
    args = {"room": "hall"} if grader in ("critics", "trajectory") else GOOD
    corrected = record(first), record(GOOD, answer=2, refused=False)
    again = record(GOOD, answer=3, refused=False)

    def status(extra_calls: object, *calls: CallRecord) -> str:
        suite, case = suite_of({"by": grader, "extra_calls": extra_calls}, ordered=[{"tool": "set", "args": args}])
        return graded_run(suite, case, run_of(*calls)).status

    for rule in ("allow_read_only", ["odd"]):
        assert status(rule, *corrected) == "passed"
        assert status(rule, *corrected, again) == "failed"
        assert status(rule, corrected[0]) == "failed"
    assert status("forbid", *corrected) == "failed"


def test_the_issue_of_a_corrected_call_names_the_key_that_frees_it_and_no_second_call() -> None:
    suite, case = suite_of({}, ordered=[{"tool": "set", "args": {"room": "hall"}}])
    corrected = record({}), record(GOOD, answer=2, refused=False)

    def keys(*calls: CallRecord) -> set[str]:
        issues = graded_run(suite, case, run_of(*calls)).grades[0].issues
        return {issue.why.partition("; ")[2] for issue in issues if issue.kind == "extra call"}

    assert keys(*corrected) == {'extra_calls = "allow_read_only" frees it'}
    assert keys(*corrected, record(GOOD, answer=3, refused=False)) == {'extra_calls = ["set"] frees it'}


def test_a_prohibition_with_arguments_is_not_met_by_none() -> None:
    suite, case = suite_of({}, disallowed=[{"tool": "set", "args": {}}, {"tool": "odd"}])
    kinds = {issue.kind for issue in graded_run(suite, case, run_of(record("{"))).grades[0].issues}
    assert kinds == {"broken arguments"}
    kinds = {issue.kind for issue in graded_run(suite, case, run_of(record("{", tool="odd"))).grades[0].issues}
    assert kinds == {"broken arguments", "forbidden call"}
