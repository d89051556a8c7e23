"""What of a suite and its models needs trust, and whether a batch would use any of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from workbench.batches.plan import PlannedRun
from workbench.batches.specs import judge_of
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError, ModelSpec
from workbench.providers.built_in import is_built_in
from workbench.suite.checks import Judged
from workbench.suite.judged import judged_checks
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case, Suite
from workbench.suite.trust import ModelNeed, Needs, needs_trust
from workbench.tools.listings import Listings


def needs_of(file: SuiteFile, models: ModelBook) -> Needs:
    """What a suite that has no errors would start, import, open, call and read, and which models it and the
    `workbench.toml` beside it would have asked. The user's own models need no trust.

    Raises ValueError for a suite with errors. Models that cannot be resolved count for nothing: they cannot be asked.
    """
    if file.suite is None:
        raise ValueError(f"{file.path} has problems and cannot be run")
    folder = file.path.parent
    try:
        of_project = models.of_project(folder)
    except ConfigError:
        of_project = ()
    named = (spec_of(name, folder, models, by_suite=True) for name in models_named_by(file.suite))
    asked = {_need(spec) for spec in (*of_project, *named) if spec is not None and needs_asking(spec)}
    asked |= judges_asked(file, file.suite.cases, models)
    return replace(needs_trust(file.suite, file.path), models=tuple(sorted(asked, key=str)))


def with_asked(needs: Needs, asked: Collection[ModelNeed]) -> Needs:
    """The needs of a suite for runs that would ask some models, whoever named them: in a batch that is resumed, that
    may be the history."""
    return (
        needs
        if set(asked) <= set(needs.models)
        else replace(needs, models=tuple(sorted({*needs.models, *asked}, key=str)))
    )


def models_asked(runs: Iterable[PlannedRun], models: ModelBook) -> frozenset[ModelNeed]:
    """The models among a suite's needs that runs of it would ask, those that judge too."""
    runs = tuple(runs)
    specs = (spec_of(run.model, run.file.path.parent, models, by_suite=run.model_of_suite) for run in runs)
    cases: dict[Path, tuple[SuiteFile, dict[str, Case]]] = {}
    for run in runs:
        cases.setdefault(run.file.path, (run.file, {}))[1][run.case.id] = run.case
    judges = (judges_asked(file, by_id.values(), models) for file, by_id in cases.values())
    return frozenset(_need(spec) for spec in specs if spec is not None and needs_asking(spec)).union(*judges)


def judges_asked(
    file: SuiteFile, cases: Iterable[Case], models: ModelBook, *, mocks: bool = True
) -> frozenset[ModelNeed]:
    """The models among the needs of a sound suite that checks of some of its cases, and of mocks, would have judge."""
    assert file.suite is not None
    folder = file.path.parent
    checks = (check for case in cases for check in judged_checks(file.suite, case, mocks=mocks))
    found = set()
    for check in {check.model: check for check in checks}.values():
        try:
            spec = judge_for(check, folder, models)
        except ConfigError:
            continue  # it cannot be asked
        if needs_asking(spec):
            found.add(_need(spec))
    return frozenset(found)


def judge_for(check: Judged, folder: Path, models: ModelBook) -> ModelSpec:
    """How the model that judges a check of the suites in a folder is reached; raises ConfigError as `judge_of` does."""
    return judge_of(
        check,
        lambda: models.judge(folder),
        lambda name, by_suite: models.resolve(name, folder, by_suite=by_suite, judges=True),
    )


def must_ask(needs: Needs, runs: Iterable[PlannedRun], models: ModelBook) -> bool:
    """Whether runs of a suite that is not trusted would use something of its needs. A suite that needs nothing but
    models may run on others."""
    return needs.beside_models or bool(models_asked(runs, models))


def can_do_with_mocks(file: SuiteFile, runs: Iterable[PlannedRun], models: ModelBook, listings: Listings) -> bool:
    """Whether runs of a suite that is not trusted can be made without its servers, since their tools are remembered."""
    suite = file.suite
    if suite is None or not suite.servers or models_asked(runs, models):
        return False
    return listings.of(suite, file.path).keys() == {server.name for server in suite.servers}


def models_named_by(suite: Suite) -> tuple[str, ...]:
    """The models that a suite and its cases name, each once, in their order."""
    names = [*suite.models, *(name for case in suite.cases for name in case.models or ())]
    return tuple(dict.fromkeys(names))


def needs_asking(spec: ModelSpec) -> bool:
    """Whether somebody else than the user said how a model is reached."""
    return spec.origin in ("suite", "project")


def spec_of(name: str, folder: Path, models: ModelBook, *, by_suite: bool) -> ModelSpec | None:
    """How a model is reached; `None` when it needs no endpoint, or when that is not known."""
    if is_built_in(name):
        return None
    try:
        return models.resolve(name, folder, by_suite=by_suite)
    except ConfigError:
        return None


def _need(spec: ModelSpec) -> ModelNeed:
    return ModelNeed(spec.model, spec.base_url, spec.api_key_env)
