"""`workbench init`: its options. What it does is in `workbench.cli.starting`, imported when it is done."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.parser import options_as
from workbench.cli.run import GRADERS
from workbench.cli.run_options import repeats_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--command", metavar="COMMAND", help="a server that this command starts, in quotes as in a shell"
    )
    source.add_argument("--url", metavar="URL", help="a server at this address")
    source.add_argument(
        "--module", metavar="FILE:OBJECT", help="a server in this Python file, by default its object mcp"
    )
    source.add_argument(
        "--from-config",
        type=Path,
        metavar="FILE",
        help="the servers of a client's configuration: Claude Desktop, Claude Code, Cursor, VS Code or Codex",
    )
    source.add_argument(
        "--example", nargs="?", const="", metavar="NAME", help="copy this sample suite (default generic_tool)"
    )
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="NAME",
        help="only this server of --from-config; may be repeated",
    )
    parser.add_argument("--tools", metavar="A,B", help="only these tools")
    parser.add_argument("--by", choices=GRADERS, help="the grader that decides")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the suite to write (default: the server's name and .toml)"
    )
    parser.add_argument("--ci", choices=("github", "gitlab"), help="also write a job that runs the suite")
    draft = parser.add_argument_group("drafts by a model")
    draft.add_argument(
        "--draft", metavar="MODEL", help="let this model draft cases, instead of cases whose requests are to be written"
    )
    draft.add_argument(
        "--add-to", type=Path, metavar="SUITE", help="add the drafts to this suite, for the tools that it has"
    )
    draft.add_argument(
        "--draft-check", metavar="MODEL", help="the model on which the drafts are run (default: the same)"
    )
    draft.add_argument(
        "--repeats",
        type=repeats_of,
        metavar="K",
        help="run every draft this many times; it is kept if all of them do as drafted (default 3)",
    )
    draft.add_argument("--yes", action="store_true", help="ask the model and write the suite without a question")
    parser.add_argument("--force", action="store_true", help="replace the suite if the file exists")
    parser.add_argument(
        "--trust", action="store_true", help="start or reach the servers without asking, for this command"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the suite; returns an exit code."""
    from workbench.cli.starting import StartOptions, start_suite

    return start_suite(options_as(StartOptions, arguments))
