"""Servers of the folder `servers` over HTTP, each in its own process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

from tests.cli.forking import ForkedProgram
from tests.tools.conftest import SERVERS
from workbench.suite.server_model import Server

Speaks = Literal["http", "json", "old", "sse"]
NEEDED = (
    "mcp.server.mcpserver",
    "mcp.server.sse",
    "mcp.server.streamable_http_manager",
    "starlette.applications",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
ALL_SPEAK: tuple[Speaks, ...] = ("http", "json", "old", "sse")


@dataclass
class Hosted:
    """A running server. It is killed at the end of its context, or before."""

    process: ForkedProgram
    port: int
    speaks: Speaks

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'sse' if self.speaks == 'sse' else 'mcp'}"

    def definition(self, name: str = "hosted", **keys: object) -> Server:
        transport = {"transport": "sse"} if self.speaks == "sse" else {}
        return Server.model_validate({"name": name, "url": self.url, **transport, **keys})

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def hosted(module: str, speaks: Speaks = "http", port: int = 0) -> Iterator[Hosted]:
    """Start a module's server and wait until it listens."""
    reading, writing = os.pipe()
    quiet = os.open(os.devnull, os.O_RDWR)
    first = f"import sys; sys.path.insert(0, {str(SERVERS)!r})"
    words, streams = [module, speaks, str(port)], [quiet, writing, quiet]
    process = ForkedProgram(words, streams, SERVERS, os.environ, first=first, run="web:main", needs=NEEDED)
    for stream in (writing, quiet):
        os.close(stream)
    with os.fdopen(reading) as said:
        server = Hosted(process, int(said.readline()), speaks)
    try:
        yield server
    finally:
        server.kill()


class Shared:
    """Servers that several tests share and none changes. Each is started when it is first needed."""

    def __init__(self, exits: ExitStack) -> None:
        self._exits = exits
        self._started: dict[tuple[str, Speaks], Hosted] = {}

    def __call__(self, module: str = "sdk_workshop", speaks: Speaks = "http") -> Hosted:
        key = (module, speaks)
        if key not in self._started:
            self._started[key] = self._exits.enter_context(hosted(module, speaks))
        return self._started[key]
