"""An MCP server that says how often it was called."""

from itertools import count

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("counting")
_calls = count(1)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(place: str) -> str:
    """Looks at a place."""
    return f"look {next(_calls)}: {place}"


if __name__ == "__main__":
    server.run("stdio")
