"""What was approved, as hashes that travel: a worker finds out by itself what the same runs would use of its machine,
and refuses whatever is not among them. Also which keys it lacks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from workbench.config.models import ConfigError, ModelSpec
from workbench.engine.plan import PlannedRun
from workbench.evaluation.approval import Approval
from workbench.providers.built_in import BuiltInModels, is_built_in
from workbench.providers.model import ModelError
from workbench.suite.files import absolute
from workbench.suite.settings import judged_checks
from workbench.suite.trust import SuiteNeeds

_READ_WITHIN = 16 << 20
"""A larger file of a command counts by its size alone."""


def samples_of(runs: Iterable[PlannedRun]) -> tuple[PlannedRun, ...]:
    """Some of the runs, which need all that any of them needs: each model of each suite, each case that is judged."""
    found: dict[str, PlannedRun] = {}
    models: set[tuple[Path, str, bool]] = set()
    cases: set[tuple[Path, str]] = set()
    for run in runs:
        model, case = (run.file.path, run.model, run.model_of_suite), (run.file.path, run.case.id)
        if model not in models or (case not in cases and any(judged_checks(run.suite, run.case))):
            found[run.run_id] = run
        models.add(model)
        cases.add(case)
    return tuple(found.values())


def approved_things(approval: Approval, samples: Iterable[PlannedRun]) -> dict[str, str]:
    """Everything that was approved, by its hash: what a worker says of itself where that was not. Paths of suites,
    commands, addresses, modules and files with the hashes of their content, names of variables, and how models are
    reached: no value of a variable."""
    found: dict[str, str] = {}
    for path, grant in approval.grants.items():
        of = f"(of {path.name})"
        for words, *what in _of_suite(grant.needs, of):
            found[_hashed(path, what)] = words
        for name, module in grant.code.modules.items():
            found[_hashed(path, ["code", name, module.sha256])] = f"the code of {name} {of} is another one there"
    for path, spec in _specs(approval, samples):
        how = {name: getattr(spec, name) for name in _HOW}
        price = [spec.price.input, spec.price.output, spec.price.cached_input] if spec.price is not None else None
        found[_hashed(path, ["model", how, price])] = (
            f"the model {spec.name!r}: {spec.description} is another one there"
        )
    return found


_HOW = (
    "name",
    "provider",
    "model",
    "base_url",
    "api_key_env",
    "params",
    "read_timeout_s",
    "legacy_auth",
    "thoughts",
    "origin",
)


def lacking(approval: Approval, samples: Iterable[PlannedRun]) -> Iterator[str]:
    """What this machine lacks for some runs, one sentence each: keys, variables, folders, recordings."""
    samples = tuple(samples)
    for path, spec in _specs(approval, samples):
        key = spec.api_key_env
        if key is None or approval.why_not_asked(path, spec) is not None:
            continue
        try:
            value = approval.specs.environment_at(path).get(key, "")
        except ConfigError as error:
            yield str(error)
            continue
        if not value.strip():
            yield f"{spec.name} needs a key, and {key} is not set there: set it where the worker is started"
    for path, grant in approval.grants.items():
        needs, variables = grant.needs, grant.environment
        if isinstance(variables, ConfigError):
            yield str(variables)
        else:
            for name in needs.environment:
                if name not in variables:
                    yield f"{path.name} needs the variable {name}, which is not set there"
        if (needs.commands or needs.modules or needs.python) and not needs.folder.is_dir():
            yield f"{path.name} starts or imports something of {needs.folder}, and there is no such folder there"
    built_in = BuiltInModels()
    for run in samples:
        if run.subject is None and is_built_in(run.asked_model):
            try:
                built_in.check(run.asked_model, run.file.path.parent if run.model_of_suite else Path())
            except ModelError as error:
                yield str(error)


def unresolved(approval: Approval, samples: Iterable[PlannedRun]) -> Iterator[str]:
    """Why models of some runs cannot be reached."""
    for run in samples:
        try:
            approval.specs.of(run)
        except ConfigError as error:
            yield from error.problems


def _specs(approval: Approval, samples: Iterable[PlannedRun]) -> Iterator[tuple[Path, ModelSpec]]:
    """How all models and judges of runs are reached, as far as that is known, with the paths of their suites."""
    for run in samples:
        path = run.file.path
        ways: list[Callable[[], ModelSpec | None]] = []
        if run.subject is None:
            ways.append(partial(approval.specs.of_model, run.model, path, by_suite=run.model_of_suite))
        ways += (partial(approval.specs.judge_of, path, check) for check in judged_checks(run.suite, run.case))
        for way in ways:
            try:
                spec = way()
            except ConfigError:
                continue
            if spec is not None:
                yield path, spec


def endpoints_of(approval: Approval, samples: Iterable[PlannedRun]) -> Mapping[tuple[str, str], list[ModelSpec]]:
    """All endpoints that runs may ask, judges' too: address and model, with how each is reached."""
    found: dict[tuple[str, str], list[ModelSpec]] = {}
    for _, spec in _specs(approval, samples):
        found.setdefault((spec.base_url, spec.model), []).append(spec)
    return found


def _of_suite(needs: SuiteNeeds, of: str) -> Iterator[tuple[str, str, str]]:
    """What a suite needs, besides code: what is said of it, and what its hash is made of."""
    for command in needs.commands:
        yield f"it would run the command {command} {of}", "command", str(command)
        for word in command.words:
            if (content := _content(needs.folder, word)) is not None:
                yield f"the file {word} of a command {of} is another one there", f"file {word}", content
    for kind, written in (
        ("open the address", needs.urls),
        ("import the module", needs.modules),
        ("call the function", needs.python),
        ("read the variable", needs.environment),
        ("ask the model", needs.models),
    ):
        for each in written:
            yield f"it would {kind} {each} {of}", kind, str(each)


def _content(folder: Path, word: str) -> str | None:
    """The hash of a file that a command names below its folder; `None` where it names none."""
    try:
        file = folder / word
        if Path(word).is_absolute() or not file.is_file():
            return None
        size = file.stat().st_size
        return str(size) if size > _READ_WITHIN else hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _hashed(suite: Path, what: object) -> str:
    return hashlib.sha256(json.dumps([str(absolute(suite)), what], sort_keys=True).encode()).hexdigest()
