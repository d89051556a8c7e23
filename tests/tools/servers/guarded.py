"""A server behind OAuth, over streamable HTTP: `PORT`. Prints the port it listens on.

It is its own authorization server, and everyone who asks is let in at once. `POST /control/WHAT` does what a person
behind it might do, and `GET /control` tells what was asked of it.
"""

import asyncio
import socket
import sys
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCOPE = "use"


def server_at(port: int) -> tuple[ASGIApp, list[str]]:
    """Returns the app and the grants that it is asked for, in their order."""
    grants: list[str] = []
    options = ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE])
    provider = InMemoryOAuthProvider(
        base_url=f"http://127.0.0.1:{port}", client_registration_options=options, required_scopes=[SCOPE]
    )
    server = FastMCP("guarded", auth=provider)
    meeting = asyncio.Barrier(5)

    @server.tool(annotations={"readOnlyHint": True})
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool
    async def meet() -> str:
        """Answers when five calls are under way."""
        await meeting.wait()
        return "met"

    @server.custom_route("/control/{what}", methods=["GET", "POST"])
    async def control(request: Request) -> Response:
        match request.path_params["what"]:
            case "grants":
                return JSONResponse(grants)
            case "end-access":
                provider.access_tokens.clear()
            case "revoke":
                provider.access_tokens.clear()
                provider.refresh_tokens.clear()
            case "register":
                document: dict[str, Any] = await request.json()
                await provider.register_client(OAuthClientInformationFull.model_validate(document))
        return Response(status_code=204)

    return counted(server.http_app(), grants), grants


def counted(app: ASGIApp, grants: list[str]) -> ASGIApp:
    """Notes the grant of each request for a token, and the address of each registration."""

    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/register":
            grants.append("register")
        if scope["type"] != "http" or scope["path"] != "/token":
            return await app(scope, receive, send)
        body = await receive()
        grants.append(parse_qs(body.get("body", b"").decode())["grant_type"][0])
        replayed = [body]

        async def again() -> Message:
            return replayed.pop() if replayed else await receive()

        return await app(scope, again, send)

    return asgi


async def serve(port: int) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    app, _ = server_at(port)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve([listening])


def main() -> int:
    asyncio.run(serve(int(sys.argv[1])))
    return 0


if __name__ == "__main__":
    main()
