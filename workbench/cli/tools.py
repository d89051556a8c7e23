"""`workbench tools`: start the servers of suites, and list, lint or call their tools."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from workbench.cli.downloads import announce_download
from workbench.cli.parser import add_exit_codes, add_format_option, add_report_option, options_as
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.show.forms import pieces_of
from workbench.startup import executes
from workbench.suite.problems import has_error

if executes(__name__):
    import asyncio

    from workbench.checks.schemas import BrokenSchemaError, argument_problems
    from workbench.cli.approval import approved
    from workbench.cli.batch_command import print_broken_suites
    from workbench.cli.redaction import (
        create_program,
        json_report,
        printing_to,
        redacted,
        register_suite_secrets,
        shown_search,
        warn,
        warn_of_problems,
        write,
        write_json,
        write_json_text,
        write_redacted,
    )
    from workbench.cli.report_output import Output, annotate, report_width
    from workbench.config.program import Program
    from workbench.engine.server_calls import CALL_ID, execute_by_hand
    from workbench.evaluation.approval import Approval, Needs
    from workbench.evaluation.plan import broken_suites_of
    from workbench.evaluation.suites import NoSuitesError, load_suites
    from workbench.evaluation.tool_list import (
        NoSuchToolError,
        callable_tool,
        tools_of,
        tools_with_findings,
        valid_suite,
    )
    from workbench.show.text import Paint, paint_for
    from workbench.show.views.server_output import output_lines
    from workbench.show.views.tools import SuiteTools, finding_lines, tool_lines, tools_json
    from workbench.show.views.values import progress_text
    from workbench.show.visible import visible
    from workbench.suite.suite_file import SuiteFile
    from workbench.tools.answer import OnProgress, ServerError, ToolsError
    from workbench.tools.server_pool import ServerPool
    from workbench.trajectory.events import ExecutionProgress, JsonValue, ServerOutput, ToolDefinition


if TYPE_CHECKING:
    from workbench.show.views.findings import StaticFinding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, or folders of them")
    parser.add_argument("--server", metavar="NAME", help="only the tools of this server")
    parser.add_argument("--call", metavar="TOOL", help="execute this tool once, and print its result")
    parser.add_argument("--args", metavar="JSON", help="the arguments of the call, a JSON object (default {})")
    parser.add_argument("--lint", action="store_true", help="show faults that make the tools hard or impossible to use")
    parser.add_argument(
        "--pin",
        action="store_true",
        help="pin the servers' tools in NAME.pinned.json beside the suite",
    )
    parser.add_argument("--trust", action="store_true", help="let the suites start and import what they name")
    add_format_option(parser, "tools", "format of the output (default text)", default="text")
    add_report_option(parser, "tools")
    add_exit_codes(
        parser,
        {
            OK: "no error",
            QUALITY_MISSED: "lint found an error, or the tool returned one",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "a server failed, or the audit log cannot be written",
            INTERRUPTED: "interrupted",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.report_output import output_of

    output = output_of(arguments, "tools")
    if output is None or not output.can_write():
        return USAGE
    arguments.output = output
    return list_or_call(options_as(ToolOptions, arguments))


PROGRESS_INTERVAL_S = 0.1
"""The minimum time in seconds between two printed lines of progress."""


@dataclass(frozen=True)
class ManualCall:
    """The tool to call, its arguments, and the form of the answer (`text` or `json`)."""

    tool: str
    arguments: dict[str, JsonValue]
    format: str


def parsed_arguments(text: str) -> dict[str, JsonValue]:
    """Parse the arguments of a call from JSON. Raises ValueError unless the text is an object."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a JSON number")

    try:
        # Python accepts NaN and Infinity, which are not JSON.
        arguments = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--args is not JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise ValueError('--args must be a JSON object, as in --args \'{"city": "Oslo"}\'')
    return arguments


async def call_tool(
    by_hand: ManualCall,
    listed: Sequence[tuple[SuiteFile, SuiteTools]],
    pool: ServerPool,
    program: Program,
    approval: Approval,
    output: TextIO,
) -> int:
    """Call a tool and print its answer. Return an exit code.

    The call is written to the audit log."""
    try:
        found = callable_tool(by_hand.tool, listed)
    except NoSuchToolError as error:
        for message in error.messages:
            warn(message, program.secrets)
        for written in error.outputs:
            _warn_of_output(written, program)
        return INFRASTRUCTURE if error.not_listed else USAGE
    # A call may have effects, so arguments that violate the schema are never sent.
    if not _arguments_fit(by_hand, found.tool, program):
        return USAGE
    server = next(each for each in valid_suite(found.file).servers if each.name == found.tool.server)
    print_progress = _progress_printer(by_hand.tool, program)
    try:
        executed = await execute_by_hand(
            pool,
            found.file.path,
            server,
            approval.grants[found.file.path],
            by_hand.tool,
            by_hand.arguments,
            program,
            print_progress,
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


def _arguments_fit(by_hand: ManualCall, tool: ToolDefinition, program: Program) -> bool:
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


def _progress_printer(tool: str, program: Program) -> OnProgress:
    """Return a function that prints the progress of a call on standard error, at a limited rate."""
    printed_s = float("-inf")

    def print_progress(progress: float, total: float | None, message: str | None) -> None:
        nonlocal printed_s
        # A server may report progress thousands of times per second.
        if time.monotonic() - printed_s >= PROGRESS_INTERVAL_S:
            printed_s = time.monotonic()
            warn(f"{tool}: {progress_text(ExecutionProgress(CALL_ID, progress, total, message))}", program.secrets)

    return print_progress


class RefusedError(Exception):
    """Raised if the options cannot be carried out. The message has the reason and the remedy."""


@dataclass(frozen=True)
class ToolOptions:
    """The options of `workbench tools`: the tools to list or lint, or the tool to call, and the output."""

    paths: Sequence[str]
    server: str | None
    call: str | None
    args: str | None
    lint: bool
    pin: bool
    trust: bool
    output: Output


def list_or_call(options: ToolOptions) -> int:
    program = create_program()
    output = sys.stdout
    try:
        by_hand = _by_hand(options)
        files, broken = _suites(options)
        if by_hand is not None:
            _refuse_written_out(by_hand.tool, files)
    except (NoSuitesError, RefusedError, ValueError) as error:
        warn(str(error), program.secrets)
        return USAGE
    register_suite_secrets(program, files)
    started = []
    for file in files:
        if file.suite is not None and file.suite.servers:
            started.append(file)
    approval = approved(Needs.of_servers(started, program), program, all_of_them=options.trust)
    if approval is None:
        return USAGE
    # A server in this process may print. Its output must not get into the report.
    with printing_to(sys.stderr):
        pool = ServerPool(program, starting=announce_download)
        code = asyncio.run(run_until_signal(pool, _work(options, files, program, approval, pool, by_hand, output)))
    print_broken_suites(broken_suites_of(broken), program.secrets)
    return USAGE if broken and code != INTERRUPTED else code


async def run_until_signal(pool: ServerPool, work: Coroutine[Any, Any, int]) -> int:
    """Await `work`, close the servers of the pool, and return the exit code of the work.

    The first signal cancels the work. Further signals are ignored until the servers are closed."""
    working = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()

    def end() -> None:
        if not signalled.is_set():
            signalled.set()
            working.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Under nohup, a hang-up must not stop the process.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end)
    try:
        return await working
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        await pool.close()


async def _work(
    options: ToolOptions,
    files: Sequence[SuiteFile],
    program: Program,
    approval: Approval,
    pool: ServerPool,
    by_hand: ManualCall | None,
    output: TextIO,
) -> int:
    suites = await asyncio.gather(*(tools_of(file, options.server, pool, approval) for file in files))
    for source in chain.from_iterable(suite.sources for suite in suites):
        for notice in source.notices:
            warn(notice, program.secrets)
    if by_hand is not None:
        return await call_tool(by_hand, list(zip(files, suites, strict=True)), pool, program, approval, output)
    if options.lint:
        suites = [tools_with_findings(file, suite) for file, suite in zip(files, suites, strict=True)]

    def text(width: int, paint: Paint) -> str:
        lines = finding_lines(suites, paint) if options.lint else tool_lines(suites, width, paint)
        return redacted("\n".join([*lines, ""]))

    def findings() -> list[StaticFinding]:
        from workbench.show.views.findings import findings_of_tools

        found: list[StaticFinding] = []
        for file, suite in zip(files, suites, strict=True):
            found += map(program.secrets.redacted, findings_of_tools(file, suite))
        return found

    def pieces(output: Output) -> Iterable[str]:
        if output.form == "json":
            return (json_report(tools_json(suites)),)
        if output.is_text:
            return (text(output.width, output.paint),)
        return pieces_of(str(output.form), "tools", findings())

    wanted = options.output
    # `sys.stdout` is redirected here. `output` is the real standard output.
    if wanted.is_text:
        write_redacted(text(report_width(output), paint_for(output, os.environ)), output)
    else:
        write_json_text("".join(pieces(wanted)), output)
    written = wanted.deliver_further(pieces)
    if options.lint:
        annotate(wanted, findings, output if wanted.is_text else None)
    if options.pin:
        # Lazy import: most listings pin nothing.
        from workbench.cli.pins import pin

        written = pin(files, suites, program) and written
    if not written:
        return USAGE
    code = OK
    for suite in suites:
        if any(source.error is not None for source in suite.sources):
            return INFRASTRUCTURE
        if has_error(suite.findings or ()):
            code = QUALITY_MISSED
    return code


def _by_hand(options: ToolOptions) -> ManualCall | None:
    forms = {options.output.form, *(each.form for each in options.output.further_outputs)}
    if not options.lint and forms & {"sarif", "codequality", "github"}:
        raise RefusedError("SARIF, Code Quality and annotations report findings of --lint: give --lint too")
    if options.pin and (options.call is not None or options.server is not None):
        raise RefusedError("--pin always pins the tools of all servers of a suite: leave out --call and --server")
    if options.call is None and options.args is not None:
        raise RefusedError("--args are the arguments of a call: name the tool with --call TOOL")
    if options.call is None:
        return None
    if options.lint:
        raise RefusedError("--lint and --call cannot be used together: give one of them")
    arguments = parsed_arguments("{}" if options.args is None else options.args)
    if options.output.form not in ("text", "json") or options.output.further_outputs:
        raise RefusedError("--call prints text or json: omit --report, and any other --format")
    return ManualCall(options.call, arguments, options.output.form)


def _suites(options: ToolOptions) -> tuple[list[SuiteFile], list[SuiteFile]]:
    with shown_search(quiet=options.output.quiet) as search:
        loaded = load_suites(options.paths, search)
    warn_of_problems(chain.from_iterable(file.errors for file in loaded))
    broken = [file for file in loaded if file.suite is None]
    files = [file for file in loaded if file.suite is not None]
    if not files:
        raise RefusedError("nothing was started: correct these suites first")
    if options.server is None:
        return files, broken
    matching: list[SuiteFile] = []
    names: set[str] = set()
    for file in files:
        of_suite = {server.name for server in valid_suite(file).servers}
        names |= of_suite
        if options.server in of_suite:
            matching.append(file)
    if not matching:
        raise RefusedError(f"there is no server {options.server!r}; there are {', '.join(sorted(names)) or 'none'}")
    return matching, broken


def _refuse_written_out(tool: str, files: Sequence[SuiteFile]) -> None:
    """Raise RefusedError if no suite has a server that could execute the tool."""
    suites = [valid_suite(file) for file in files]
    if any(suite.servers for suite in suites):
        return
    names: set[str] = set()
    for suite in suites:
        names.update(written.name for written in suite.tools)
        for case in suite.cases:
            names.update(written.name for written in case.tools)
    if tool not in names:
        raise RefusedError(f"there is no tool {tool!r}, and no suite has a server that could list this tool")
    mocks = "run a case to see the answers of its mocks"
    raise RefusedError(f"{tool} is defined in the suite and has no server that could be called; {mocks}")
