"""`workbench` without a command: the options of the app, and the function that opens it for every command."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.model_options import add_judge_option, add_model_options, model_options
from workbench.cli.parser import (
    HELP_ALL,
    RECORDINGS,
    TOOLS,
    Parser,
    add_history_options,
    add_samples_option,
    group,
    history_of,
    named_in_groups,
    paths_of,
    show_first,
)
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import USAGE
from workbench.version import __version__

if TYPE_CHECKING:
    from workbench.analysis.side_by_side import LeaveCallback
    from workbench.config.program import Program
    from workbench.evaluation.options import AppStart

_PURPOSE = "Shows whether language models call your tools correctly."

_USAGE = """usage: workbench [PATH ...]    open the app on suites, folders or recordings
       workbench COMMAND ...
"""

_COMMON = ("init", "run", "compare", "grade", "history", "validate", "tools", "models", "import", "export")
"""The commands that `--help` explains. `--help` only lists the names of the commands in `_FAMILIES`."""

_FAMILIES = {
    "more cases": ("accept", "record", "submission"),
    "find weaknesses": ("faults", "mutate", "shrink", "fix-prompt"),
    "run elsewhere": ("attach", "batches", "serve", "mcp", "login"),
    "about": ("help", "schema", "version"),
}

_EPILOG = """commands:
{commands}

Without a command the app opens on the paths: suite files, or folders of them.
No path means the current folder if it contains suites, else the bundled samples.
'workbench COMMAND --help' shows more; write a folder named like a command as './run'.
"""


class AppParser(Parser):
    """The parser of `workbench` without a command. Its `--help` fits one screen."""

    purposes: Mapping[str, str] = {}

    def format_help(self) -> str:
        """Return the most common commands with their purposes, and the names of the other commands.

        After `--help-all`, return all commands and options."""
        if not self.first:
            return super().format_help()
        commands = "".join(f"  {name:<10}{self.purposes[name]}\n" for name in _COMMON)
        more = f"'workbench COMMAND --help' explains a command, 'workbench {HELP_ALL}' the rest."
        return f"{_USAGE}\n{_PURPOSE}\n\n{commands}\n{named_in_groups(_FAMILIES)}\n{more}\n"


def parser_of_app(purposes: Mapping[str, str]) -> AppParser:
    """Return the parser of `workbench` without a command.

    `purposes` are the descriptions of commands in its help, by name."""
    commands = "\n".join(f"  {name:<10} {purpose}" for name, purpose in purposes.items())
    parser = AppParser(
        prog="workbench",
        description=_PURPOSE,
        usage="workbench [PATH ...]\n       workbench COMMAND ...",
        epilog=_EPILOG.format(commands=commands),
    )
    parser.purposes = purposes
    show_first(parser, "--model")
    add_app_options(parser)
    parser.add_argument("--version", action="version", version=f"workbench {__version__}")
    return parser


def add_app_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", metavar="PATH", help="suite files, folders of them, or recordings")
    add_samples_option(parser)
    add_model_options(parser)
    add_judge_option(parser, "the judge of checks that name no judge, instead of the one in workbench.toml")
    group(parser, RECORDINGS).add_argument(
        "--record", type=Path, metavar="DIR", help="record each run in a file of its own"
    )
    add_history_options(parser)
    group(parser, TOOLS).add_argument(
        "--trust", action="store_true", help="trust the suites for this session, without asking"
    )
    parser.add_argument("--theme", metavar="NAME", help="start with this theme")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII signs only (also WORKBENCH_ASCII=1)")
    parser.add_argument("--read-only", action="store_true", help="only show: run, edit and write nothing")


def execute(arguments: argparse.Namespace) -> int:
    models = model_options(arguments)
    if models is None:
        return USAGE
    from workbench.cli.redaction import create_program

    return show_app(app_options(arguments), create_program(models))


@dataclass(frozen=True)
class AppOptions:
    """The options of the app: paths and models, recording of runs, and appearance."""

    paths: tuple[str, ...]
    models: tuple[str, ...] = ()
    history: Path | None = None
    record: Path | None = None
    trust: bool = False
    theme: str | None = None
    only_ascii: bool = False
    read_only: bool = False
    shown_batch: int | None = None
    """The number of a batch of the history to show at first."""


def app_options(arguments: argparse.Namespace) -> AppOptions:
    return AppOptions(
        paths=paths_of(arguments),
        models=tuple(arguments.model),
        history=history_of(arguments, arguments.paths),
        record=arguments.record,
        trust=arguments.trust,
        theme=getattr(arguments, "theme", None),
        only_ascii=getattr(arguments, "ascii", False),
        read_only=getattr(arguments, "read_only", False),
    )


def show_app(
    options: AppOptions, program: Program, *, start: AppStart | None = None, on_leave: LeaveCallback | None = None
) -> int:
    """Open the app and return its exit code.

    `start` selects the first runs of the app. `on_leave` is called when the user leaves a comparison."""
    if options.record is not None:
        from workbench.cli.report_output import can_record_in

        # The app cannot show an error before its first screen, so the folder is checked here.
        if not can_record_in(options.record):
            return USAGE
    # Lazy import: commands that do not open the app need not load it.
    from workbench.tui.app import open_app

    return open_app(
        options.paths,
        program,
        models=options.models,
        trust=options.trust,
        theme=options.theme,
        only_ascii=options.only_ascii,
        read_only=options.read_only,
        record=options.record,
        history=options.history,
        start=start,
        on_leave=on_leave,
        shown_batch=options.shown_batch,
    )
