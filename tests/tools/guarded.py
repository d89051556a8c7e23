"""A server behind OAuth in its own process, and a browser that follows its addresses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests.cli.forking import ForkedProgram
from tests.tools.conftest import SERVERS
from tests.tools.web import NEEDED
from workbench.suite.server_model import Server
from workbench.tools.redirect import RedirectAnswer, RedirectServer

ROBOT_SECRET = "robot-secret-4711"


@dataclass
class Guarded:
    """A running server. It is killed at the end of its context."""

    port: int
    speaks: Literal["http", "sse"]

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/{'sse' if self.speaks == 'sse' else 'mcp'}"

    def definition(self, **keys: object) -> Server:
        transport = {"transport": "sse"} if self.speaks == "sse" else {}
        return Server.model_validate({"name": "guarded", "url": self.url, "auth": "oauth", **transport, **keys})

    def machine(self, **keys: object) -> Server:
        """Return the server for a machine that logs in with the secret `ROBOT_SECRET`."""
        robot = {"client_id": "robot", "client_secret": "$ROBOT_SECRET", "issuer": f"{self.origin}/"}
        return self.definition(**{"auth": "client_credentials", **robot, **keys})

    def does(self, what: str, document: object = None) -> None:
        """Make the operators of the server do something."""
        httpx2.post(f"{self.origin}/control/{what}", json=document).raise_for_status()

    def grants(self) -> list[str]:
        """Return the requests to the server in order: registrations and requests for tokens."""
        granted: list[str] = httpx2.get(f"{self.origin}/control/grants").json()
        return granted


@contextmanager
def guarded(speaks: Literal["http", "sse"] = "http") -> Iterator[Guarded]:
    """Start the server and wait until it listens."""
    reading, writing = os.pipe()
    quiet = os.open(os.devnull, os.O_RDWR)
    first = f"import sys; sys.path.insert(0, {str(SERVERS)!r})"
    needs = (*NEEDED, "fastmcp.server.auth.providers.in_memory")
    streams = [quiet, writing, quiet]
    process = ForkedProgram([speaks, "0"], streams, SERVERS, os.environ, first=first, run="guarded:main", needs=needs)
    for stream in (writing, quiet):
        os.close(stream)
    try:
        with os.fdopen(reading) as said:
            yield Guarded(int(said.readline()), speaks)
    finally:
        process.kill()
        process.wait()


class Browser:
    """A user whose browser follows each address at once, up to the local one at the end."""

    def __init__(self, redirect: RedirectServer) -> None:
        self.redirect = redirect.address
        self._redirect = redirect
        self.asked: dict[str, str] = {}
        """The query of the authorization address."""

    async def answer_to(self, address: str) -> RedirectAnswer:
        self.asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        waiting = asyncio.create_task(self._redirect.answer_to(address))
        await asyncio.sleep(0)
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            await browser.get(address)
        return await waiting


def ended(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a stored login with an expired token."""
    return {**stored, "expires_at": 1.0}
