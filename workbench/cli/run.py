"""`workbench run`: its options. What it does is in `workbench.cli.batch`, imported when it is done."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.model_options import add_model_options
from workbench.cli.parser import add_history_options, add_report_option, add_summary_option, history_to_read
from workbench.cli.run_options import (
    add_case_options,
    add_cluster_option,
    add_max_cost_option,
    add_paths,
    add_shard_options,
    add_until_options,
    add_variant_options,
    add_way_options,
    folder,
    run_options,
)
from workbench.evaluation.exit_codes import USAGE
from workbench.reports.forms import endings_of, forms_of

if TYPE_CHECKING:
    from workbench.reports.baseline import Confirm

GRADERS = ("critics", "decision", "accuracy", "trajectory", "dimensions")
"""Every grader by name. They are not asked themselves: `--help` answers at once."""
REPEAT_RULES = ("every", "last", "mean", "majority")
"""Every rule for repeats."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_model_options(parser)
    add_variant_options(parser, compares=False)
    add_case_options(parser)
    add_cluster_option(parser)
    parser.add_argument(
        "--break",
        dest="breakpoints",
        action="append",
        default=[],
        metavar="LINE",
        help="open the app, run there, and hold the runs at this breakpoint, such as 'tool send_email' or 'error'; "
        "may be repeated",
    )
    add_until_options(parser, compares=False)
    add_shard_options(parser)
    add_max_cost_option(parser)
    add_by_option(parser)
    add_repeat_rule_option(parser)
    add_min_score_option(parser)
    add_way_options(parser)
    parser.add_argument(
        "--frozen", action="store_true", help="run nothing unless the tools of all servers are as they are pinned"
    )
    parser.add_argument(
        "--format",
        choices=forms_of("run"),
        help="format of the report (default: by the ending of --output, else text); jsonl streams the events of all "
        "runs instead",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"write the report to a file instead of standard output, in the format of its ending: {endings_of('run')}",
    )
    add_report_option(parser, "run")
    add_summary_option(parser)
    add_history_options(parser)
    add_resume_options(parser)
    add_detach_option(parser)
    add_baseline_options(parser)
    add_confirm_option(parser, reruns=True)
    parser.add_argument(
        "--confirm-writes", action="store_true", help="rerun cases that executed tools which are not read-only, too"
    )
    recording = parser.add_mutually_exclusive_group()
    recording.add_argument("--record", type=folder, metavar="DIR", help="record every run into a file of its own")
    recording.add_argument(
        "--record-failed", type=folder, metavar="DIR", help="record only the runs that failed or ended in an error"
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("-q", "--quiet", action="store_true", help="no steps, and only what did not pass")
    amount.add_argument("-v", "--verbose", action="store_true", help="every step in full, with the model's reasoning")


def execute(arguments: argparse.Namespace) -> int:
    """Run and report, or with breakpoints open the app; returns an exit code."""
    if arguments.breakpoints and arguments.resume is None:
        return _open_at_breakpoints(arguments)
    from workbench.cli.batch import run_and_report
    from workbench.cli.door import warn
    from workbench.cli.making import BaselineOptions, Record
    from workbench.cli.report_output import output_of

    output = output_of(arguments, "run")
    options = run_options(arguments, compares=False) if output is not None else None
    if output is None or options is None:
        return USAGE
    baseline = None
    if arguments.baseline is not None:
        history = history_to_read(arguments, arguments.paths)
        confirm: Confirm = arguments.confirm or "reruns"
        baseline = BaselineOptions(arguments.baseline, history, arguments.fail_on, confirm, arguments.confirm_writes)
    elif arguments.fail_on is not None:
        where = (
            "give --baseline NAME too"
            if arguments.shard is None
            else "give it and --baseline to 'workbench history merge'"
        )
        warn(f"--fail-on {arguments.fail_on} needs a batch to compare with: {where}")
        return USAGE
    if (arguments.confirm or arguments.confirm_writes) and arguments.fail_on is None:
        word = "--confirm" if arguments.confirm else "--confirm-writes"
        warn(f"{word} makes sure of what --fail-on decides by: give --fail-on regression too, or leave it out")
        return USAGE
    if arguments.confirm_writes and baseline is not None and baseline.confirm != "reruns":
        warn(f"--confirm {baseline.confirm} makes no reruns: leave it or --confirm-writes out")
        return USAGE
    to, only_failed = arguments.record or arguments.record_failed, arguments.record is None
    record = Record(to, only_failed) if to is not None else None
    return run_and_report(
        options,
        output,
        trust=arguments.trust,
        record=record,
        compared_with=baseline,
        frozen=arguments.frozen,
        detach=arguments.detach,
    )


_WITHOUT_APP = (
    ("format", "--format"),
    ("output", "--output"),
    ("report", "--report"),
    ("no_step_summary", "--no-step-summary"),
    ("min_score", "--min-score"),
    ("until", "--until"),
    ("shard", "--shard"),
    ("processes", "--processes"),
    ("cluster", "--cluster"),
    ("frozen", "--frozen"),
    ("baseline", "--baseline"),
    ("fail_on", "--fail-on"),
    ("confirm", "--confirm"),
    ("confirm_writes", "--confirm-writes"),
    ("record_failed", "--record-failed"),
    ("quiet", "--quiet"),
    ("verbose", "--verbose"),
    ("detach", "--detach"),
)
"""Options that the app has no use for: attributes of the parsed arguments, and the names of the options."""


def _open_at_breakpoints(arguments: argparse.Namespace) -> int:
    from workbench.cli.app import app_options
    from workbench.cli.breaking import open_at_breakpoints
    from workbench.cli.door import warn

    for attribute, name in _WITHOUT_APP:
        if getattr(arguments, attribute) not in (None, False, []):
            warn(f"{name} is for runs without the app, which --break opens: leave one of them out")
            return USAGE
    options = run_options(arguments, compares=False)
    return open_at_breakpoints(options, arguments.breakpoints, app_options(arguments)) if options else USAGE


def add_resume_options(parser: argparse.ArgumentParser) -> None:
    """Going on with a batch of the history."""
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="BATCH",
        help="resume a batch of the history, a number or a name: only its missing runs are run (default: the "
        "latest one of the paths, or of this project, with missing runs)",
    )
    parser.add_argument("--anyway", action="store_true", help="resume even if models have other settings than before")


def add_detach_option(parser: argparse.ArgumentParser) -> None:
    """Going on without a terminal."""
    parser.add_argument(
        "--detach",
        action="store_true",
        help="return once the batch has begun, which goes on without this terminal: 'workbench attach' shows it; with "
        "--quiet, print its number alone",
    )


def add_baseline_options(parser: argparse.ArgumentParser) -> None:
    """Holding a batch against another one of the history."""
    parser.add_argument(
        "--baseline", metavar="BATCH", help="show what broke, was fixed or changed since this batch, a number or a name"
    )
    parser.add_argument(
        "--fail-on",
        choices=("regression",),
        help="decide by the baseline, not by statuses: a regression is a case that broke or is missing",
    )


def add_confirm_option(parser: argparse.ArgumentParser, *, reruns: bool) -> None:
    """How it is made sure that a case broke."""
    ways = ("reruns", "repeats", "none") if reruns else ("repeats", "none")
    by = (
        "by reruns until chance is excluded, at most as many as the batch has runs (default), by its repeats alone"
        if reruns
        else "by its repeats (default)"
    )
    parser.add_argument(
        "--confirm", choices=ways, help=f"how --fail-on makes sure that a case broke: {by}, or not at all"
    )


def add_by_option(parser: argparse.ArgumentParser) -> None:
    """Which grader decides."""
    parser.add_argument("--by", choices=GRADERS, help="let this grader decide, overriding the cases")


def add_repeat_rule_option(parser: argparse.ArgumentParser) -> None:
    """How the runs of a case come to one status."""
    parser.add_argument(
        "--repeat-rule",
        choices=REPEAT_RULES,
        help="how several runs of a case come to one status, overriding the cases",
    )


def add_min_score_option(parser: argparse.ArgumentParser) -> None:
    """What decides the exit code instead of statuses and gates."""
    parser.add_argument(
        "--min-score",
        type=_unit,
        action=_ScoreToReach,
        metavar="X",
        help="the mean score to reach, 0..1; decides instead of statuses and gates",
    )


class _ScoreToReach(argparse.Action):
    """Takes the score, and warns of one that every batch reaches."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if values == 0:
            from workbench.cli.door import warn  # on use: `--help` answers at once

            warn("--min-score 0: every batch reaches 0, so that no failed case counts; name the score to reach")
        setattr(namespace, self.dest, values)


def _unit(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number
