"""A low-level MCP server with sixty tools on several pages, errors of its own, and valid and invalid structured
results."""

import asyncio
from typing import Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

PAGE = 25
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
ENDLESS_SEARCH = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^(a|aa)+$"}}}
TOOLS = [
    Tool(
        name=f"tool_{number}",
        description=f"Number {number}",
        input_schema={"type": "object"},
        output_schema=ENDLESS_SEARCH if number == 3 else COUNT,
    )
    for number in range(60)
]


async def list_tools(
    context: ServerRequestContext[dict[str, Any]], params: PaginatedRequestParams | None
) -> ListToolsResult:
    start = int(params.cursor) if params is not None and params.cursor is not None else 0
    rest = start + PAGE
    more = rest < len(TOOLS)
    return ListToolsResult(tools=TOOLS[start:rest], next_cursor=str(rest) if more else None)


async def call_tool(context: ServerRequestContext[dict[str, Any]], params: CallToolRequestParams) -> CallToolResult:
    match params.name:
        case "tool_0":
            return CallToolResult(content=[], structured_content={"count": 7})
        case "tool_1":
            return CallToolResult(content=[], structured_content={"count": "many"})
        case "tool_3":
            return CallToolResult(content=[], structured_content={"city": "a" * 60 + "!"})
        case _:
            raise MCPError(code=-32000, message=f"{params.name} is out of stock")


server = Server("catalogue", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
