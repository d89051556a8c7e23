"""What of a suite and its models needs trust, and whether runs would use any of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

from workbench.batches.plan import PlannedRun
from workbench.batches.specs import Specs, judge_of
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError, ModelSpec
from workbench.suite.checks import Judged
from workbench.suite.judged import judged_checks
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case, Suite
from workbench.suite.trust import ModelNeed, Needs, needs_trust
from workbench.tools.listings import Listings


def needs_of(file: SuiteFile, specs: Specs) -> Needs:
    """What a suite that has no errors would start, import, open, call and read, and which models it and the
    `workbench.toml` beside it would have asked. The user's own models need no trust. Without the files of its code.

    Raises ValueError for a suite with errors. Models that cannot be resolved count for nothing: they cannot be asked.
    """
    if file.suite is None:
        raise ValueError(f"{file.path} has problems and cannot be run")
    try:
        of_project = specs.of_project(file.path)
    except ConfigError:
        of_project = ()
    named = (spec_of(name, file.path, specs, by_suite=True) for name in models_named_by(file.suite))
    asked = {model_need(spec) for spec in (*of_project, *named) if spec is not None and needs_asking(spec)}
    asked |= judges_asked(file, file.suite.cases, specs)
    return replace(needs_trust(file.suite, file.path), models=tuple(sorted(asked, key=str)))


def with_asked(needs: Needs, asked: Collection[ModelNeed]) -> Needs:
    """The needs of a suite for runs that would ask some models, whoever named them: in a batch that is resumed, that
    may be the history."""
    return (
        needs
        if set(asked) <= set(needs.models)
        else replace(needs, models=tuple(sorted({*needs.models, *asked}, key=str)))
    )


def models_asked(runs: Iterable[PlannedRun], specs: Specs) -> frozenset[ModelNeed]:
    """The models among a suite's needs that runs of it would ask, those that judge too."""
    runs = tuple(runs)
    found = (
        spec_of(run.model, run.file.path, specs, by_suite=run.model_of_suite) for run in runs if run.own_model is None
    )
    cases: dict[Path, tuple[SuiteFile, dict[str, Case]]] = {}
    for run in runs:
        cases.setdefault(run.file.path, (run.file, {}))[1][run.case.id] = run.case
    judges = (judges_asked(file, by_id.values(), specs) for file, by_id in cases.values())
    return frozenset(model_need(spec) for spec in found if spec is not None and needs_asking(spec)).union(*judges)


def judges_asked(file: SuiteFile, cases: Iterable[Case], specs: Specs, *, mocks: bool = True) -> frozenset[ModelNeed]:
    """The models among the needs of a sound suite that checks of some of its cases, and of mocks, would have judge."""
    assert file.suite is not None
    checks = (check for case in cases for check in judged_checks(file.suite, case, mocks=mocks))
    found = set()
    for check in {check.model: check for check in checks}.values():
        try:
            spec = specs.judge_of(file.path, check)
        except ConfigError:
            continue  # it cannot be asked
        if needs_asking(spec):
            found.add(model_need(spec))
    return frozenset(found)


def judge_for(check: Judged, folder: Path, models: ModelBook) -> ModelSpec:
    """How the model that judges a check of the suites in a folder is reached; raises ConfigError as `judge_of` does."""
    return judge_of(
        check,
        lambda: models.judge(folder),
        lambda name, by_suite: models.resolve(name, folder, by_suite=by_suite, judges=True),
    )


def can_do_with_mocks(file: SuiteFile, asked: Collection[ModelNeed], listings: Listings) -> bool:
    """Whether runs of a suite that is not trusted can be made without its servers, since their tools are remembered.
    `asked` are the models among its needs that they would ask."""
    suite = file.suite
    if suite is None or not suite.servers or asked:
        return False
    return listings.of(suite, file.path).keys() == {server.name for server in suite.servers}


def grading_needs(file: SuiteFile, cases: Iterable[Case], judges: Iterable[ModelNeed]) -> Needs:
    """What of the needs of a sound suite is used when runs of some of its cases are graded: the Python functions that
    their checks call, and the `judges` that are asked. Nothing else of it is started."""
    assert file.suite is not None
    needs = needs_trust(_graded_by(file.suite, tuple(cases)), file.path)
    return Needs(needs.folder, python=needs.python, models=tuple(sorted(judges, key=str)))


def _graded_by(suite: Suite, cases: tuple[Case, ...]) -> Suite:
    """What of a suite takes part in grading cases: not the others, nor what starts and answers tools."""
    alone = tuple(case.model_copy(update={"mocks": ()}) for case in cases)
    return suite.model_copy(update={"servers": (), "mocks": (), "cases": alone})


def models_named_by(suite: Suite) -> tuple[str, ...]:
    """The models that a suite and its cases name, each once, in their order."""
    names = [*suite.models, *(name for case in suite.cases for name in case.models or ())]
    return tuple(dict.fromkeys(names))


def needs_asking(spec: ModelSpec) -> bool:
    """Whether somebody else than the user said how a model is reached."""
    return spec.origin in ("suite", "project")


def spec_of(name: str, suite: Path, specs: Specs, *, by_suite: bool) -> ModelSpec | None:
    """How a model is reached; `None` when it needs no endpoint, or when that is not known."""
    try:
        return specs.of_model(name, suite, by_suite=by_suite)
    except ConfigError:
        return None


def model_need(spec: ModelSpec) -> ModelNeed:
    """What asking a model needs."""
    return ModelNeed(spec.model, spec.base_url, spec.api_key_env)
