"""Pins the tools of servers, and reports differences from pinned tools.

Pinned tools are tool definitions that are stored in a file beside the suite."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from workbench.cli.downloads import announce_download
from workbench.cli.redaction import printing_to, warn
from workbench.config.program import Program
from workbench.evaluation.approval import Approval
from workbench.evaluation.plan import Plan
from workbench.show.visible import visible
from workbench.suite.suite_file import SuiteFile
from workbench.tools.answer import ToolsError
from workbench.tools.listings import instructions_difference, pin_difference, pin_file, read_pins, write_pins
from workbench.tools.server_pool import ServerPool

if TYPE_CHECKING:
    from workbench.show.views.tools import SuiteTools


class FrozenError(Exception):
    """Raised with `--frozen` if tools differ from the pinned tools or could not be compared."""


def pin(files: Sequence[SuiteFile], listed: Sequence[SuiteTools], program: Program) -> bool:
    """Store the listed tools of suites' servers as pinned. Return whether all are stored.

    If a server of a suite did not answer, the suite's earlier file of pinned tools is kept."""
    done = True
    for file, suite in zip(files, listed, strict=True):
        servers, instructions = {}, {}
        for source in sorted(suite.sources, key=lambda source: source.server or ""):
            if source.server:
                servers[source.server] = program.secrets.redacted(source.tools)
                instructions[source.server] = program.secrets.redact(source.instructions)
        if failed := [source for source in suite.sources if source.error is not None]:
            warn(f"{file.path} was not pinned: {failed[0].error}", program.secrets)
        elif not servers:
            warn(f"{file.path} was not pinned, because the suite has no servers")
        else:
            try:
                warn(f"pinned in {write_pins(file.path, servers, instructions)}")
                continue
            except OSError as error:
                warn(f"cannot write {pin_file(file.path)}: {error.strerror}")
        done = False
    return done


def check_pins(plan: Plan, approval: Approval, *, frozen: bool) -> None:
    """Print differences between the tools of servers and their pinned tools on standard error.

    Only servers of suites with pinned tools are started. With `frozen`, raises FrozenError for a difference, or if a
    suite with servers has no pinned tools."""
    differs = False
    for file in plan.files:
        for line in _differences(file, plan.program, approval):
            warn(line, plan.program.secrets)
            differs = True
    if not frozen:
        return
    for file in plan.files:
        if file.suite and file.suite.servers and not pin_file(file.path).exists():
            writes = f"'workbench tools {file.path} --pin' writes them"
            raise FrozenError(f"nothing was run, because {file.path} has no pins: {writes}")
    if differs:
        raise FrozenError("nothing was run, because --frozen requires that all tools equal their pins")


def _differences(file: SuiteFile, program: Program, approval: Approval) -> Iterable[str]:
    if file.suite is None:
        return
    try:
        pins = read_pins(file.path)
    except ToolsError as error:
        yield str(error)
        return
    if pins is None:
        return
    # The suite is not trusted, so its servers must not be started, and its tools cannot be compared.
    if approval.grant(file.path) is None:
        if file.suite.servers:
            yield f"{file.path}: its tools are not compared with their pins, because the suite is not trusted"
        return
    for source in _listed(file, program, approval).sources:
        if source.server is None:
            continue
        if source.error is not None:
            yield f"{file.path}: the tools of {source.server!r} are not compared with their pins: {source.error}"
            continue
        instructions = program.secrets.redact(source.instructions)
        lines = [
            *instructions_difference(pins, source.server, instructions),
            *pin_difference(pins.servers.get(source.server), program.secrets.redacted(source.tools), source.server),
        ]
        if lines:
            yield (
                f"{file.path}: the tools of the server {source.server!r} differ from the pins in {pin_file(file.path)}:"
            )
            for line in lines:
                yield visible(line)
    for gone in sorted({*pins.servers} - {server.name for server in file.suite.servers}):
        yield f"{file.path}: the server {gone!r} is pinned, but the suite no longer has it"


def _listed(file: SuiteFile, program: Program, approval: Approval) -> SuiteTools:
    # Lazy import: few suites have pinned tools.
    from workbench.evaluation.tool_list import tools_of

    async def listed() -> SuiteTools:
        pool = ServerPool(program, starting=announce_download)
        try:
            return await tools_of(file, None, pool, approval)
        finally:
            await pool.close()

    # A server in this process may print. Its output must not get into the report.
    with printing_to(sys.stderr):
        return asyncio.run(listed())
