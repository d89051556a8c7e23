"""One tool of a server, executed by hand: found among the suites, its arguments checked, its answer printed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from workbench.checks.argument_schema import BrokenSchemaError, argument_problems
from workbench.cli.door import redacted, warn, write, write_json
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.tool_listing import NoSuchToolError, callable_tool
from workbench.reports.server_output import output_lines
from workbench.reports.tools import SuiteTools
from workbench.reports.values import progress_text
from workbench.show.text import Paint
from workbench.show.visible import visible
from workbench.suite.loading import SuiteFile
from workbench.tools.answer import OnProgress, ServerError, ToolsError
from workbench.tools.by_hand import CALL_ID, execute_by_hand
from workbench.tools.pool import ServerPool
from workbench.trajectory.events import ExecutionProgress, ServerOutput
from workbench.trajectory.messages import JsonValue, ToolDefinition

PROGRESS_EVERY_S = 0.1


@dataclass(frozen=True)
class ByHand:
    """What is to be called, and how its answer is printed (`text` or `json`)."""

    tool: str
    arguments: dict[str, JsonValue]
    format: str


def parsed_arguments(text: str) -> dict[str, JsonValue]:
    """The arguments of a call; raises ValueError when the text is no JSON object."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a JSON number")

    try:
        arguments = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--args is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ValueError('--args must be a JSON object, as in --args \'{"city": "Oslo"}\'')
    return arguments


async def call_by_hand(
    by_hand: ByHand,
    listed: Sequence[tuple[SuiteFile, SuiteTools]],
    pool: ServerPool,
    program: Program,
    approval: Approval,
    output: TextIO,
) -> int:
    """Call the tool and print what it answers; returns an exit code. It is written into the audit log."""
    try:
        found = callable_tool(by_hand.tool, listed)
    except NoSuchToolError as error:
        for message in error.messages:
            warn(message, program.secrets)
        for written in error.outputs:
            _warn_of_output(written, program)
        return INFRASTRUCTURE if error.not_listed else USAGE
    if not _arguments_fit(by_hand, found.tool, program):
        return USAGE
    server = next(s for s in (found.file.suite.servers if found.file.suite else ()) if s.name == found.tool.server)
    told = _told(by_hand.tool, program)
    try:
        executed = await execute_by_hand(
            pool,
            found.file.path,
            server,
            approval.grants[found.file.path],
            by_hand.tool,
            by_hand.arguments,
            program,
            told,
        )
    except ToolsError as error:
        warn(str(error), program.secrets)
        if isinstance(error, ServerError) and error.output is not None:
            _warn_of_output(error.output, program)
        return INFRASTRUCTURE
    answer = executed.answer
    if by_hand.format == "json":
        document = {
            "server": server.name,
            "tool": by_hand.tool,
            "arguments": by_hand.arguments,
            "is_error": answer.is_error,
            "content": answer.content,
            "duration_ms": executed.duration_ms,
        }
        write_json(document, output)
    else:
        write(visible(redacted(answer.content)) + "\n", output)
    return QUALITY_MISSED if answer.is_error else OK


def _warn_of_output(output: ServerOutput, program: Program) -> None:
    for line in output_lines(output, Paint(enabled=False), 0):
        warn(line, program.secrets)


def _arguments_fit(by_hand: ByHand, tool: ToolDefinition, program: Program) -> bool:
    try:
        problems = argument_problems(by_hand.arguments, tool.parameters)
    except BrokenSchemaError as error:
        warn(f"the arguments were not checked, because the schema of {tool.name} is broken: {error}", program.secrets)
        return True
    for problem in problems:
        warn(problem, program.secrets)
    if problems:
        warn(f"{tool.name} was not called: its schema refuses these arguments", program.secrets)
    return not problems


def _told(tool: str, program: Program, clock: Callable[[], float] = time.monotonic) -> OnProgress:
    """Says how far the execution is on standard error, so often that it can be followed and no more."""
    told_s = float("-inf")

    def tell(progress: float, total: float | None, message: str | None) -> None:
        nonlocal told_s
        if clock() - told_s >= PROGRESS_EVERY_S:
            told_s = clock()
            warn(f"{tool}: {progress_text(ExecutionProgress(CALL_ID, progress, total, message))}", program.secrets)

    return tell
