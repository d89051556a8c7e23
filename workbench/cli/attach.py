"""`workbench attach`: its options. What it does is in `workbench.cli.attaching`, imported when it is done."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.parser import add_history_options, add_report_option, history_to_read
from workbench.evaluation.exit_codes import USAGE
from workbench.reports.forms import forms_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "batch",
        nargs="?",
        metavar="BATCH",
        help="a batch that goes on without a terminal, its number or its name (default: the only one)",
    )
    parser.add_argument("--app", action="store_true", help="show it in the app, whose runs fill in while they are made")
    parser.add_argument(
        "--from-start", action="store_true", help="show the steps of all runs that are over, not of the last ones alone"
    )
    parser.add_argument(
        "--format",
        choices=[form for form in forms_of("run") if form not in ("jsonl", "github")],
        help="format of the report at the end (default: by the ending of --output, else text)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the report to a file instead of standard output"
    )
    add_report_option(parser, "run")
    add_history_options(parser, may_be_none=False)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="no steps, and only what did not pass")
    amount.add_argument("-v", "--verbose", action="store_true", help="every step in full, with the model's reasoning")


def execute(arguments: argparse.Namespace) -> int:
    """Look on until the batch ends; returns its exit code."""
    from workbench.cli.attaching import attach
    from workbench.cli.report_output import output_of

    output = output_of(arguments, "run")
    if output is None or not output.can_write():
        return USAGE
    history = history_to_read(arguments, ())
    if arguments.app:
        from workbench.cli.attaching import attach_in_app

        return attach_in_app(arguments.batch, history)
    return attach(arguments.batch, history, output, from_start=arguments.from_start)
