"""Tools of `workshop`, offered by the SDK over every transport."""

import os
import threading

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ImageContent, TextContent, ToolAnnotations

server = MCPServer("workshop")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Adds two whole numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Says what it is told."""
    return text


@server.tool()
def flood(mebibytes: int) -> str:
    """Says more than anybody wants to know."""
    return "x" * mebibytes * 2**20


@server.tool()
def hang() -> str:
    """Never answers."""
    threading.Event().wait()
    return ""


@server.tool()
def process_id() -> int:
    """Which process this is."""
    return os.getpid()


@server.tool()
def refuse() -> str:
    """Always answers with a tool error."""
    raise ToolError("the workshop is closed")


@server.tool()
def picture() -> CallToolResult:
    """Answers with a text, an image and another text."""
    image = ImageContent(data="aGVsbG8=", mime_type="image/png")
    return CallToolResult(content=[TextContent(text="before"), image, TextContent(text="after")])


@server.tool()
async def count(to: int, context: Context, word: str = "step") -> str:
    """Counts, and says at every step how far it is."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"{word} {number}")
    return "counted"


@server.tool()
def header(name: str, context: Context) -> str:
    """A header of the request as it arrived."""
    return (context.headers or {}).get(name, "(not sent)")


@server.tool()
def header_is(name: str, value: str, context: Context) -> bool:
    """Whether a header of the request arrived with a value."""
    return (context.headers or {}).get(name) == value


if __name__ == "__main__":
    server.run("stdio")
