"""The model that judges, on the command line: its option, and what is said before a run that it cannot judge."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.config.model_book import ModelBook
    from workbench.config.program import Program
    from workbench.suite.loading import SuiteFile
    from workbench.suite.model import Case


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


def judge_problems(cases: Iterable[tuple[SuiteFile, Case]], models: ModelBook) -> Iterator[str]:
    """Why judged checks of cases of sound suites cannot be judged, each reason once for each suite, where reading the
    suite has not said so. Cases that are skipped ask nobody."""
    from workbench.batches.trusting import judge_for
    from workbench.config.models import ConfigError
    from workbench.providers.built_in import is_built_in
    from workbench.suite.judged import judged_checks

    said: dict[str, None] = {}
    for file, case in cases:
        assert file.suite is not None
        if case.skip is not None:
            continue
        for check in judged_checks(file.suite, case):
            if check.model is not None and is_built_in(check.model):
                continue
            try:
                judge_for(check, file.path.parent, models)
            except ConfigError as error:
                said[f"{file.path}: warning: not all of its checks can be judged: {error}"] = None
    yield from said


def judge_is_known(judge: str | None, files: Iterable[SuiteFile], program: Program) -> bool:
    """Whether it is known how to reach the model of `--judge` for the suites; if not, that has been said."""
    from workbench.cli.suites import complain
    from workbench.config.models import ConfigError

    problems: dict[str, None] = {}
    for folder in {file.path.parent for file in files} if judge is not None else ():
        try:
            program.models.resolve(judge or "", folder, by_suite=False, judges=True)
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    for problem in problems:
        complain(problem, program.secrets)
    return not problems
