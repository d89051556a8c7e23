"""The models that judge answers, and problems with them that a user must know before a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.checks.combined_kinds import Judged
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.engine.model_specs import judge_of
from workbench.providers.built_in import is_built_in
from workbench.suite.model import Case
from workbench.suite.settings import judged_checks
from workbench.suite.suite_file import SuiteFile


def judge_for(check: Judged, folder: Path, models: ModelBook) -> ModelSpec:
    """Return the model that judges a check in a suite of this folder.

    Raises ConfigError if there is no judge, or if it cannot be resolved."""
    return judge_of(
        check,
        lambda: models.judge(folder),
        lambda name, by_suite: models.resolve(name, folder, by_suite=by_suite, judges=True),
    )


def unjudged_checks(cases: Iterable[tuple[SuiteFile, Case]], models: ModelBook) -> Iterator[str]:
    """Yield the reasons why checks in valid suites cannot be judged, each once per suite.

    Skipped cases are ignored. Checks that name a built-in model as judge are ignored too, because loading the suite has
    reported them."""

    messages: dict[str, None] = {}
    for file, case in cases:
        assert file.suite is not None
        if case.skip is not None:
            continue
        for check in judged_checks(file.suite, case):
            # Loading the suite has already reported these checks.
            if check.model is not None and is_built_in(check.model):
                continue
            try:
                judge_for(check, file.path.parent, models)
            except ConfigError as error:
                messages[f"{file.path}: warning: not all of its checks can be judged: {error}"] = None
    yield from messages


def unknown_judge(judge: str | None, files: Iterable[SuiteFile], program: Program) -> Iterator[str]:
    """Yield the reasons why the judge that the user chose cannot be resolved from the suites' folders."""
    problems: dict[str, None] = {}
    if judge is None:
        return
    # The projects of the suites may define different models with this name, so each folder is tried.
    for folder in {file.path.parent for file in files}:
        try:
            program.models.resolve(judge, folder, by_suite=False, judges=True)
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    yield from problems
