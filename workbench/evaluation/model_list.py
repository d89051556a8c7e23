"""The models that settings and suites name: how to reach them, and whether they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from workbench.config.agents import agent_named
from workbench.config.clouds import SETTINGS_OF
from workbench.config.folders import folder_of
from workbench.config.models import (
    ConfigError,
    ModelSpec,
    Preset,
)
from workbench.config.program import Program
from workbench.config.request_settings import settings_text, variables_of
from workbench.dataclasses import dataclass, json_text
from workbench.evaluation.approval import Needs, Trust, model_need, needs_approval
from workbench.evaluation.trust import trust_store
from workbench.grading.status import Status
from workbench.numerals import counted, seconds_text, setting_text
from workbench.providers.built_in import is_built_in
from workbench.providers.http.checks import CheckResult
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import ModelError
from workbench.suite.project import Search, find_suites
from workbench.suite.settings import all_model_names, judged_checks
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import ModelNeed

CONNECT_TIMEOUT_S = 1.0
"""The time, in seconds, for a server on this machine to accept a connection."""

LISTING_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class KnownEndpoint:
    """A known endpoint, the environment that may hold its key, and what the endpoint answered.

    `models` are the models that the endpoint lists. `models` is `None` if the endpoint was not asked or listed nothing.
    In the second case, `problem` may say why."""

    preset: Preset
    environment: Mapping[str, str]
    models: tuple[str, ...] | None = None
    problem: str = ""

    @property
    def key_is_found(self) -> bool:
        """Whether the variable of the key has a value, or no key is needed."""
        variable = self.preset.api_key_env
        return variable is None or bool(self.environment.get(variable, "").strip())

    @property
    def is_reachable(self) -> bool:
        """Whether the endpoint can be used.

        A server on this machine must have answered. Any other endpoint needs a key."""
        return self.models is not None or (not self.preset.is_local and self.key_is_found)

    @property
    def state(self) -> str:
        """The state of the endpoint in a few words."""
        preset, facts = self.preset, []
        if preset.is_local:
            if self.models is None:
                return f"nothing answers at {preset.place}"
            facts.append(f"answers at {preset.place}")
        elif self.key_is_found:
            facts.append(f"key found in {preset.api_key_env}")
        else:
            facts.append(f"no key: {preset.api_key_env} is not set")
        if self.models is not None:
            facts.append(f"lists {counted(len(self.models), 'model')}")
        return ", ".join(facts)


def known_endpoints(
    program: Program, folders: Sequence[Path], presets: Sequence[Preset]
) -> tuple[list[KnownEndpoint], list[str]]:
    """Return the known endpoints, and problems with `.env` files. No endpoint is asked.

    If several folders have suites, an endpoint gets the variables of the first folder in which its key is set."""
    environments: list[Mapping[str, str]] = []
    problems: list[str] = []
    for folder in folders:
        try:
            environments.append(program.environment.of(folder))
        except ConfigError as error:
            problems += error.problems
    own = program.environment.variables
    endpoints = []
    for preset in presets:
        endpoint = KnownEndpoint(preset, own)
        for environment in (*environments, own):
            endpoint = KnownEndpoint(preset, environment)
            if endpoint.key_is_found:
                break
        endpoints.append(endpoint)
    return endpoints, list(dict.fromkeys(problems))


async def endpoint_with_models(endpoint: KnownEndpoint, program: Program) -> KnownEndpoint:
    """Ask an endpoint for its models, and return the endpoint with them.

    A server on this machine is first tested by opening a connection, which fails at once if no server is running. The
    key is sent only to the preset's address."""
    preset = endpoint.preset
    if preset.is_local and not await _accepts_connections(preset.base_url):
        return replace(endpoint, models=None, problem="")
    endpoints = Endpoints(program.secrets)
    try:
        async with asyncio.timeout(LISTING_TIMEOUT_S):
            models = await endpoints.list_models(preset.spec(), endpoint.environment)
    except TimeoutError:
        problem = f"{preset.base_url} did not list its models within {seconds_text(LISTING_TIMEOUT_S)}"
        return replace(endpoint, models=None, problem=problem)
    except ModelError as error:
        return replace(endpoint, models=None, problem=str(error))
    finally:
        await endpoints.close()
    return replace(endpoint, models=models, problem="")


async def with_all_models(endpoints: Sequence[KnownEndpoint], program: Program) -> list[KnownEndpoint]:
    """Ask all endpoints whose key is known for their models, all at the same time.

    Returns all endpoints, including those that were not asked."""

    async def asked(endpoint: KnownEndpoint) -> KnownEndpoint:
        if endpoint.key_is_found:
            return await endpoint_with_models(endpoint, program)
        return endpoint

    return list(await asyncio.gather(*map(asked, endpoints)))


async def _accepts_connections(url: str) -> bool:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True


def runnable_model_names(endpoint: KnownEndpoint) -> Iterator[tuple[str, str | None]]:
    """Yield the models that an endpoint lists, each with the name by which a run can use it.

    The name is `None` if a `workbench.toml` must define the model first."""
    for model in endpoint.models or ():
        yield model, endpoint.preset.model_name(model)


ProbeState = Literal["works", "repaired", "wrong", "unclear"]
"""The outcome of a probe. `wrong` is the endpoint's fault. `unclear` may be the model's fault, and another model may do
better."""

_SIGNS: Mapping[ProbeState, str] = {
    "works": Status.PASSED.sign,
    "repaired": Status.ERROR.sign,
    "wrong": Status.FAILED.sign,
    "unclear": "?",
}


@dataclass(frozen=True)
class ProbeResult:
    """The result of one probe (a test request) of a model, with advice if there is any."""

    probe: str
    state: ProbeState
    finding: str
    advice: str | None = None

    @property
    def sign(self) -> str:
        return _SIGNS[self.state]

    def document(self) -> dict[str, object]:
        return {"probe": self.probe, "state": self.state, "finding": self.finding, "advice": self.advice}


def advice_of(results: Iterable[ProbeResult]) -> list[str]:
    """Return the advice in the results, each piece of advice once."""
    given: dict[str, None] = {}
    for result in results:
        if result.advice is not None:
            given[result.advice] = None
    return list(given)


PRICES = ("input", "output", "cached_input")

CHECK_TIMEOUT_S = 40.0
"""The time limit for one endpoint, in seconds. All endpoints are asked at the same time."""


@dataclass
class ListedModel:
    """A model in a list of models: its settings, the environment that may hold its key, and the results of its tests.

    `named_by` holds the paths of suites that name the model."""

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
        return model_need(self.spec)

    @property
    def facts(self) -> Iterator[str]:
        """Lines about the model's headers, parameters, price, limits and origin.

        Settings without a value are left out."""
        spec, price = self.spec, self.spec.price
        for kind, settings in (("headers", spec.headers), ("query", spec.query)):
            if settings:
                yield f"{kind} {settings_text(settings)}{self._missing_in(settings)}"
        if spec.params:
            yield f"params {json_text(dict(spec.params))}"
        if price is not None:
            prices = [f"${setting_text(price.input)} in"]
            if price.cached_input is not None:
                prices.append(f"${setting_text(price.cached_input)} cached in")
            prices.append(f"${setting_text(price.output)} out per million tokens")
            yield ", ".join(prices)
        limits = []
        if spec.concurrency is not None:
            limits.append(f"{spec.concurrency} at a time")
        if spec.requests_per_minute is not None:
            limits.append(f"{setting_text(spec.requests_per_minute)} requests a minute")
        if limits:
            yield ", ".join(limits)
        if spec.file is not None:
            yield f"from {spec.file}"
        if self.named_by:
            yield f"named by {', '.join(self.named_by)}"

    def _missing_in(self, settings: Mapping[str, str]) -> str:
        missing = [name for name in variables_of(settings) if not self.environment.get(name, "").strip()]
        if not missing:
            return ""
        return f", but {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"

    def document(self) -> dict[str, object]:
        spec = self.spec
        checked = price = key_is_set = file = None
        if self.check is not None:
            checked = {"ok": self.check.ok, "answers": self.check.answers, "says": self.check.sentence}
        if spec.price is not None:
            price = {name: getattr(spec.price, name) for name in PRICES}
        if spec.api_key_env:
            key_is_set = self.key_is_set
        if spec.file is not None:
            file = str(spec.file)
        return {
            "name": spec.name,
            "provider": spec.provider,
            "base_url": spec.base_url,
            "model": spec.model,
            "api_key_env": spec.api_key_env,
            "key_is_set": key_is_set,
            "key_command": list(spec.key_command) or None,
            "headers": dict(spec.headers),
            "query": dict(spec.query),
            "params": dict(spec.params),
            "price": price,
            "concurrency": spec.concurrency,
            "requests_per_minute": spec.requests_per_minute,
            "read_timeout_s": spec.read_timeout_s,
            "legacy_auth": spec.legacy_auth,
            "thoughts": spec.thoughts,
            "images": spec.accepts_images,
            "audio": spec.audio,
            "cloud": _cloud_document(spec),
            "origin": spec.origin,
            "file": file,
            "named_by": self.named_by,
            "check": checked,
            "tools": [probe.document() for probe in self.probes] or None,
        }


def _cloud_document(spec: ModelSpec) -> dict[str, object] | None:
    if spec.cloud is None or spec.cloud_name is None:
        return None
    document: dict[str, object] = {}
    for name in SETTINGS_OF[spec.cloud_name]:
        document[name] = getattr(spec.cloud, name)
    if spec.place is not None:
        found = {"region": spec.place.region, "project": spec.place.project}
        document |= {name: value for name, value in found.items() if name in document and value}
    return {**document, "source": spec.credentials or None, "problem": spec.problem}


@dataclass
class FoundModels:
    """Models found in settings and suites, the suites that were read, and problems with settings and suites."""

    models: list[ListedModel] = field(default_factory=list)
    files: list[SuiteFile] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)


def chosen_models(names: Sequence[str], paths: Sequence[Path], program: Program, search: Search) -> FoundModels:
    """Find the models that `--model` names.

    If a name has different settings in several folders of suites, each of these models is listed."""
    found = FoundModels(files=list(map(load_suite, find_suites(paths, search))))
    for folder in _folders(paths):
        for name in names:
            # A built-in model has no endpoint to check.
            if is_built_in(name) or agent_named(name) is not None:
                continue
            try:
                _listed(program.models.resolve(name, folder, by_suite=False), folder, found, program)
            except ConfigError as error:
                # Several folders may share a settings file, and report the same problem with it.
                found.problems |= dict.fromkeys(error.problems)
    return found


def _folders(paths: Iterable[Path]) -> dict[Path, None]:
    return dict.fromkeys(map(Path.absolute, map(folder_of, paths)))


def named_models(paths: Sequence[Path], program: Program, search: Search) -> FoundModels:
    """Find the models and judges that the settings and suites at the paths name."""
    found = FoundModels(files=list(map(load_suite, find_suites(paths, search))))
    for folder in _folders([*paths, *(file.path for file in found.files)]):
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
        names = list(all_model_names(file.suite))
        for case in file.suite.cases:
            for check in judged_checks(file.suite, case):
                if check.model:
                    names.append(check.model)
        for name in dict.fromkeys(names):
            if is_built_in(name) or agent_named(name) is not None:
                continue
            try:
                folder = file.path.absolute().parent
                spec = program.models.resolve(name, folder, by_suite=True)
                _listed(spec, folder, found, program).named_by.append(str(file.path))
            except ConfigError as error:
                found.problems |= dict.fromkeys(f"{file.path}: {problem}" for problem in error.problems)
    return found


def _listed(spec: ModelSpec, folder: Path, models: FoundModels, program: Program) -> ListedModel:
    """Return the entry of a model in `models`. A new model is added.

    Raises ConfigError for an unreadable `.env`."""
    environment = program.environment.of(folder)
    for listed in models.models:
        # The same model may be listed twice, if two folders have different keys for it.
        if listed.spec == spec and listed.environment == environment:
            return listed
    models.models.append(ListedModel(spec, environment))
    return models.models[-1]


def check_refusal(
    known: ModelSpec | None, spec: ModelSpec, files: Iterable[SuiteFile], program: Program, trust: Trust | None = None
) -> str | None:
    """Return why a model that the user is editing must not be called for a test; `None` if it may be called.

    The model's saved settings are `known`. If they come from a project that the user does not trust, the test call must
    not run a command or send the value of a variable."""
    if known is None or not needs_approval(known):
        return None
    # The test call can be harmful only if it runs a command or sends the value of a variable. Fetching a cloud's
    # credentials may run a program too.
    if not (spec.key_command or spec.variables or spec.cloud):
        return None
    if known.problem is None and not untrusted_models(FoundModels([ListedModel(known, {})], [*files]), program, trust):
        return None
    return f"{known.name} is in a workbench.toml that you do not trust yet: run a case on it, which asks you"


def untrusted_models(models: FoundModels, program: Program, trust: Trust | None = None) -> tuple[ModelNeed, ...]:
    """Return the models that suites and projects define and that the user has not approved."""
    if trust is None:
        trust = Trust(trust_store(program.folders))
    requests = Needs.of_servers((file for file in models.files if file.suite is not None), program).requests
    trusted: set[ModelNeed] = set()
    for request in requests:
        if trust.covers_whole(request):
            trusted.update(request.all_needs.models)
    # Several names may refer to the same model, which is listed once.
    left: dict[ModelNeed, None] = {}
    for listed in models.models:
        need = listed.need
        if listed.spec.problem is not None:
            continue
        if needs_approval(listed.spec) and need not in trusted and not trust.covers_model(need):
            left[need] = None
    return tuple(left)


async def check_models(models: Sequence[ListedModel], program: Program) -> None:
    """Check all models at the same time, and store each result with its model."""
    endpoints = Endpoints(program.secrets)

    async def check(model: ListedModel) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                model.check = await endpoints.check(model.spec, model.environment)
        except TimeoutError:
            problem = f"{model.spec.base_url} did not answer within {seconds_text(CHECK_TIMEOUT_S)}"
            model.check = CheckResult(False, problem)

    try:
        await asyncio.gather(*map(check, models))
    finally:
        await endpoints.close()
