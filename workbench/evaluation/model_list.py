"""Which models settings and suites name, how each is reached, and whether it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from workbench.config.models import ConfigError, ModelSpec, Preset
from workbench.config.program import Program
from workbench.dataclasses import dataclass, json_text
from workbench.evaluation.approval import Needs, Trust, needs_asking
from workbench.evaluation.plan import trust_store
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.providers.built_in import is_built_in
from workbench.providers.http.endpoints import CheckResult, Endpoints
from workbench.providers.model import ModelError
from workbench.suite.project import Search, find_suites
from workbench.suite.settings import judged_checks, models_named_by
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import ModelNeed

# Which of the known endpoints can be reached: those whose key is found, local servers that answer, and the models
# that each of them lists.

CONNECT_TIMEOUT_S = 1.0
"""For a server on this machine to accept a connection."""

LISTING_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class KnownEndpoint:
    """A known endpoint, the variables among which its key was looked for, and what it said.

    `models` are those that it lists, `None` if it was not asked or did not list any; `problem` says why it did not,
    where something answers.
    """

    preset: Preset
    environment: Mapping[str, str]
    models: tuple[str, ...] | None = None
    problem: str = ""

    @property
    def key_is_found(self) -> bool:
        """Whether the variable of its key has a value. A local server needs none."""
        variable = self.preset.api_key_env
        return variable is None or bool(self.environment.get(variable, "").strip())

    @property
    def is_reachable(self) -> bool:
        """Whether it can be used: its key is found or, for a server on this machine, it answered."""
        return self.models is not None or (not self.preset.is_local and self.key_is_found)

    @property
    def state(self) -> str:
        """What is known of it, in a few words."""
        preset = self.preset
        key = f"key found in {preset.api_key_env}" if self.key_is_found else f"no key: {preset.api_key_env} is not set"
        lists = "" if self.models is None else f"lists {counted(len(self.models), 'model')}"
        if preset.is_local:
            return f"answers at {preset.place}, {lists}" if lists else f"nothing answers at {preset.place}"
        return ", ".join(filter(None, (key, lists)))


def known_endpoints(
    program: Program, folders: Sequence[Path], presets: Sequence[Preset]
) -> tuple[list[KnownEndpoint], list[str]]:
    """Return the known endpoints, with the variables for the suites in one of the folders, the first that has the key;
    and what is wrong with files of variables. Reads files only."""
    environments: list[Mapping[str, str]] = []
    problems: list[str] = []
    for folder in folders:
        try:
            environments.append(program.environment.of(folder))
        except ConfigError as error:
            problems += error.problems
    own = program.environment.own
    endpoints = []
    for preset in presets:
        among = (KnownEndpoint(preset, environment) for environment in (*environments, own))
        endpoints.append(next((each for each in among if each.key_is_found), KnownEndpoint(preset, own)))
    return endpoints, list(dict.fromkeys(problems))


async def with_models(endpoint: KnownEndpoint, program: Program) -> KnownEndpoint:
    """Ask an endpoint which models it lists. One on this machine is first tried with a bare connection, which costs
    nothing where there is none. Never sends a key to another address than the preset's."""
    preset = endpoint.preset
    if preset.is_local and not await _accepts(preset.base_url):
        return replace(endpoint, models=None, problem="")
    endpoints = Endpoints(program.secrets)
    try:
        async with asyncio.timeout(LISTING_TIMEOUT_S):
            models = await endpoints.list_models(preset.spec(), endpoint.environment)
    except TimeoutError:
        problem = f"{preset.base_url} did not list its models within {LISTING_TIMEOUT_S:g} s"
        return replace(endpoint, models=None, problem=problem)
    except ModelError as error:
        return replace(endpoint, models=None, problem=str(error))
    finally:
        await endpoints.close()
    return replace(endpoint, models=models, problem="")


async def with_all_models(endpoints: Sequence[KnownEndpoint], program: Program) -> list[KnownEndpoint]:
    """Ask all endpoints that need no key, or whose key is found, at the same time."""

    async def asked(endpoint: KnownEndpoint) -> KnownEndpoint:
        return await with_models(endpoint, program) if endpoint.key_is_found else endpoint

    return list(await asyncio.gather(*map(asked, endpoints)))


async def _accepts(url: str) -> bool:
    """Return whether something on this machine accepts connections at an address."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True


def names_to_run(endpoint: KnownEndpoint) -> Iterator[tuple[str, str | None]]:
    """Yield the models that an endpoint lists, each with the name by which it can be run, `None` if it must be named in
    a `workbench.toml` first."""
    for model in endpoint.models or ():
        yield model, endpoint.preset.model_name(model)


# The result of one probe of an endpoint.

State = Literal["works", "repaired", "wrong", "unclear"]
"""`wrong` is what the endpoint did. `unclear` is what the model did, which another model might do better."""

_SIGNS: Mapping[State, str] = {
    "works": Status.PASSED.sign,
    "repaired": Status.ERROR.sign,
    "wrong": Status.FAILED.sign,
    "unclear": "?",
}


@dataclass(frozen=True)
class ProbeResult:
    """What one probe found: a short text, and what to do about it where something helps."""

    probe: str
    state: State
    finding: str
    advice: str | None = None

    @property
    def sign(self) -> str:
        return _SIGNS[self.state]

    def document(self) -> dict[str, object]:
        """Return the result as JSON has it."""
        return {"probe": self.probe, "state": self.state, "finding": self.finding, "advice": self.advice}


def advice_of(results: Iterable[ProbeResult]) -> list[str]:
    """Return what to do about results, each advice once."""
    return list(dict.fromkeys(result.advice for result in results if result.advice is not None))


_PRICES = ("input", "output", "cached_input")

CHECK_TIMEOUT_S = 40.0
"""For one endpoint; all are asked at the same time."""


@dataclass
class ListedModel:
    """A model, the variables that its key may be among, and the suites that name it; `probes` are the results of those
    that were sent to it."""

    spec: ModelSpec
    environment: Mapping[str, str]
    named_by: list[str] = field(default_factory=list)
    check: CheckResult | None = None
    probes: list[ProbeResult] = field(default_factory=list)

    @property
    def key_is_set(self) -> bool:
        return bool(self.spec.api_key_env and self.environment.get(self.spec.api_key_env, "").strip())

    @property
    def need(self) -> ModelNeed:
        return ModelNeed(self.spec.model, self.spec.base_url, self.spec.api_key_env)

    @property
    def facts(self) -> Iterator[str]:
        """How it is asked and what it costs, a line each, where it says so."""
        spec, price = self.spec, self.spec.price
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
        if self.named_by:
            yield f"named by {', '.join(self.named_by)}"

    def document(self) -> dict[str, object]:
        """Return the model as JSON has it."""
        spec, price, check = self.spec, self.spec.price, self.check
        return {
            "name": spec.name,
            "provider": spec.provider,
            "base_url": spec.base_url,
            "model": spec.model,
            "api_key_env": spec.api_key_env,
            "key_is_set": self.key_is_set if spec.api_key_env else None,
            "params": dict(spec.params),
            "price": {name: getattr(price, name) for name in _PRICES} if price else None,
            "concurrency": spec.concurrency,
            "requests_per_minute": spec.requests_per_minute,
            "read_timeout_s": spec.read_timeout_s,
            "legacy_auth": spec.legacy_auth,
            "thoughts": spec.thoughts,
            "origin": spec.origin,
            "file": str(spec.file) if spec.file is not None else None,
            "named_by": self.named_by,
            "check": {"ok": check.ok, "answers": check.answers, "says": check.sentence} if check is not None else None,
            "tools": [probe.document() for probe in self.probes] or None,
        }


@dataclass
class FoundModels:
    """Everything that was found, and what is wrong with it."""

    models: list[ListedModel] = field(default_factory=list)
    files: list[SuiteFile] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)


def chosen_models(names: Sequence[str], paths: Sequence[Path], program: Program, search: Search) -> FoundModels:
    """The models of `--model`, as they are reached from each of the paths."""
    found = FoundModels(files=[load_suite(path) for path in find_suites(paths, search)])
    for folder in dict.fromkeys((path if path.is_dir() else path.parent).absolute() for path in paths):
        for name in names:
            if is_built_in(name):
                continue
            try:
                _listed(program.models.resolve(name, folder, by_suite=False), folder, found, program)
            except ConfigError as error:
                found.problems |= dict.fromkeys(error.problems)
    return found


def named_models(paths: Sequence[Path], program: Program, search: Search) -> FoundModels:
    """The models that settings and suites at the paths name, and those that judge."""
    found = FoundModels(files=[load_suite(path) for path in find_suites(paths, search)])
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
            found.problems[f"{file.path} has problems and was skipped: see 'workbench validate'"] = None
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


def _listed(spec: ModelSpec, folder: Path, found: FoundModels, program: Program) -> ListedModel:
    """The entry of a model, made where there is none; raises ConfigError when a `.env` cannot be read."""
    environment = program.environment.of(folder)
    for listed in found.models:
        if listed.spec == spec and listed.environment == environment:
            return listed
    found.models.append(ListedModel(spec, environment))
    return found.models[-1]


def untrusted(found: FoundModels, program: Program, trust: Trust | None = None) -> tuple[ModelNeed, ...]:
    """The models that somebody else than the user described, and that the user does not trust yet; each once."""
    if trust is None:
        trust = Trust(trust_store(program.folders))
    requests = Needs.of_servers((file for file in found.files if file.suite is not None), program).requests
    trusted = {model for request in requests if trust.covers_whole(request) for model in request.whole.models}
    needs = (listed.need for listed in found.models if needs_asking(listed.spec))
    return tuple(dict.fromkeys(need for need in needs if need not in trusted and not trust.covers_model(need)))


async def check_models(models: Sequence[ListedModel], program: Program) -> None:
    """Ask each model at the same time whether it answers, and note the result in it."""
    endpoints = Endpoints(program.secrets)

    async def check(listed: ListedModel) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                listed.check = await endpoints.check(listed.spec, listed.environment)
        except TimeoutError:
            listed.check = CheckResult(False, f"{listed.spec.base_url} did not answer within {CHECK_TIMEOUT_S:g} s")

    try:
        await asyncio.gather(*map(check, models))
    finally:
        await endpoints.close()
