"""The options of `workbench history`.

Each subcommand is a module `workbench.cli.history_*`, imported when it runs."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path

from workbench.cli.export import add_sending_options
from workbench.cli.model_options import add_judging_options
from workbench.cli.parser import (
    GRADING,
    REPORTS,
    add_amount_options,
    add_exit_codes,
    add_history_options,
    add_lean_option,
    add_report_option,
    add_report_options,
    grading_number,
    group,
    history_to_read,
    natural,
    number_from,
    options_as,
    show_first,
)
from workbench.cli.run_options import add_baseline_options, add_by_option, add_confirm_option, add_min_score_option
from workbench.evaluation.exit_codes import DESCRIPTIONS, INFRASTRUCTURE, OK, QUALITY_MISSED, USAGE
from workbench.exchange.exporters.forms import FORMS
from workbench.show.forms import Command, forms_of

_BATCH = "a batch"
FORMER_COMMANDS = {"regrade": "workbench grade", "export": "workbench export"}
"""The commands that replace former subcommands. The former subcommands still work."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
    _list(_word(words, "list", "list the batches, the newest first"))
    _show(_word(words, "show", "show a batch, a case over time, or a run"))
    _diff(_word(words, "diff", "show what changed between two batches"))
    _flaky(_word(words, "flaky", "list the unchanged cases whose results vary"))
    _name(_word(words, "name", "name a batch, for example as a baseline"))
    _merge(_word(words, "merge", "merge the shards of a plan into one batch, and report on it"))
    _prune(_word(words, "prune", "remove batches and free their space"))
    for name, fill in (("regrade", _regrade), ("export", _export)):
        # A parser without `help` is not listed among the subcommands.
        former = words.add_parser(name, description=f"Former name of '{FORMER_COMMANDS[name]}'.")
        add_history_options(former, may_be_none=False)
        fill(former)


def execute(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "report", None) is not None:
        from workbench.cli.report_output import output_of

        if (output := output_of(arguments, arguments.reports_of)) is None or not output.can_write():
            return USAGE
        arguments.output = output
    from workbench.cli.history_command import run_history_command

    if arguments.word in FORMER_COMMANDS:
        from workbench.cli.redaction import warn

        warn(f"'workbench history {arguments.word}' is called '{FORMER_COMMANDS[arguments.word]}' now")
    word = import_module(f"workbench.cli.history_{arguments.word}")
    options, judge = options_as(word.Options, arguments), getattr(arguments, "judge", None)
    return run_history_command(partial(word.execute, options), history_to_read(arguments, ()), judge)


def _word(
    words: argparse._SubParsersAction[argparse.ArgumentParser], name: str, purpose: str
) -> argparse.ArgumentParser:
    parser = words.add_parser(name, help=purpose, description=f"{purpose.capitalize()}.")
    add_history_options(parser, may_be_none=False)
    return parser


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", metavar="SUITE", help="only this suite, a name or a path")
    parser.add_argument(
        "--limit", type=natural, default=20, metavar="N", help="list at most N batches (default %(default)s)"
    )
    _format(parser, "text", "json", "markdown", "csv")


def _flaky(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--suite", metavar="SUITE", help="only this suite, a name or a path")
    parser.add_argument(
        "--last", type=natural, default=50, metavar="N", help="examine the last N batches (default %(default)s)"
    )
    _format(parser)
    add_exit_codes(parser, {OK: "no case is flaky", QUALITY_MISSED: "a case is flaky", USAGE: "no such history"})


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("batch", nargs="?", metavar="BATCH", help=f"{_BATCH} (default: the newest)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--case", metavar="NAME", help="this case: id, name, pattern; with BATCH, in its suites")
    what.add_argument("--run", type=natural, metavar="N", help="this run, step by step")
    parser.add_argument("-v", "--verbose", action="store_true", help="show all runs; with --run, every step in full")
    _grading(parser)
    _reports(parser, "history show")
    add_lean_option(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", help=_BATCH)
    parser.add_argument("after", nargs="?", metavar="AFTER", help="the later batch (default: the newest)")
    _grading(parser)
    add_by_option(parser)
    _reports(parser, "history diff")


def _name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("batch", metavar="BATCH", help=_BATCH)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", metavar="NAME", help="the name; another batch that has it loses it")
    which.add_argument("--remove", action="store_true", help="remove the name")


def _regrade(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("batches", nargs="+", metavar="BATCH", help=_BATCH)
    parser.add_argument("--suite", type=Path, metavar="FILE", help="grade by this suite, not the one at the old path")
    add_by_option(parser)
    add_judging_options(parser)
    _format(parser)
    add_exit_codes(
        parser,
        {
            OK: "regraded",
            USAGE: "no such batch, missing trust, no usable suite, or a damaged run",
            INFRASTRUCTURE: "a run with a grade cannot be graded again",
        },
    )


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="histories with shards, or folders of them (default: the history itself)",
    )
    parser.add_argument("--plan", metavar="ID", help="only shards of the plan with this id")
    parser.add_argument("--name", metavar="NAME", help="name the merged batch")
    parser.add_argument("--no-report", action="store_true", help="only merge: further shards will follow")
    add_report_options(parser, "history merge")
    parser.set_defaults(reports_of="history merge")
    add_min_score_option(parser)
    add_baseline_options(parser)
    add_confirm_option(parser, reruns=False)
    add_amount_options(parser, "show every run in full")
    add_exit_codes(parser, DESCRIPTIONS)
    show_first(
        *(parser, "--plan", "--name", "--no-report", "--baseline", "--fail-on"),
        *("--min-score", "--format", "--report", "--quiet", "--verbose"),
    )


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("batch", metavar="BATCH", help=_BATCH)
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="DIR",
        help="the folder to write into; for a form of one file, also that file",
    )
    _grading(parser)
    _format(parser, "recordings", "json", *FORMS)
    add_sending_options(parser)


def _prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=_count, metavar="N", help="keep only the newest N")
    parser.add_argument("--older-than", type=_days, metavar="AGE", help="remove older ones: 30d, 8w, 12h")
    parser.add_argument(
        "--batch",
        action="append",
        default=[],
        metavar="BATCH",
        help="remove this one, even with a name; repeatable",
    )
    parser.add_argument("--named", action="store_true", help="also remove named batches")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _format(parser: argparse.ArgumentParser, *forms: str) -> None:
    choices = forms or ("text", "json")
    group(parser, REPORTS).add_argument(
        "--format",
        choices=choices,
        default=choices[0],
        metavar="FORM",
        help=f"what to write (default %(default)s): {', '.join(choices)}",
    )


def _reports(parser: argparse.ArgumentParser, command: Command) -> None:
    _format(parser, *forms_of(command))
    add_report_option(parser, command)
    parser.set_defaults(reports_of=command)


def _grading(parser: argparse.ArgumentParser) -> None:
    group(parser, GRADING).add_argument(
        "--grading", type=grading_number, metavar="N|latest", help="use the grades of this regrade"
    )


def _count(text: str) -> int:
    return number_from(text, 0)


def _days(text: str) -> float:
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or len(number) > 6 or unit not in _UNITS:
        raise argparse.ArgumentTypeError("write an age such as 30d (days), 8w (weeks) or 12h (hours)")
    return int(number) * _UNITS[unit]


_UNITS = {"h": 1 / 24, "d": 1.0, "w": 7.0}
