"""`workbench mcp`: serve the workbench to coding agents, as an MCP server over standard input and output."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from workbench.cli.model_options import add_judge_option, add_models_option, complete_names
from workbench.evaluation.exit_codes import OK, USAGE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        default=[Path()],
        metavar="PATH",
        help="suite files that may be run, or folders of them (default: the current folder)",
    )
    add_models_option(
        parser,
        "let clients ask this model, not only offline; A,B for several",
    )
    add_judge_option(parser, "let this model judge; otherwise cases with judged checks are refused")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let the suites start and import what they name now",
    )
    parser.add_argument("--execute", action="store_true", help="execute tools marked read-only")
    parser.add_argument("--no-history", action="store_true", help="store no runs")


def execute(arguments: argparse.Namespace) -> int:
    """Serve until the client disconnects. Return an exit code."""
    if sys.path and sys.path[0] in ("", str(Path.cwd())):
        # `python -m` puts the current folder into the path. A client may write modules there, and they must not be
        # imported.
        del sys.path[0]
    from workbench.cli.redaction import create_program, warn

    # This sets up the log, so that the SDK prints nothing on standard error.
    create_program()
    from workbench.integrations.mcp_server import NotStartedError, ServerPermissions, server_for

    complete_names(arguments)
    allowed = ServerPermissions(
        paths=tuple(arguments.paths),
        models=tuple(arguments.model),
        judge=arguments.judge,
        trust=arguments.trust,
        execute=arguments.execute,
        history=not arguments.no_history,
    )
    try:
        server = server_for(allowed)
    except NotStartedError as error:
        warn(str(error))
        return USAGE
    # Ctrl+C ends the process at once, like SIGTERM, because the thread that reads standard input cannot be woken up.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    server.run("stdio")
    return OK
