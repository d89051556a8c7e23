"""Executes one tool of a server at a person's request: logged in the audit log, timed, never retried."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.suite.model import Server
from workbench.tools.answer import OnProgress, ServerError, ToolAnswer
from workbench.tools.audit import AuditLog, Caller, Outcome
from workbench.tools.pool import Grant, ServerPool
from workbench.trajectory.events import JsonValue, ToolCall

CALL_ID = "by hand"


@dataclass(frozen=True, slots=True)
class Executed:
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
) -> Executed:
    """Call a tool of a suite's server once, starting the server as the grant allows if necessary.

    Raises UntrustedError when the grant does not cover the server, ServerError when it cannot be started, dies or does
    not answer, and AuditError, without calling, when the execution cannot be logged first.
    """
    call = ToolCall(CALL_ID, tool, arguments)
    caller = _caller(suite_file)
    log = AuditLog(program.folders.audit_log, program.secrets)
    outcome: Outcome = "stopped"
    started = await pool.started(suite_file, server, grant)
    audited = log.begin(caller, call, server.name, "by hand")
    began_s = clock()
    duration_ms = 0.0
    try:
        answer = await started.call(tool, arguments, on_progress)
        outcome = "tool error" if answer.is_error else "ok"
    except ServerError:
        outcome = "server error"
        raise
    finally:
        duration_ms = round((clock() - began_s) * 1000, 3)
        audited.end(outcome, duration_ms)
    return Executed(answer, duration_ms)


def _caller(suite_file: Path) -> Caller:
    return Caller(str(suite_file.absolute()))
