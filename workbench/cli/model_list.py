"""What `workbench models` does: find the models, show how each is reached, and ask whether they answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.cli.door import ask, know_suites, warn, write, write_json
from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.evaluation.approval import Needs, Trust, needs_asking
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.evaluation.plan import trust_store
from workbench.providers.built_in import built_in_models, is_built_in
from workbench.providers.registry import CheckResult, Endpoints
from workbench.reports.paint import Paint, paint_for
from workbench.reports.visible import one_line
from workbench.suite.judged import judged_checks
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.project import find_suites
from workbench.suite.settings import models_named_by
from workbench.suite.trust import ModelNeed
from workbench.trajectory.typed_json import json_text

CHECK_TIMEOUT_S = 40.0
"""For one endpoint; all are asked at the same time."""

_NOT_USED = {
    "OPENAI_BASE_URL": "write base_url in workbench.toml, or give --base-url",
    "ANTHROPIC_BASE_URL": "write base_url in workbench.toml, or give --base-url",
    "ANTHROPIC_PROFILE": "write base_url and api_key_env in workbench.toml",
    "ANTHROPIC_AUTH_TOKEN": "name it in api_key_env",
}
"""Variables that the vendors' SDKs would follow, and what to do instead."""


@dataclass
class _Listed:
    """A model, the variables that its key may be among, and the suites that name it."""

    spec: ModelSpec
    environment: Mapping[str, str]
    named_by: list[str] = field(default_factory=list)
    check: CheckResult | None = None

    @property
    def key_is_set(self) -> bool:
        return bool(self.spec.api_key_env and self.environment.get(self.spec.api_key_env, "").strip())

    @property
    def need(self) -> ModelNeed:
        return ModelNeed(self.spec.model, self.spec.base_url, self.spec.api_key_env)


@dataclass
class _Found:
    """Everything that was found, and what is wrong with it."""

    models: list[_Listed] = field(default_factory=list)
    files: list[SuiteFile] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelList:
    """Which models are listed: those of `model`, else those that settings and suites at the paths name. With `check`,
    each is asked whether it answers."""

    paths: Sequence[str]
    model: Sequence[str]
    check: bool
    trust: bool
    format: str


def list_models(options: ModelList, program: Program) -> int:
    """List, and check if that is wanted; returns an exit code."""
    paths = [Path(path) for path in options.paths or ["."]]
    missing = [path for path in paths if not path.exists()]
    if missing or "" in options.paths:
        there = f"there is no {', '.join(map(str, missing))}: to list a model give --model NAME"
        warn(there if missing else "an empty text is no path: write '.'")
        return USAGE
    found = _chosen(options.model, paths, program) if options.model else _find(paths, program)
    know_suites(program, found.files)
    for problem in found.problems:
        warn(problem, program.secrets)
    if options.check:
        if not (options.trust or _may_ask(found, program)):
            return USAGE
        asyncio.run(_check(found.models, program))
    notes = [f"{name} is set, and not used: {hint}" for name, hint in _NOT_USED.items() if os.environ.get(name)]
    if options.format == "json":
        write_json(_as_json(found.models, notes))
    else:
        write("\n".join([*_lines(found.models, notes, paint_for(sys.stdout, os.environ)), ""]))
    silent = any(listed.check is not None and not listed.check.ok for listed in found.models)
    return INFRASTRUCTURE if silent else USAGE if found.problems else OK


def _chosen(names: Sequence[str], paths: Sequence[Path], program: Program) -> _Found:
    """The models of `--model`, as they are reached from each of the paths."""
    found = _Found(files=[load_suite(path) for path in find_suites(paths)])
    for folder in dict.fromkeys((path if path.is_dir() else path.parent).absolute() for path in paths):
        for name in names:
            if is_built_in(name):
                continue
            try:
                _listed(program.models.resolve(name, folder, by_suite=False), folder, found, program)
            except ConfigError as error:
                found.problems |= dict.fromkeys(error.problems)
    return found


def _find(paths: Sequence[Path], program: Program) -> _Found:
    found = _Found(files=[load_suite(path) for path in find_suites(paths)])
    folders = [path if path.is_dir() else path.parent for path in (*paths, *(file.path for file in found.files))]
    for folder in dict.fromkeys(map(Path.absolute, folders)):
        try:
            for spec in program.models.named(folder):
                _listed(spec, folder, found, program)
            if judge := program.models.judge(folder):
                _listed(program.models.resolve(judge.name, folder, by_suite=judge.by_suite), folder, found, program)
        except ConfigError as error:
            found.problems |= dict.fromkeys(error.problems)
    for file in found.files:
        if file.suite is None:
            found.problems[f"{file.path} has problems and was passed over: see 'workbench validate'"] = None
            continue
        judges = (check.model for case in file.suite.cases for check in judged_checks(file.suite, case) if check.model)
        for name in dict.fromkeys((*models_named_by(file.suite), *judges)):
            if is_built_in(name):
                continue
            try:
                folder = file.path.absolute().parent
                spec = program.models.resolve(name, folder, by_suite=True)
                _listed(spec, folder, found, program).named_by.append(str(file.path))
            except ConfigError as error:
                found.problems |= dict.fromkeys(f"{file.path}: {problem}" for problem in error.problems)
    return found


def _listed(spec: ModelSpec, folder: Path, found: _Found, program: Program) -> _Listed:
    """The entry of a model, made where there is none; raises ConfigError when a `.env` cannot be read."""
    environment = program.environment.of(folder)
    for listed in found.models:
        if listed.spec == spec and listed.environment == environment:
            return listed
    found.models.append(_Listed(spec, environment))
    return found.models[-1]


def _may_ask(found: _Found, program: Program) -> bool:
    """Whether every model may be asked: those that somebody else described only where the user trusts them, or says so
    now."""
    trust = Trust(trust_store(program.folders))
    requests = Needs.of_servers((file for file in found.files if file.suite is not None), program).requests
    trusted = {model for request in requests if trust.covers_whole(request) for model in request.whole.models}
    asking = [listed.need for listed in found.models if needs_asking(listed.spec) and listed.need not in trusted]
    if not asking:
        return True
    warn("trusting the suites and the workbench.toml beside them allows this, for this time:")
    for need in dict.fromkeys(asking):
        warn(f"  ask the model {need}", program.secrets)
    if sys.stdin.isatty() and sys.stderr.isatty():
        ask("Ask them? [yes/no]")
        if sys.stdin.readline().strip().lower() in ("yes", "y"):
            return True
    warn("not trusted, nothing was asked: answer 'yes' on a terminal, or give --trust")
    return False


async def _check(models: Sequence[_Listed], program: Program) -> None:
    endpoints = Endpoints(program.secrets)

    async def check(listed: _Listed) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                listed.check = await endpoints.check(listed.spec, listed.environment)
        except TimeoutError:
            listed.check = CheckResult(False, f"{listed.spec.base_url} said nothing within {CHECK_TIMEOUT_S:g} s")

    try:
        await asyncio.gather(*map(check, models))
    finally:
        await endpoints.close()


def _lines(models: Sequence[_Listed], notes: Sequence[str], paint: Paint) -> Iterator[str]:
    for built_in in built_in_models():
        yield f"{paint(built_in.name, 'strong')}  {built_in.description}"
    for listed in models:
        spec = listed.spec
        set_ = f", which is {'set' if listed.key_is_set else 'not set'}" if spec.api_key_env else ""
        yield ""
        yield f"{paint(one_line(spec.name), 'strong')}  {spec.provider}: {one_line(spec.description)}{set_}"
        for fact in _facts(listed):
            yield paint(f"  {one_line(fact)}", "quiet")
        if listed.check is not None:
            said = f"{listed.check.mark} {one_line(listed.check.sentence)}"
            yield "  " + paint(said, "good" if listed.check.ok else "warn" if listed.check.answers else "bad")
    if notes:
        yield ""
    for note in notes:
        yield paint(f"▲ {note}", "warn")


def _facts(listed: _Listed) -> Iterator[str]:
    spec, price = listed.spec, listed.spec.price
    if spec.params:
        yield f"params {json_text(dict(spec.params))}"
    if price is not None:
        cached = f", ${price.cached_input:g} cached in" if price.cached_input is not None else ""
        yield f"${price.input:g} in{cached}, ${price.output:g} out per million tokens"
    limits = [f"{spec.concurrency} at a time"] if spec.concurrency is not None else []
    limits += [f"{spec.requests_per_minute:g} requests a minute"] if spec.requests_per_minute is not None else []
    if limits:
        yield ", ".join(limits)
    if spec.file is not None:
        yield f"from {spec.file}"
    if listed.named_by:
        yield f"named by {', '.join(listed.named_by)}"


def _as_json(models: Sequence[_Listed], notes: Sequence[str]) -> dict[str, object]:
    return {
        "report": "workbench models",
        "version": 1,
        "built_in": [{"name": model.name, "description": model.description} for model in built_in_models()],
        "models": [_model_as_json(listed) for listed in models],
        "notes": list(notes),
    }


def _model_as_json(listed: _Listed) -> dict[str, object]:
    spec, price, check = listed.spec, listed.spec.price, listed.check
    return {
        "name": spec.name,
        "provider": spec.provider,
        "base_url": spec.base_url,
        "model": spec.model,
        "api_key_env": spec.api_key_env,
        "key_is_set": listed.key_is_set if spec.api_key_env else None,
        "params": dict(spec.params),
        "price": {"input": price.input, "output": price.output, "cached_input": price.cached_input} if price else None,
        "concurrency": spec.concurrency,
        "requests_per_minute": spec.requests_per_minute,
        "read_timeout_s": spec.read_timeout_s,
        "legacy_auth": spec.legacy_auth,
        "origin": spec.origin,
        "file": str(spec.file) if spec.file is not None else None,
        "named_by": listed.named_by,
        "check": {"ok": check.ok, "answers": check.answers, "says": check.sentence} if check is not None else None,
    }
