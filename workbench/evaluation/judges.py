"""The models that judge answers: find the judge of each check that needs one."""

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
    """Return the settings of a check's judge, for suites in a folder.

    Raises ConfigError as `judge_of` does."""
    return judge_of(
        check,
        lambda: models.judge(folder),
        lambda name, by_suite: models.resolve(name, folder, by_suite=by_suite, judges=True),
    )


def unjudged_checks(cases: Iterable[tuple[SuiteFile, Case]], models: ModelBook) -> Iterator[str]:
    """Yield the reasons why checks in valid suites cannot be judged, each once per suite.

    Skipped cases are left out. Problems that loading the suite reports are left out too."""

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
    """Yield the reasons why the chosen judge cannot be reached from the suites."""
    problems: dict[str, None] = {}
    if judge is None:
        return
    # Each folder is tried, because a project may have its own model with this name.
    for folder in {file.path.parent for file in files}:
        try:
            program.models.resolve(judge, folder, by_suite=False, judges=True)
        except ConfigError as error:
            problems |= dict.fromkeys(error.problems)
    yield from problems
