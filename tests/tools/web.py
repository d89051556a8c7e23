"""Servers of the folder `servers` behind a URL, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

from tests.tools.conftest import SERVERS
from workbench.suite.model import Server

Speaks = Literal["http", "json", "old", "sse"]
ALL_SPEAK: tuple[Speaks, ...] = ("http", "json", "old", "sse")


@dataclass
class Hosted:
    """A server that listens; killed when it is left, or before."""

    process: subprocess.Popen[str]
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
        self.process.wait(10)


@contextmanager
def hosted(module: str, speaks: Speaks = "http", port: int = 0) -> Iterator[Hosted]:
    """Start a module's server and wait until it listens."""
    command = [sys.executable, "web.py", module, speaks, str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=SERVERS, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        assert process.stdout is not None
        server = Hosted(process, int(process.stdout.readline()), speaks)
        try:
            yield server
        finally:
            server.kill()


class Shared:
    """Servers that several tests use and none harms, each started when it is first asked for."""

    def __init__(self, exits: ExitStack) -> None:
        self._exits = exits
        self._started: dict[tuple[str, Speaks], Hosted] = {}

    def __call__(self, module: str = "workshop", speaks: Speaks = "http") -> Hosted:
        key = (module, speaks)
        if key not in self._started:
            self._started[key] = self._exits.enter_context(hosted(module, speaks))
        return self._started[key]
