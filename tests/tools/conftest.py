"""Real servers for the tests of tools. They are closed after each test, and no process may be left."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from tests.programs import program_of
from tests.tools.processes import group_is_gone
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.suite.server_model import Server, ServerProtocol
from workbench.tools.connection import TimeLimits
from workbench.tools.mcp_server import McpServer
from workbench.tools.server_pool import ServerPool
from workbench.tools.server_process import CommandConnection

SERVERS = Path(__file__).parent / "servers"

SUITE_FILE = SERVERS / "suite.toml"

PLANTED = "sk-planted-7c1d90"
"""The value of SHOP_TOKEN, which must never appear in any output."""

QUICK = TimeLimits(start_s=60, call_s=60, polite_s=0.5, terminate_s=0.3, return_s=0)


class OpenServer(Protocol):
    """Creates a server named `bench` without starting it. Its command runs in the folder of the test servers."""

    def __call__(
        self,
        *command: str,
        limits: TimeLimits = QUICK,
        environment: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        prefix: str = "",
        protocol: ServerProtocol = "auto",
        folder: Path = SERVERS,
    ) -> McpServer: ...


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program with the process's environment and a token in it."""
    return program_of(tmp_path, {**os.environ, "SHOP_TOKEN": PLANTED})


@pytest.fixture
async def pool(program: Program) -> AsyncIterator[ServerPool]:
    opened = ServerPool(program, QUICK)
    yield opened
    await opened.close()


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "bench.log"


@pytest.fixture
async def open_server(log_file: Path) -> AsyncIterator[OpenServer]:
    opened: list[McpServer] = []

    def open_one(
        *command: str,
        limits: TimeLimits = QUICK,
        environment: Mapping[str, str] = os.environ,
        env: Mapping[str, str] | None = None,
        prefix: str = "",
        protocol: ServerProtocol = "auto",
        folder: Path = SERVERS,
    ) -> McpServer:
        definition = Server(name="bench", command=command, env=dict(env or {}), prefix=prefix, protocol=protocol)
        secrets = Secrets()

        def connect() -> CommandConnection:
            return CommandConnection(definition, command, folder, log_file, environment, secrets, limits)

        opened.append(McpServer(definition, connect, secrets, limits))
        return opened[-1]

    yield open_one
    for server in opened:
        await server.close()
    assert all(group_is_gone(server.pid) for server in opened)
