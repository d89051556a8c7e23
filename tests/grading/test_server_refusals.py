"""Refusals of arguments by real servers, in the words of their SDKs, and errors that are none."""

from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.grading.valid_arguments import refusal_of
from workbench.trajectory.events import ResultReceived, ResultSource, ToolCall
from workbench.trajectory.trajectory import CallRecord


def answered(content: str, *, code: int | None = None, source: ResultSource = "server") -> CallRecord:
    return CallRecord(ToolCall("c", "set"), 1, result=ResultReceived("c", content, True, source, 0.0, code))


@each_row(
    "content",
    [
        pytest.param("Input validation error: 'time' is a required property", id="Python SDK, low level"),
        pytest.param(
            "Error executing tool convert_time: 2 validation errors for convert_timeArguments\ntime\n  Input should be",
            id="Python SDK, MCPServer",
        ),
        pytest.param("1 validation error for call[set_level]\nroom\n  Input should be 'a' or 'b'", id="FastMCP 4"),
        pytest.param("Error calling tool 'set': 1 validation error for call[set]\nroom\n  Missing", id="FastMCP 2"),
        pytest.param(
            'MCP error -32602: Input validation error: Invalid arguments for tool set: [\n  {"code": "x"}\n]',
            id="TypeScript SDK",
        ),
        pytest.param("Input validation error: Invalid arguments for tool set: Required", id="TypeScript SDK 2"),
        pytest.param(
            'MCP error -32602: Invalid arguments for tool set: [ { "code": "x" } ]', id="TypeScript SDK, early"
        ),
        pytest.param('validating "arguments": validating root: required: missing properties: ["room"]', id="Go SDK"),
        pytest.param('invalid params: validating "arguments": validating root: unexpected', id="Go SDK, early"),
    ],
)
def test_the_refusals_of_the_sdks_are_recognised(content: str) -> None:
    assert refusal_of(answered(content)) is not None
    assert refusal_of(answered(content, source="reported")) is not None
    assert refusal_of(answered(content, source="suite mock")) is None, "a mock answers as its suite says"


@each_row(
    ("content", "code"),
    [
        # The tool itself failed: the time server reports a time zone that does not exist.
        ("Error executing tool convert_time: Invalid timezone: 'No time zone found with key Mars/X'", None),
        ("Error executing tool fetch: 1 validation error for WeatherReport\ncity\n  Field required", None),
        ("Error calling tool 'set': the lamp is broken", None),
        ("2 validation errors for the order of the customer", None),
        ("validation failed: the card was declined", None),
        ("MCP error -32603: Internal error", None),
        # Other faults with the same code.
        ("Unknown tool: set", -32602),
        ("MCP error -32602: Tool set not found", -32602),
        ("MCP error -32602: Tool set disabled", None),
        ("MCP error -32602: Output validation error: Tool set has an output schema but no structured content", None),
        ("Output validation error: 'x' is not of type 'integer'", -32602),
        ("Internal error", -32603),
    ],
)
def test_other_errors_are_no_refusal_of_arguments(content: str, code: int | None) -> None:
    assert refusal_of(answered(content, code=code)) is None


def test_the_code_of_json_rpc_is_enough_and_values_in_the_message_do_not_matter() -> None:
    assert refusal_of(answered("failed to deserialize parameters: missing field `room`", code=-32602)) is not None
    assert refusal_of(answered("Input validation error: no\n'the tool was not found' is too long")) is not None
