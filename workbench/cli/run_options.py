"""Options of `workbench run` and `workbench compare`: which cases are run, and in which way."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.judges import add_judge_option
from workbench.config.models import DEFAULT_CONCURRENCY


def add_case_options(parser: argparse.ArgumentParser) -> None:
    """Which cases, how often, how many at the same time."""
    parser.add_argument(
        "--case", action="append", default=[], metavar="ID", help="only the case with this id; may be repeated"
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="T", help="only cases with this tag; may be repeated"
    )
    parser.add_argument(
        "--repeats",
        type=_repeats,
        metavar="N",
        help="run every case so many times, whatever the suites say",
    )
    parser.add_argument(
        "--concurrency",
        type=_positive,
        default=DEFAULT_CONCURRENCY,
        metavar="N",
        help="runs at the same time (default %(default)s)",
    )


def add_way_options(parser: argparse.ArgumentParser) -> None:
    """What is really executed, who judges, what is trusted, how fast recordings are played."""
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
        "--pace",
        choices=("recorded", "none"),
        default="none",
        help="play 'replay:' models as fast as they were recorded, or at once (default %(default)s)",
    )


def folder(text: str) -> Path:
    """A folder, as the type of an option."""
    if not text:
        raise argparse.ArgumentTypeError("an empty text is no folder: write '.' for the current one")
    return Path(text)


def _repeats(text: str) -> int:
    from workbench.suite.model import MOST_REPEATS  # on use: `--help` loads no pydantic

    if not text.isdecimal() or not 1 <= int(text) <= MOST_REPEATS:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to {MOST_REPEATS:,} is needed, not {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1 is needed, not {text!r}")
    return int(text)
