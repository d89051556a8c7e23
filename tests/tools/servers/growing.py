"""A server of the newest protocol, built on the SDK. Its tools change when `grow` is called, and it announces the
change."""

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("growing")


def peek(place: str) -> str:
    """Peeks."""
    return f"peeked at {place}"


@server.tool()
def wither() -> str:
    """Goes when another one comes."""
    return "withered"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def grow(ctx: Context) -> str:
    """Adds a tool, and takes one away."""
    server.add_tool(peek)
    server.remove_tool("wither")
    await ctx.notify_tools_changed()  # to those who listen
    await ctx.session.send_tool_list_changed()  # to those of the older protocol
    return "grown"


if __name__ == "__main__":
    server.run("stdio")
