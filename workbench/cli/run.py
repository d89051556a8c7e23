"""`workbench run`: its options. What it does is in `workbench.cli.batch`, imported when it is done."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from workbench.cli.exit_codes import USAGE
from workbench.cli.history_options import add_history_options
from workbench.cli.model_options import add_model_options
from workbench.cli.run_options import add_case_options, add_way_options, folder

FORMS = ("text", "json", "jsonl")
GRADERS = ("critics", "decision", "accuracy", "trajectory", "dimensions")
"""Every grader by name. They are not asked themselves: `--help` answers at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="suite files, or folders that hold them; none is needed with --resume"
    )
    add_model_options(parser)
    add_case_options(parser)
    parser.add_argument(
        "--break",
        dest="breakpoints",
        action="append",
        default=[],
        metavar="LINE",
        help="open the app, run there, and hold the runs at this breakpoint, such as 'tool send_email' or 'error'; "
        "may be repeated",
    )
    add_by_option(parser)
    add_min_score_option(parser)
    add_way_options(parser)
    parser.add_argument(
        "--format",
        choices=FORMS,
        help="form of the report (default: as --output ends, else text); jsonl streams the events of all runs instead",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write the report to a file instead of standard output, in the form that its ending says: .json, .jsonl "
        "or .txt",
    )
    add_history_options(parser)
    add_resume_options(parser)
    _add_baseline_options(parser)
    recording = parser.add_mutually_exclusive_group()
    recording.add_argument("--record", type=folder, metavar="DIR", help="record every run into a file of its own")
    recording.add_argument(
        "--record-failed", type=folder, metavar="DIR", help="record only the runs that failed or ended in an error"
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="no steps, and only what did not pass")
    amount.add_argument("-v", "--verbose", action="store_true", help="every step in full, with the model's reasoning")


def execute(options: argparse.Namespace) -> int:
    """Run and report, or with breakpoints open the app; returns an exit code."""
    if options.breakpoints and options.resume is None:
        from workbench.cli.breaking import open_at_breakpoints

        return open_at_breakpoints(options)
    from workbench.cli.batch import run_and_report
    from workbench.cli.report_output import takes_form

    return run_and_report(options) if takes_form(options, "run", FORMS) else USAGE


def add_resume_options(parser: argparse.ArgumentParser) -> None:
    """Going on with a batch of the history."""
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="BATCH",
        help="go on with a batch of the history, a number or a name: exactly its missing runs are made (default: the "
        "latest one of the paths, or of this project, that lacks some)",
    )
    parser.add_argument(
        "--anyway", action="store_true", help="resume although models are reached otherwise than they were then"
    )


def _add_baseline_options(parser: argparse.ArgumentParser) -> None:
    """Holding a batch against another one of the history."""
    parser.add_argument(
        "--baseline", metavar="BATCH", help="say what broke, was fixed and moved since this batch, a number or a name"
    )
    parser.add_argument(
        "--fail-on",
        choices=("regression",),
        help="decide by the baseline, not by statuses: a regression is a case that broke or is gone",
    )


def add_by_option(parser: argparse.ArgumentParser) -> None:
    """Which grader decides."""
    parser.add_argument("--by", choices=GRADERS, help="let this grader decide, whatever the cases say")


def add_min_score_option(parser: argparse.ArgumentParser) -> None:
    """What decides the exit code instead of statuses and gates."""
    parser.add_argument(
        "--min-score",
        type=_unit,
        metavar="X",
        help="the mean score to reach, 0..1; decides instead of statuses and gates",
    )


def _unit(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text!r}")
    return number
