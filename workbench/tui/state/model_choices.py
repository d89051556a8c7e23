"""The models to choose from: the offline one, those that `workbench.toml` files name, those that suites name, each with
where it is reached and whether its key is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench.batches.trusting import models_named_by
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.providers.registry import OFFLINE, built_in_models, is_built_in
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.tui.glyphs import GLYPHS

SUITES_NAMED_MAX = 2


@dataclass(frozen=True)
class ModelChoice:
    """One model, and what there is to know about it in one line, safe to show."""

    name: str
    detail: str


@dataclass(frozen=True)
class ModelChoices:
    """All models there are, and what keeps others from being among them."""

    choices: tuple[ModelChoice, ...]
    problems: tuple[str, ...]


def model_choices(program: Program, files: Sequence[SuiteFile], checked: Iterable[str]) -> ModelChoices:
    """Look at settings and suites. Models that are `checked` are listed whatever they are. Reads files; asks nobody."""
    folders = list(dict.fromkeys(file.path.parent for file in files)) or [Path()]
    found: dict[str, str] = {OFFLINE: next(model.description for model in built_in_models() if model.name == OFFLINE)}
    problems: dict[str, None] = {}
    for folder in folders:
        try:
            named = program.models.named(folder)
        except ConfigError as error:
            problems.update(dict.fromkeys(error.problems))
            continue
        for spec in named:
            whose = "yours" if spec.origin == "user" else "named beside the suites"
            found.setdefault(spec.name, _line(_reached(program, spec, folder), whose))
    for model, namers in _named_by_suites(files).items():
        more = f" and {len(namers) - SUITES_NAMED_MAX} more" if len(namers) > SUITES_NAMED_MAX else ""
        by = "named by " + ", ".join(file.path.stem for file in namers[:SUITES_NAMED_MAX]) + more
        if model not in found:
            found[model] = _line(_described(program, model, namers[0].path.parent, by_suite=True), by)
    for model in checked:
        if model not in found:
            reached = _described(program, model, folders[0], by_suite=False)
            found[model] = _line(reached, "named on the command line")
    hide = program.secrets.redact
    return ModelChoices(
        tuple(ModelChoice(name, hide(detail)) for name, detail in found.items()),
        tuple(one_line(hide(problem)) for problem in problems),
    )


def _named_by_suites(files: Sequence[SuiteFile]) -> dict[str, list[SuiteFile]]:
    named: dict[str, list[SuiteFile]] = {}
    for file in files:
        if file.suite is not None:
            for model in models_named_by(file.suite):
                named.setdefault(model, []).append(file)
    return named


def _described(program: Program, model: str, folder: Path, *, by_suite: bool) -> str:
    if is_built_in(model):
        return "plays a recorded run again"
    try:
        return _reached(program, program.models.resolve(model, folder, by_suite=by_suite), folder)
    except ConfigError as error:
        return str(error)


def _reached(program: Program, spec: ModelSpec, folder: Path) -> str:
    """Whether the key of a model is there, and where it is asked; what matters first, since the line may be cut."""
    if spec.api_key_env is None:
        return _line("no key needed", spec.base_url)
    try:
        there = program.environment.of(folder).get(spec.api_key_env)
    except ConfigError as error:
        return _line(str(error), spec.base_url)
    return _line("key present" if there else f"key missing: set {spec.api_key_env}", spec.base_url)


def _line(*parts: str) -> str:
    return one_line(f" {GLYPHS.dot} ".join(parts))
