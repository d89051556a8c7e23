"""`workbench grade`: its options. What it does is in `workbench.cli.regrading`, imported when it is done."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.judges import add_judging_options
from workbench.cli.run import add_by_option, add_min_score_option


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings", nargs="+", type=Path, metavar="PATH", help="recordings of runs, or folders of them"
    )
    parser.add_argument(
        "--suite",
        type=Path,
        metavar="FILE",
        help="grade by the cases of this suite as they are now, not by those in the recordings",
    )
    add_by_option(parser)
    add_min_score_option(parser)
    add_judging_options(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="form of the report (default %(default)s)"
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quiet", action="store_true", help="only what did not pass")
    amount.add_argument("--verbose", action="store_true", help="the issues of passed runs too")


def execute(options: argparse.Namespace) -> int:
    """Grade and report; returns an exit code."""
    from workbench.cli.regrading import regrade_and_report

    return regrade_and_report(options)
