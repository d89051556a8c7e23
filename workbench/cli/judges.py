"""The model that judges, on the command line: its option, and what is said before a run that it cannot judge."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.config.program import Program
    from workbench.suite.loading import SuiteFile


def add_judge_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """`purpose` says what the model of `--judge` does."""
    parser.add_argument("--judge", metavar="M", help=purpose)


def add_judging_options(parser: argparse.ArgumentParser) -> None:
    """For runs that are over: who judges what nobody has judged, and what grading may call."""
    add_judge_option(parser, "have this model judge what was not judged before; without it no model is asked")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="for this once, let checks call the Python functions that they name, and judges be asked that a suite or "
        "the workbench.toml beside it describes",
    )


def judge_is_known(judge: str | None, files: Iterable[SuiteFile], program: Program) -> bool:
    """Whether it is known how to reach the model of `--judge` from the suites; if not, that has been reported."""
    from workbench.cli.door import warn
    from workbench.evaluation.judges import unknown_judge

    problems = [*unknown_judge(judge, files, program)]
    for problem in problems:
        warn(problem, program.secrets)
    return not problems
