"""`workbench mcp`: the workbench as an MCP server over standard input and output, for coding agents."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from workbench.cli.model_options import add_judge_option, add_models_option
from workbench.evaluation.exit_codes import OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="PATH",
        help="the suites that may be run, or folders that hold them (default: the current folder)",
    )
    add_models_option(
        parser,
        "let clients ask this model too; without it, only offline; several with commas between them, or by repeating "
        "the option",
    )
    add_judge_option(parser, "let this model judge; without it, cases with judged checks are refused")
    parser.add_argument("--trust", action="store_true", help="let the suites start and import what they name")
    parser.add_argument(
        "--execute", action="store_true", help="let tools marked read-only be executed; otherwise mocks answer"
    )
    parser.add_argument("--no-history", action="store_true", help="record no runs")


def execute(arguments: argparse.Namespace) -> int:
    """Serve until the client is gone; returns an exit code."""
    from workbench.cli.door import begin_program

    begin_program()  # with its log, so that the SDK says nothing on standard error
    from workbench.mcp_server.server import Allowed, server_for

    server = server_for(
        Allowed(
            paths=tuple(arguments.paths),
            models=tuple(arguments.model),
            judge=arguments.judge,
            trust=arguments.trust,
            execute=arguments.execute,
            history=not arguments.no_history,
        )
    )
    # Ctrl+C ends it at once, as SIGTERM does: the thread that waits for standard input could not be woken.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    server.run("stdio")
    return OK
