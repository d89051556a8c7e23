"""A server of this folder over HTTP: `MODULE (http | json | sse | old) PORT`. Prints the port it listens on.

`json` answers calls with single documents instead of streams, `old` speaks streamable HTTP with sessions and nothing
newer than the handshake of 2025-11-25.
"""

import asyncio
import importlib
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def app_of(server: Any, transport: str) -> ASGIApp:
    if transport == "sse":
        return server.sse_app()  # type: ignore[no-any-return]
    app: ASGIApp = server.streamable_http_app(json_response=transport == "json")
    return without_discovery(app) if transport == "old" else app


def without_discovery(app: ASGIApp) -> ASGIApp:
    """Refuses the first request of the newer protocol, as servers do that have never heard of it."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        first = await receive()
        if b'"server/discover"' in first.get("body", b""):
            await send({"type": "http.response.start", "status": 400, "headers": []})
            return await send({"type": "http.response.body", "body": b"Bad Request: no session"})
        replayed = [first]

        async def again() -> Message:
            return replayed.pop() if replayed else await receive()

        return await app(scope, again, send)

    return asgi


async def serve(module: str, transport: str, port: int) -> None:
    server = importlib.import_module(module).server
    listening = socket.create_server(("127.0.0.1", port))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    if not isinstance(server, MCPServer):
        assert transport != "sse", "a low-level server has no app for it"
    config = uvicorn.Config(app_of(server, transport), log_level="critical", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve([listening])


def main() -> int:
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    return 0
