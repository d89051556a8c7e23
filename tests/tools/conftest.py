"""Real servers for the tests of this room, closed after each test and then looked for among the living."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from tests.tools.processes import group_is_gone
from workbench.suite.model import Server
from workbench.tools.servers import StdioServer, TimeLimits

SERVERS = Path(__file__).parent / "servers"

QUICK = TimeLimits(start_s=20, call_s=10, polite_s=0.5, terminate_s=0.3)


class OpenServer(Protocol):
    """Makes a server named `bench` that is not started yet, its command running in the folder of test servers."""

    def __call__(
        self,
        *command: str,
        limits: TimeLimits = QUICK,
        environment: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        prefix: str = "",
        folder: Path = SERVERS,
    ) -> StdioServer: ...


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "bench.log"


@pytest.fixture
async def open_server(log_file: Path) -> AsyncIterator[OpenServer]:
    opened: list[StdioServer] = []

    def open_one(
        *command: str,
        limits: TimeLimits = QUICK,
        environment: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        prefix: str = "",
        folder: Path = SERVERS,
    ) -> StdioServer:
        definition = Server(name="bench", command=command, env=dict(env or {}), prefix=prefix)
        opened.append(StdioServer(definition, folder, log_file, environment, limits))
        return opened[-1]

    yield open_one
    for server in opened:
        await server.close()
    assert all(group_is_gone(server.pid) for server in opened)
