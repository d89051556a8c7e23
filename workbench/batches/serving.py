"""Servers by hand: started, stopped and called on the engine's thread because a person asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from workbench.config.program import Program
from workbench.engine.thread import EngineThread
from workbench.suite.model import Server
from workbench.tools.answer import ServerError, UntrustedError
from workbench.tools.by_hand import Executed, execute_by_hand
from workbench.tools.connection import ServerStatus
from workbench.tools.grant import Grant
from workbench.tools.pool import ServerPool
from workbench.trajectory.messages import JsonValue


class ServerOf(NamedTuple):
    """A server and the suite file that names it."""

    suite_file: Path
    server: Server


class Serving:
    """The servers of a session, shared with its runs. They are started and called as the grants of their suites allow.
    The futures may be waited for from any thread; cancelling one ends what it stands for."""

    def __init__(self, pool: ServerPool, engine: EngineThread, program: Program) -> None:
        self._pool = pool
        self._engine = engine
        self._program = program

    def status(self, servers: Sequence[ServerOf]) -> Future[tuple[ServerStatus, ...]]:
        """How servers are right now."""

        async def look() -> tuple[ServerStatus, ...]:
            return tuple(self._pool.status(*server) for server in servers)

        return self._engine.submit(look())

    def start(self, server: ServerOf, grant: Grant) -> Future[ServerStatus]:
        """Start a server that is not running, one that was down too, and say how it then is."""
        return self._engine.submit(self._start(server, grant))

    def stop(self, server: ServerOf) -> Future[ServerStatus]:
        """Close a server; runs that need it start it again."""

        async def stop() -> ServerStatus:
            await self._pool.stop(*server)
            return self._pool.status(*server)

        return self._engine.submit(stop())

    def changed(self, server: ServerOf) -> Future[ServerStatus]:
        """How a server is once it is no longer as it is now."""

        async def wait() -> ServerStatus:
            await self._pool.changed(*server)
            return self._pool.status(*server)

        return self._engine.submit(wait())

    def call(self, server: ServerOf, grant: Grant, tool: str, arguments: Mapping[str, JsonValue]) -> Future[Executed]:
        """Execute a tool once, written into the audit log; a server that does not run is started. The future raises
        what `execute_by_hand` does."""

        async def call() -> Executed:
            await self._stop_if_down(server)
            return await execute_by_hand(self._pool, *server, grant, tool, arguments, self._program)

        return self._engine.submit(call())

    async def _start(self, server: ServerOf, grant: Grant) -> ServerStatus:
        await self._stop_if_down(server)
        try:
            await self._pool.started(*server, grant)
        except (ServerError, UntrustedError) as error:
            return ServerStatus("down", reason=str(error))
        return self._pool.status(*server)

    async def _stop_if_down(self, server: ServerOf) -> None:
        """Let a server that is down be started again."""
        if self._pool.status(*server).state == "down":
            await self._pool.stop(*server)
