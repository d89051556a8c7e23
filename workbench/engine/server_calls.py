"""Lets a person start and stop the tool servers of a runtime, list their tools, and call a tool."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.engine_thread import EngineThread
from workbench.suite.server_model import Server
from workbench.tools.answer import OnProgress, ServerError, ToolAnswer, UntrustedError
from workbench.tools.audit import AuditLog, Caller, Outcome
from workbench.tools.connection import ServerStatus
from workbench.tools.grant import Grant
from workbench.tools.server_pool import ServerPool
from workbench.trajectory.events import JsonValue, ToolCall, ToolDefinition

CALL_ID = "by hand"
"""The id of a call made by a person."""


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """A tool's answer, and its latency in milliseconds."""

    answer: ToolAnswer
    duration_ms: float


async def execute_by_hand(
    pool: ServerPool,
    suite_file: Path,
    server: Server,
    grant: Grant,
    tool: str,
    arguments: Mapping[str, JsonValue],
    program: Program,
    on_progress: OnProgress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ToolExecution:
    """Call a tool of a suite's server once, at a person's request.

    A server that is not running is started. Raises UntrustedError if the grant does not cover the server. Raises
    ServerError if the server cannot be started, dies or does not answer. Raises AuditError, without calling the tool,
    if the call cannot be logged first."""
    call = ToolCall(CALL_ID, tool, arguments)
    caller = _caller(suite_file)
    log = AuditLog(program.folders.audit_log, program.secrets)
    # If the call is cancelled, no ServerError is raised and the outcome stays unknown.
    outcome: Outcome = "stopped"
    started = await pool.running_server(suite_file, server, grant)
    # The log entry is written before the call is sent, so that the log has the call even if the program is killed.
    audited = log.begin(caller, call, server.name, "by hand")
    began_s = clock()
    duration_ms = 0.0
    try:
        answer = await started.call(tool, arguments, on_progress)
        outcome = answer.outcome
    except ServerError:
        outcome = "server error"
        raise
    finally:
        duration_ms = round((clock() - began_s) * 1000, 3)
        audited.end(outcome, duration_ms)
    return ToolExecution(answer, duration_ms)


def _caller(suite_file: Path) -> Caller:
    return Caller(str(suite_file.absolute()))


class SuiteServer(NamedTuple):
    suite_file: Path
    server: Server


class ServerControl:
    """Controls the servers that all runs of a runtime share.

    A suite's grant decides which of its servers may be started and called. The work is done on the engine's thread. Any
    other thread may wait for the returned futures. Cancelling a future cancels its work."""

    def __init__(self, pool: ServerPool, engine: EngineThread, program: Program) -> None:
        self._pool = pool
        self._engine = engine
        self._program = program

    def status(self, servers: Sequence[SuiteServer]) -> Future[tuple[ServerStatus, ...]]:
        async def read_status() -> tuple[ServerStatus, ...]:
            return tuple(self._pool.status(*server) for server in servers)

        return self._engine.submit(read_status())

    def start(self, server: SuiteServer, grant: Grant) -> Future[ServerStatus]:
        """Start a server that is not running, and return its new status."""
        return self._engine.submit(self._start(server, grant))

    def stop(self, server: SuiteServer) -> Future[ServerStatus]:
        """Close a server. The next run that needs the server starts it again."""

        async def stop() -> ServerStatus:
            await self._pool.stop(*server)
            return self._pool.status(*server)

        return self._engine.submit(stop())

    def wait_for_change(self, server: SuiteServer, known_status: ServerStatus) -> Future[ServerStatus]:
        """Wait until the status of a server differs from `known_status`, and return the new status."""

        async def wait() -> ServerStatus:
            await self._pool.wait_for_change(*server, known_status.tools)
            return self._pool.status(*server)

        return self._engine.submit(wait())

    def list_once(
        self, servers: Sequence[SuiteServer], grant: Grant, program: Program
    ) -> Future[tuple[tuple[ToolDefinition, ...], ...]]:
        """Start servers only to list their tools, and close them again.

        The servers run in the environment of `program`, and the tools are redacted. The servers of runs are not
        affected. The future raises ServerError and UntrustedError."""

        async def listed() -> tuple[tuple[ToolDefinition, ...], ...]:
            pool = ServerPool(program)
            try:
                started = await asyncio.gather(*(pool.running_server(*server, grant) for server in servers))
                tools = []
                for server in started:
                    tools.append(tuple(map(program.secrets.redacted, server.tools)))
                return tuple(tools)
            finally:
                await pool.close()

        return self._engine.submit(listed())

    def call(
        self, server: SuiteServer, grant: Grant, tool: str, arguments: Mapping[str, JsonValue]
    ) -> Future[ToolExecution]:
        """Execute a tool once, and record the execution in the audit log.

        The server is started if necessary. The future raises the errors of `execute_by_hand`."""

        async def call() -> ToolExecution:
            await self._stop_if_down(server)
            return await execute_by_hand(self._pool, *server, grant, tool, arguments, self._program)

        return self._engine.submit(call())

    async def _start(self, server: SuiteServer, grant: Grant) -> ServerStatus:
        await self._stop_if_down(server)
        try:
            await self._pool.running_server(*server, grant)
        except ServerError as error:
            return ServerStatus("down", reason=str(error), output=error.output)
        except UntrustedError as error:
            return ServerStatus("down", reason=str(error))
        return self._pool.status(*server)

    async def _stop_if_down(self, server: SuiteServer) -> None:
        # The pool gives up on a server that died too often in a batch. After a stop, the server can be started again.
        if self._pool.status(*server).state == "down":
            await self._pool.stop(*server)
