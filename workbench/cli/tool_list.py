"""What `workbench tools` does: start the servers of suites, list their tools, lint them, or call one by hand."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from workbench.cli.door import (
    begin_program,
    json_report,
    know_suites,
    printing_to,
    redacted,
    warn,
    warn_of_problems,
    write_json_text,
    write_redacted,
)
from workbench.cli.report_output import Output, annotate, report_width
from workbench.cli.searching import shown_search
from workbench.cli.tool_call import ByHand, call_by_hand, parsed_arguments
from workbench.cli.trust import approved
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Approval, Needs
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.evaluation.suites import NoSuitesError, load_suites
from workbench.evaluation.tool_listing import linted, tools_of, valid_suite
from workbench.reports.forms import pieces_of
from workbench.reports.tools import finding_lines, tool_lines, tools_json
from workbench.show.text import Paint, paint_for
from workbench.suite.loading import SuiteFile
from workbench.tools.pool import ServerPool

if TYPE_CHECKING:
    from workbench.reports.static_findings import StaticFinding


class RefusedError(Exception):
    """What was asked for cannot be done; the message says why and what to do."""


@dataclass(frozen=True)
class ToolOptions:
    """Which tools are listed, or which one is called with which arguments, a JSON object, and how that is shown."""

    paths: Sequence[str]
    server: str | None
    call: str | None
    args: str | None
    lint: bool
    pin: bool
    trust: bool
    output: Output


def list_or_call(options: ToolOptions) -> int:
    """List the tools of suites, or call one; returns an exit code."""
    program = begin_program()
    output = sys.stdout
    try:
        by_hand = _by_hand(options)
        files = _suites(options)
        if by_hand is not None:
            _refuse_written_out(by_hand.tool, files)
    except (NoSuitesError, RefusedError, ValueError) as error:
        warn(str(error), program.secrets)
        return USAGE
    know_suites(program, files)
    started = [file for file in files if file.suite is not None and file.suite.servers]
    approval = approved(Needs.of_servers(started, program), program, all_of_them=options.trust)
    if approval is None:
        return USAGE
    with printing_to(sys.stderr):  # what a server in this process prints must not spoil the output
        pool = ServerPool(program)
        return asyncio.run(until_signalled(pool, _work(options, files, program, approval, pool, by_hand, output)))


async def until_signalled(pool: ServerPool, work: Coroutine[Any, Any, int]) -> int:
    """Do what needs the servers of a pool, and close them; returns an exit code. The first signal ends it, further ones
    wait for that too."""
    working = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()

    def end() -> None:
        if not signalled.is_set():
            signalled.set()
            working.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
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
    by_hand: ByHand | None,
    output: TextIO,
) -> int:
    suites = await asyncio.gather(*(tools_of(file, options.server, pool, approval) for file in files))
    if by_hand is not None:
        return await call_by_hand(by_hand, list(zip(files, suites, strict=True)), pool, program, approval, output)
    if options.lint:
        suites = [linted(file, suite) for file, suite in zip(files, suites, strict=True)]

    def text(width: int, paint: Paint) -> str:
        lines = finding_lines(suites, paint) if options.lint else tool_lines(suites, width, paint)
        return redacted("\n".join([*lines, ""]))

    def findings() -> list[StaticFinding]:
        from workbench.reports.static_findings import findings_of_tools

        found = (each for file, suite in zip(files, suites, strict=True) for each in findings_of_tools(file, suite))
        return [program.secrets.redacted(each) for each in found]

    def pieces(wanted: Output) -> Iterable[str]:
        if wanted.form == "json":
            return (json_report(tools_json(suites)),)
        if wanted.is_text:
            return (text(wanted.width, wanted.paint),)
        return pieces_of(str(wanted.form), "tools", findings())

    wanted = options.output
    if wanted.is_text:  # standard output is redirected meanwhile, and `output` is where it led
        write_redacted(text(report_width(output), paint_for(output, os.environ)), output)
    else:
        write_json_text("".join(pieces(wanted)), output)
    written = wanted.deliver_beside(pieces)
    if options.lint:
        annotate(wanted, findings, output if wanted.is_text else None)
    if options.pin:
        from workbench.cli.pinning import pin  # on use: most listings pin nothing

        written = pin(files, suites, program) and written
    if not written:
        return USAGE
    if any(source.error is not None for suite in suites for source in suite.sources):
        return INFRASTRUCTURE
    refused = any(finding.severity == "error" for suite in suites for finding in suite.findings or ())
    return QUALITY_MISSED if refused else OK


def _by_hand(options: ToolOptions) -> ByHand | None:
    """What is to be called, if anything is; raises RefusedError or ValueError."""
    forms = {options.output.form, *(each.form for each in options.output.beside)}
    if not options.lint and forms & {"sarif", "codequality", "github"}:
        raise RefusedError("SARIF, Code Quality and annotations are about what --lint finds: give it too")
    if options.pin and (options.call is not None or options.server is not None):
        raise RefusedError("--pin pins the tools of all servers of a suite: leave out --call and --server")
    if options.call is None and options.args is not None:
        raise RefusedError("--args are the arguments of a call: name the tool with --call TOOL")
    if options.call is None:
        return None
    if options.lint:
        raise RefusedError("--lint and --call cannot be used together: give one of them")
    arguments = parsed_arguments("{}" if options.args is None else options.args)
    if options.output.form not in ("text", "json") or options.output.beside:
        raise RefusedError("--call prints text or json: leave out --report, and --format of another kind")
    return ByHand(options.call, arguments, options.output.form)


def _suites(options: ToolOptions) -> list[SuiteFile]:
    """The suites that are meant, whole ones; raises NoSuitesError or RefusedError."""
    with shown_search(quiet=options.output.quiet) as search:
        files = load_suites(options.paths, search)
    warn_of_problems(problem for file in files for problem in file.errors)
    if any(file.suite is None for file in files):
        raise RefusedError("nothing was started: correct these suites first")
    if options.server is None:
        return list(files)
    matching = [file for file in files if any(server.name == options.server for server in valid_suite(file).servers)]
    if not matching:
        names = sorted({server.name for file in files for server in valid_suite(file).servers})
        raise RefusedError(f"there is no server {options.server!r}; there are {', '.join(names) or 'none'}")
    return matching


def _refuse_written_out(tool: str, files: Sequence[SuiteFile]) -> None:
    """Raises RefusedError for a tool that is only written out: nothing stands behind it that could be called."""
    if not any(valid_suite(file).servers for file in files):
        suites = [valid_suite(file) for file in files]
        of_cases = (written.name for suite in suites for case in suite.cases for written in case.tools)
        names = {*of_cases, *(written.name for suite in suites for written in suite.tools)}
        why = "is written out in the suite, and has no server" if tool in names else "is not there: there is no server"
        raise RefusedError(f"{tool} {why} that could be called; run a case to see what its mocks answer")
