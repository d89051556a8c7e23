"""An MCP server with well-behaved and ill-behaved tools. Each word of its command line adds a bad habit.

`sdk_workshop` offers the same tools by the SDK, for every transport.
"""

import os
import signal
import sys
import threading
from typing import Any

from plain import PlainServer, Tell, ToolError

server = PlainServer("workshop")


@server.tool(readOnlyHint=True)
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
def picture() -> dict[str, Any]:
    """Answers with a text, an image and another text."""
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    return {"content": [{"type": "text", "text": "before"}, image, {"type": "text", "text": "after"}]}


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
    import subprocess

    return subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"]).pid


@server.tool()
def count(to: int, tell: Tell, word: str = "step") -> str:
    """Counts, and says at every step how far it is."""
    for number in range(1, to + 1):
        tell(number, to, f"{word} {number}")
    return "counted"


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
    server.run()
    if "stubborn" in habits:
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
