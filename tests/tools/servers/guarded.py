"""A server behind OAuth, over streamable HTTP or server-sent events: `(http | sse) PORT`. Prints its port.

The server is its own authorization server and admits everyone at once. `POST /control/WHAT` does what the operators of
the server might do, and `GET /control/grants` lists the requests it received. A machine logs in as the client `robot`
with the secret `robot-secret-4711`, sent as `machine-takes` requires."""

import asyncio
import base64
import secrets
import socket
import sys
import time
from urllib.parse import parse_qs

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

SCOPES = ["use", "admin"]
ROBOT = ("robot", "robot-secret-4711")


class Guarded:
    def __init__(self, port: int) -> None:
        self.grants: list[str] = []
        options = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES[:1])
        self.provider = InMemoryOAuthProvider(
            base_url=f"http://127.0.0.1:{port}", client_registration_options=options, required_scopes=SCOPES[:1]
        )
        self.server = FastMCP("guarded", auth=self.provider)
        self._meeting = asyncio.Barrier(5)
        self.server.tool(self.add, annotations={"readOnlyHint": True})
        self.server.tool(self.meet)
        self.server.custom_route("/control/{what}", methods=["GET", "POST"])(self._control)

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    async def meet(self) -> str:
        """Answer when five calls are in progress."""
        await self._meeting.wait()
        return "met"

    async def _control(self, request: Request) -> Response:
        provider = self.provider
        match request.path_params["what"]:
            case "grants":
                return JSONResponse(self.grants)
            case "end-access":
                provider.access_tokens.clear()
            case "revoke":
                provider.access_tokens.clear()
                provider.refresh_tokens.clear()
            case "register":
                await provider.register_client(OAuthClientInformationFull.model_validate(await request.json()))
        return Response(status_code=204)

    def counting(self, app: ASGIApp) -> ASGIApp:
        """Record each registration and each request for a token. Answer the requests of the machine."""

        async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] == "/register":
                self.grants.append("register")
            if scope["type"] != "http" or scope["path"] != "/token":
                return await app(scope, receive, send)
            request = Request(scope, receive)
            body = await request.body()
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.grants.append(form["grant_type"])
            if form["grant_type"] == "client_credentials":
                return await self._machine(request, form)(scope, receive, send)

            async def again() -> dict[str, object]:
                return {"type": "http.request", "body": body}

            return await app(scope, again, send)

        return asgi

    def _machine(self, request: Request, form: dict[str, str]) -> Response:
        scheme, _, told = request.headers.get("authorization", "").partition(" ")
        if scheme != "Basic" or tuple(base64.b64decode(told).decode().split(":")) != ROBOT:
            return JSONResponse({"error": "invalid_client", "error_description": "no such client"}, 401)
        token, scopes = f"machine-{secrets.token_hex(16)}", form.get("scope", SCOPES[0]).split()
        ends = int(time.time()) + 3600
        self.provider.access_tokens[token] = AccessToken(
            token=token, client_id=ROBOT[0], scopes=scopes, expires_at=ends
        )
        return JSONResponse({"access_token": token, "token_type": "bearer", "expires_in": 3600})


async def serve(speaks: str, port: int) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    guarded = Guarded(port)
    app: Starlette = guarded.server.http_app(transport="sse" if speaks == "sse" else "http")
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    config = uvicorn.Config(guarded.counting(app), log_level="critical", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve([listening])


def main() -> int:
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
    return 0


if __name__ == "__main__":
    main()
