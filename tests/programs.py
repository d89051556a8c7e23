"""A program whose folders are in a test's folder, and approvals for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.config.folders import Folders
from workbench.config.models import ConfigError
from workbench.config.program import Environment, Program, create_program
from workbench.engine.plan import PlannedRun
from workbench.engine.recordings import Recordings
from workbench.engine.stepper import StepTarget
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.suite.model import Suite
from workbench.suite.server_model import Server
from workbench.suite.trust import needs_trust
from workbench.tools.grant import Grant
from workbench.tools.mcp_server import McpServer
from workbench.tools.python_code import PythonFunctions, hash_code
from workbench.tools.server_pool import ServerPool


def folders_in(folder: Path) -> Folders:
    return Folders(state=folder / "state", log=folder / "log", config=folder / "config", data=folder / "data")


def program_of(folder: Path, environment: Mapping[str, str] | None = None) -> Program:
    return create_program(folders_in(folder), environment or {})


def approval_of(runs: Iterable[PlannedRun], program: Program, *, trusted: bool = True) -> Approval:
    """Return the approval of a user who trusts all suites, or no suite."""
    return Needs.of_runs(runs, program).approved(None if trusted else ())


def grant_of(suite: Suite, suite_file: Path, environment: Environment) -> Grant:
    """Return a grant for everything that a suite needs now."""
    needs = needs_trust(suite, suite_file)
    variables: Mapping[str, str] | ConfigError
    try:
        variables = environment.of(suite_file.parent)
    except ConfigError as error:
        variables = error
    return Grant(needs, variables, hash_code(needs.folder, needs.code))


async def started(pool: ServerPool, suite_file: Path, server: Server) -> McpServer:
    """Return a suite's server, approved and started."""
    suite = Suite(format=1, name="any", cases=(), servers=(server,))
    return await pool.running_server(suite_file, server, grant_of(suite, suite_file, pool._program.environment))


def functions_in(folder: Path, *modules: str) -> PythonFunctions:
    """Return the functions of modules in a folder, approved as they are now."""
    return PythonFunctions(hash_code(folder, modules))


def begin(
    runtime: Runtime,
    runs: Sequence[PlannedRun],
    *,
    trusted: bool = True,
    record: Recordings | None = None,
    until: StepTarget = "end",
    **how: Any,
) -> str:
    """Start runs for a user who trusts all of their suites, or none. `how` are further fields of the plan."""
    program = runtime._program
    approval = approval_of(runs, program, trusted=trusted)
    return runtime.start(Plan.of(runs, program, **how), approval, recordings=record, until=until)
