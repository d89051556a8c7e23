"""`whole_numbers = "as BFCL"`: numbers are of the types that the leaderboard's checker sees."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.checks.schemas import ArgumentSchema
from workbench.grading.run import graded_run
from workbench.suite.model import Suite
from workbench.tools.listings import definition_of
from workbench.trajectory.events import RunFinished, RunStarted, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory


@pytest.mark.parametrize(
    ("declared", "expected", "given", "as_bfcl"),
    [
        ({"type": "integer"}, {"equals": 5, "cast": False}, 5, "passed"),
        ({"type": "integer"}, {"equals": 5, "cast": False}, 5.0, "failed"),
        ({"type": "integer"}, {"equals": 5.0, "cast": False}, 5.0, "passed"),
        ({"type": "number"}, {"equals": 5, "cast": False}, 5, "passed"),
        ({"type": "number"}, {"equals": 5, "cast": False}, 5.0, "passed"),
        ({"type": "array", "items": {"type": "integer"}}, {"equals_text": [1, 2]}, [1, 2.0], "failed"),
        ({"type": "array", "items": {"type": "number"}}, {"equals_text": [1.0, 2.5]}, [1, 2.5], "failed"),
        ({"type": "array", "items": {"type": "number"}}, {"equals_text": [1.0, 2.5]}, [1.0, 2.5], "passed"),
        ({"type": "array", "items": {"type": "number"}}, {"equals_text": [1, 2]}, [1, 2.0], "passed"),
        ({}, {"equals": 5, "cast": False}, 5.0, "passed"),
    ],
)
@pytest.mark.parametrize("whole_numbers", ["as JSON", "as BFCL"])
def test_numbers_are_of_the_types_of_python(
    declared: dict[str, Any], expected: Any, given: Any, as_bfcl: str, whole_numbers: str
) -> None:
    suite = Suite.model_validate(
        {
            "format": 1,
            "name": "s",
            "grading": {"by": "trajectory", "invalid_arguments": "note", "whole_numbers": whole_numbers},
            "tools": [{"name": "f", "parameters": {"type": "object", "properties": {"n": declared}}}],
            "cases": [{"name": "c", "user": "Do", "unordered": [{"tool": "f", "args": {"n": expected}}]}],
        }
    )
    tools = tuple(map(definition_of, suite.tools))
    assert not ArgumentSchema(tools[0].parameters).violations({"n": given}), "valid in JSON Schema"
    start = RunStarted("", "", "", "m", None, (), tools)
    call = CallRecord(ToolCall("1", "f", {"n": given}), 1)
    run = Trajectory("r", start, (Round(1, calls=(call,), stop_reason="tool calls"),), RunFinished("answered"))
    wanted = as_bfcl if whole_numbers == "as BFCL" else "passed"
    assert graded_run(suite, suite.cases[0], run).status == wanted
