"""`workbench batches`: its options. What it does is in `workbench.cli.running`, imported when it is done."""

from __future__ import annotations

import argparse

from workbench.cli.parser import add_history_options, history_to_read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stop",
        metavar="BATCH",
        help="stop this batch in good order, its number or its name, instead of listing: finished runs are kept",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="what to write (default %(default)s)"
    )
    add_history_options(parser, may_be_none=False)


def execute(arguments: argparse.Namespace) -> int:
    """List what runs, or stop one of them; returns an exit code."""
    from workbench.cli.running import list_running, stop

    history = history_to_read(arguments, ())
    if arguments.stop is not None:
        return stop(arguments.stop, history)
    return list_running(history, arguments.format)
