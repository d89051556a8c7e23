"""The offline model against a server that knows nothing of it: `mcp-server-time` over stdio."""

from __future__ import annotations

import sys

import pytest

from workbench.providers.model import ModelRequest
from workbench.providers.offline.model import OfflineModel
from workbench.trajectory.events import CallFinished, CallStarted, Message, ToolCall, ToolDefinition


@pytest.mark.slow
async def test_it_calls_the_time_server_and_answers_with_what_came_back() -> None:
    from mcp import Client, StdioServerParameters  # takes a while, and each worker collects all tests

    async with Client(StdioServerParameters(command=sys.executable, args=["-m", "mcp_server_time"])) as client:
        tools = tuple(
            ToolDefinition(tool.name, tool.description or "", tool.input_schema)
            for tool in (await client.list_tools()).tools
        )
        asked = Message("user", "Convert 16:30 from New York to Tokyo")
        pieces = [piece async for piece in OfflineModel().stream(ModelRequest(1, None, (asked,), tools))]
        (started,) = [piece for piece in pieces if isinstance(piece, CallStarted)]
        (finished,) = [piece for piece in pieces if isinstance(piece, CallFinished)]
        result = await client.call_tool(started.tool, dict(finished.arguments))
    assert started.tool == "convert_time"
    assert finished.arguments == {
        "source_timezone": "America/New_York",
        "time": "16:30",
        "target_timezone": "Asia/Tokyo",
    }
    assert not result.is_error
    content = getattr(result.content[0], "text", "")
    call = ToolCall(finished.call_id, started.tool, finished.arguments)
    messages = (asked, Message("assistant", "", (call,)), Message("tool", content, call_id=call.id))
    told = [piece async for piece in OfflineModel().stream(ModelRequest(2, None, messages, tools, calls_before=1))]
    assert "time_difference" in "".join(getattr(piece, "text", "") for piece in told)
    assert not [piece for piece in told if isinstance(piece, CallStarted)]
