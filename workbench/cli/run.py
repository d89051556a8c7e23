"""`workbench run`: its options. What it does is in `workbench.cli.batch`, imported when it is done."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from workbench.cli.judges import add_judge_option
from workbench.cli.model_options import add_model_options
from workbench.config.defaults import DEFAULT_CONCURRENCY

GRADERS = ("critics", "decision", "accuracy", "trajectory", "dimensions")
"""Every grader by name. They are not asked themselves: `--help` answers at once."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="suite files, or folders that hold them")
    add_model_options(parser)
    parser.add_argument(
        "--case", action="append", default=[], metavar="ID", help="only the case with this id; may be repeated"
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="T", help="only cases with this tag; may be repeated"
    )
    parser.add_argument(
        "--repeats", type=_positive, metavar="N", help="run every case so many times, whatever the suites say"
    )
    parser.add_argument(
        "--concurrency",
        type=_positive,
        default=DEFAULT_CONCURRENCY,
        metavar="N",
        help="runs at the same time (default %(default)s)",
    )
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
    parser.add_argument(
        "--execute",
        action="store_true",
        help="really execute tools marked read-only on their servers, whatever the suites say",
    )
    parser.add_argument(
        "--execute-all", action="store_true", help="really execute all tools, those that change something too"
    )
    add_judge_option(parser, "model that judges where a check names none, instead of the one in workbench.toml")
    parser.add_argument(
        "--no-judge-cache", action="store_true", help="ask judges anew about values that they have judged before"
    )
    parser.add_argument(
        "--trust", action="store_true", help="let the suites start and import what they name, for this run"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "jsonl"),
        default="text",
        help="form of the report (default %(default)s); jsonl streams the events of all runs instead",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the report to a file instead of standard output"
    )
    recording = parser.add_mutually_exclusive_group()
    recording.add_argument("--record", type=_folder, metavar="DIR", help="record every run into a file of its own")
    recording.add_argument(
        "--record-failed", type=_folder, metavar="DIR", help="record only the runs that failed or ended in an error"
    )
    parser.add_argument(
        "--pace",
        choices=("recorded", "none"),
        default="none",
        help="play 'replay:' models as fast as they were recorded, or at once (default %(default)s)",
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quiet", action="store_true", help="no steps, and only what did not pass")
    amount.add_argument("--verbose", action="store_true", help="every step in full, with the model's reasoning")


def execute(options: argparse.Namespace) -> int:
    """Run and report, or with breakpoints open the app; returns an exit code."""
    if options.breakpoints:
        from workbench.cli.breaking import open_at_breakpoints

        return open_at_breakpoints(options)
    from workbench.cli.batch import run_and_report

    return run_and_report(options)


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


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, not {text!r}")
    return int(text)


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("an empty text is no folder: write '.' for the current one")
    return Path(text)


def _unit(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text!r}")
    return number
