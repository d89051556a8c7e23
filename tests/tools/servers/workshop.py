"""An MCP server with well-behaved and ill-behaved tools, for every transport.

As a program it speaks over its standard input and output, and each word of its command line adds a bad habit.
"""

import os
import signal
import subprocess
import sys
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
def refuse() -> str:
    """Always answers with a tool error."""
    raise ToolError("the workshop is closed")


@server.tool()
def crash() -> str:
    """Ends the server in the middle of the call."""
    os._exit(3)


@server.tool()
def hang() -> str:
    """Never answers."""
    threading.Event().wait()
    return ""


@server.tool()
def picture() -> CallToolResult:
    """Answers with a text, an image and another text."""
    return CallToolResult(
        content=[
            TextContent(text="before"),
            ImageContent(data="aGVsbG8=", mime_type="image/png"),
            TextContent(text="after"),
        ]
    )


@server.tool()
def variable(name: str) -> str:
    """The value of an environment variable as the server sees it."""
    return os.environ.get(name, "(not set)")


@server.tool()
def leak(name: str) -> str:
    """Answers with an error that shows the value of an environment variable."""
    raise ToolError(f"bad token {os.environ[name]}")


@server.tool()
def folder() -> str:
    """The working directory."""
    return os.getcwd()  # noqa: PTH109


@server.tool()
def process_id() -> int:
    """Which process this is."""
    return os.getpid()


@server.tool()
def breed() -> int:
    """Starts a process that outlives its parent unless it is killed, and answers with its id."""
    return subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"]).pid


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


def main(habits: list[str]) -> None:
    if "chatty" in habits:
        sys.stdout.write('hello there\n{"not": "a message"}\n\n')
        sys.stdout.flush()
    if "endless" in habits:
        sys.stdout.write("x" * (33 * 1024 * 1024) + "\n")
        sys.stdout.flush()
    if "loud" in habits:
        sys.stderr.write("complaint\n" * 500_000)
    if "stubborn" in habits:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.run("stdio")
    if "stubborn" in habits:
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
