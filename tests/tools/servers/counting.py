"""An MCP server that returns how often it was called."""

from itertools import count

from plain import PlainServer

server = PlainServer("counting")
_calls = count(1)


@server.tool(readOnlyHint=True)
def look(place: str) -> str:
    """Looks at a place."""
    return f"look {next(_calls)}: {place}"


if __name__ == "__main__":
    server.run()
