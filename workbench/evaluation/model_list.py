"""The models that settings and suites name: how each is reached, whether it answers, and how one is added."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from workbench.config.clouds import CLOUDS, SETTINGS_OF, CloudSettings, default_api, is_signed_header, setting_problems
from workbench.config.folders import SETTINGS_NAME, folder_of, project_file, project_folder
from workbench.config.models import (
    OWN_URLS,
    PROVIDERS,
    THOUGHTS,
    ConfigError,
    ModelSpec,
    Preset,
    Price,
    Provider,
    Thoughts,
    checked_key_variable,
    key_header,
    usual_key_variable,
)
from workbench.config.program import Program
from workbench.config.request_checks import checked_address, checked_command, checked_headers, joined_query
from workbench.config.request_settings import settings_of, settings_text, variables_of, words_of
from workbench.config.settings_file import checked_name, settings_in
from workbench.dataclasses import dataclass, json_text
from workbench.evaluation.approval import Needs, Trust, model_need, needs_asking
from workbench.evaluation.trust import trust_store
from workbench.grading.status import Status
from workbench.numerals import counted, seconds_text, setting_text
from workbench.providers.built_in import is_built_in
from workbench.providers.http.endpoints import CheckResult, Endpoints
from workbench.providers.model import ModelError
from workbench.suite.files import SavingError, save, state_of
from workbench.suite.project import Search, find_suites
from workbench.suite.settings import judged_checks, models_named_by
from workbench.suite.suite_file import SuiteFile, load_suite
from workbench.suite.trust import ModelNeed

CONNECT_TIMEOUT_S = 1.0
"""Seconds for a server on this machine to accept a connection."""

LISTING_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class KnownEndpoint:
    """A known endpoint, the variables searched for its key, and its response.

    `models` are the models that it lists, `None` if it was not asked or lists none; `problem` is the reason that it
    gave.
    """

    preset: Preset
    environment: Mapping[str, str]
    models: tuple[str, ...] | None = None
    problem: str = ""

    @property
    def key_is_found(self) -> bool:
        """Whether the variable of the key has a value; true for a local server, which needs no key."""
        variable = self.preset.api_key_env
        return variable is None or bool(self.environment.get(variable, "").strip())

    @property
    def is_reachable(self) -> bool:
        """Whether the endpoint can be used: its key is found or, for a server on this machine, it answered."""
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
    """Return the known endpoints, and problems with files of variables; only files are read.

    Each endpoint has the variables of the first folder of a suite in which its key is found.
    """
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
        endpoint = KnownEndpoint(preset, own)
        for environment in (*environments, own):
            endpoint = KnownEndpoint(preset, environment)
            if endpoint.key_is_found:
                break
        endpoints.append(endpoint)
    return endpoints, list(dict.fromkeys(problems))


async def with_models(endpoint: KnownEndpoint, program: Program) -> KnownEndpoint:
    """Return an endpoint with the models that it lists.

    A local server is first tried with a bare connection, which fails at once if nothing listens. The key is sent to no
    other address than the preset's.
    """
    preset = endpoint.preset
    if preset.is_local and not await _accepts(preset.base_url):
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
    """Return all endpoints with their models, asked at the same time if they need no key or it is found."""

    async def asked(endpoint: KnownEndpoint) -> KnownEndpoint:
        if endpoint.key_is_found:
            return await with_models(endpoint, program)
        return endpoint

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
    """Yield the models that an endpoint lists, each with the name by which it can be run.

    The name is `None` if the model must first be named in a `workbench.toml`.
    """
    for model in endpoint.models or ():
        yield model, endpoint.preset.model_name(model)


State = Literal["works", "repaired", "wrong", "unclear"]
"""`wrong` is the endpoint's fault; `unclear` may be the model's, and another model may do better."""

_SIGNS: Mapping[State, str] = {
    "works": Status.PASSED.sign,
    "repaired": Status.ERROR.sign,
    "wrong": Status.FAILED.sign,
    "unclear": "?",
}


@dataclass(frozen=True)
class ProbeResult:
    """The finding of one probe, with advice if there is any."""

    probe: str
    state: State
    finding: str
    advice: str | None = None

    @property
    def sign(self) -> str:
        return _SIGNS[self.state]

    def document(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        return {"probe": self.probe, "state": self.state, "finding": self.finding, "advice": self.advice}


def advice_of(results: Iterable[ProbeResult]) -> list[str]:
    """Return the advice of all results, each once."""
    given: dict[str, None] = {}
    for result in results:
        if result.advice is not None:
            given[result.advice] = None
    return list(given)


_PRICES = ("input", "output", "cached_input")

CHECK_TIMEOUT_S = 40.0
"""Seconds for one endpoint; all are asked at the same time."""


@dataclass
class ListedModel:
    """A model, the variables searched for its key, the suites that name it, and the results of its probes."""

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
        """Lines on the parameters, the price, the limits and the origin of the model, as far as it has them."""
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
        """Return which variables of headers or a query are not set, as the end of a line."""
        missing = [name for name in variables_of(settings) if not self.environment.get(name, "").strip()]
        if not missing:
            return ""
        return f", but {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"

    def document(self) -> dict[str, object]:
        """Return the model as a JSON object."""
        spec = self.spec
        checked = price = key_is_set = file = None
        if self.check is not None:
            checked = {"ok": self.check.ok, "answers": self.check.answers, "says": self.check.sentence}
        if spec.price is not None:
            price = {name: getattr(spec.price, name) for name in _PRICES}
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
            "cloud": _cloud_document(spec),
            "origin": spec.origin,
            "file": file,
            "named_by": self.named_by,
            "check": checked,
            "tools": [probe.document() for probe in self.probes] or None,
        }


def _cloud_document(spec: ModelSpec) -> dict[str, object] | None:
    """Return the settings of a model at a cloud as a JSON object; `None` for a model elsewhere."""
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
    """The models that were found, the suites that were read, and problems with either."""

    models: list[ListedModel] = field(default_factory=list)
    files: list[SuiteFile] = field(default_factory=list)
    problems: dict[str, None] = field(default_factory=dict)


def chosen_models(names: Sequence[str], paths: Sequence[Path], program: Program, search: Search) -> FoundModels:
    """Return the models of `--model`, as they are reached from each of the paths."""
    found = FoundModels(files=list(map(load_suite, find_suites(paths, search))))
    for folder in _folders(paths):
        for name in names:
            # A built-in model has no endpoint that could be checked.
            if is_built_in(name):
                continue
            try:
                _listed(program.models.resolve(name, folder, by_suite=False), folder, found, program)
            except ConfigError as error:
                # Several folders may report the same problem of one settings file.
                found.problems |= dict.fromkeys(error.problems)
    return found


def _folders(paths: Iterable[Path]) -> dict[Path, None]:
    """Return the folders of paths, each once."""
    return dict.fromkeys(map(Path.absolute, map(folder_of, paths)))


def named_models(paths: Sequence[Path], program: Program, search: Search) -> FoundModels:
    """Return the models that settings and suites at the paths name, and those that judge."""
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
        names = list(models_named_by(file.suite))
        for case in file.suite.cases:
            for check in judged_checks(file.suite, case):
                if check.model:
                    names.append(check.model)
        for name in dict.fromkeys(names):
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
    """Return the entry of a model, which is created if it is new; raise ConfigError for an unreadable `.env`."""
    environment = program.environment.of(folder)
    for listed in found.models:
        # The same model with another key is another entry.
        if listed.spec == spec and listed.environment == environment:
            return listed
    found.models.append(ListedModel(spec, environment))
    return found.models[-1]


def why_not_checked(
    known: ModelSpec | None, spec: ModelSpec, files: Iterable[SuiteFile], program: Program, trust: Trust | None = None
) -> str | None:
    """Return why a changed model is not asked; `None` if it may be.

    A project's `workbench.toml` that is not trusted must neither run a command nor send a value of a variable.
    """
    if known is None or not needs_asking(known) or not (spec.key_command or spec.variables):
        return None
    if not untrusted(FoundModels([ListedModel(known, {})], [*files]), program, trust):
        return None
    return f"{known.name} stands in a workbench.toml that you do not trust yet: run a case on it, which asks"


def untrusted(found: FoundModels, program: Program, trust: Trust | None = None) -> tuple[ModelNeed, ...]:
    """Return the models that a suite or a project described, without those that the user trusts."""
    if trust is None:
        trust = Trust(trust_store(program.folders))
    requests = Needs.of_servers((file for file in found.files if file.suite is not None), program).requests
    trusted: set[ModelNeed] = set()
    for request in requests:
        if trust.covers_whole(request):
            trusted.update(request.whole.models)
    # Each need once: several names may stand for the same model.
    left: dict[ModelNeed, None] = {}
    for listed in found.models:
        need = listed.need
        if listed.spec.problem is not None:
            continue
        if needs_asking(listed.spec) and need not in trusted and not trust.covers_model(need):
            left[need] = None
    return tuple(left)


async def check_models(models: Sequence[ListedModel], program: Program) -> None:
    """Check all models at the same time, and store the result in each."""
    endpoints = Endpoints(program.secrets)

    async def check(listed: ListedModel) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                listed.check = await endpoints.check(listed.spec, listed.environment)
        except TimeoutError:
            problem = f"{listed.spec.base_url} did not answer within {seconds_text(CHECK_TIMEOUT_S)}"
            listed.check = CheckResult(False, problem)

    try:
        await asyncio.gather(*map(check, models))
    finally:
        await endpoints.close()


Owner = Literal["project", "user"]
"""The owner of a `workbench.toml`: the project, beside its suites, or the user."""

OWNERS: tuple[Owner, ...] = get_args(Owner)

CloudField = Literal["api", "resource", "api_version", "region", "project", "profile", "endpoint", "credentials"]
CLOUD_FIELDS: tuple[CloudField, ...] = get_args(CloudField)
"""The settings of models at clouds."""

Field = (
    Literal[
        "provider", "base_url", "model", "api_key_env", "key_command", "headers", "query", "name", "price", "thoughts"
    ]
    | CloudField
)

_Value = TypeVar("_Value")

_BOM = "\ufeff"

_TYPED = (
    *("provider", "base_url", "model", "api_key_env", "key_command", "headers", "query", "price", "thoughts"),
    *CLOUD_FIELDS,
)
"""The settings of a model that the user can type."""


class AddingError(Exception):
    """A model that cannot be added; `problems` has one message per field."""

    def __init__(self, problems: dict[Field, str]) -> None:
        super().__init__("; ".join(f"{field} {problem}" for field, problem in problems.items()))
        self.problems = problems


class NameTakenError(ConfigError):
    """A `workbench.toml` has a model of that name already."""


@dataclass(frozen=True)
class TypedModel:
    """A model as the user typed it, each field as text; an empty field has its default.

    `price` is US dollars per million tokens, as `INPUT, OUTPUT` or `INPUT, OUTPUT, CACHED INPUT`. `headers` and `query`
    are words `NAME=VALUE`, and `key_command` the words of a command, quoted as in a shell. The settings from `api` on
    are those of clouds.
    """

    provider: str = "openai"
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    name: str = ""
    price: str = ""
    thoughts: str = THOUGHTS[0]
    headers: str = ""
    query: str = ""
    key_command: str = ""
    api: str = ""
    resource: str = ""
    api_version: str = ""
    region: str = ""
    project: str = ""
    profile: str = ""
    endpoint: str = ""
    credentials: str = ""

    @classmethod
    def of_preset(cls, preset: Preset, model: str = "") -> TypedModel:
        """Return a model at a known endpoint."""
        return cls(preset.provider, preset.base_url, model, preset.api_key_env or "", usual_name(preset, model))

    @classmethod
    def of_spec(cls, spec: ModelSpec) -> TypedModel:
        """Return a model as the user could have typed it."""
        typed = ""
        if (price := spec.price) is not None:
            typed = ", ".join(map(setting_text, _given_prices(price).values()))
        url, key = spec.base_url, spec.api_key_env
        if spec.place is not None:
            url, key = spec.place.written_url, spec.place.written_key
        return cls(
            spec.provider,
            url,
            spec.model,
            key or "",
            spec.name,
            typed,
            spec.thoughts,
            settings_text(spec.headers),
            settings_text(spec.query),
            spec.command_text,
            **_cloud_settings(spec),
        )

    def spec(self, owner: Owner = "user") -> ModelSpec:
        """Return the specification of the model; raise AddingError with the problems of all fields."""
        problems: dict[Field, str] = {}

        # All fields are checked, so that a form can show every problem at once.
        def checked(field: Field, check: Callable[[str], _Value], otherwise: _Value) -> _Value:
            try:
                return check(getattr(self, field).strip())
            except ValueError as error:
                problems[field] = str(error)
                return otherwise

        provider = checked("provider", _provider, PROVIDERS[0])
        no_query: Mapping[str, str] = {}
        base_url, of_address = checked("base_url", lambda text: _address(text, provider), ("", no_query))
        query = checked("query", lambda text: joined_query(of_address, settings_of(text)), no_query)
        headers = checked("headers", lambda text: checked_headers(settings_of(text)), no_query)
        no_command: tuple[str, ...] = ()
        command = checked("key_command", _key_command, no_command)
        variable = checked("api_key_env", _key_variable, None)
        model = checked("model", _model, "")
        name = checked("name", self._name_of, "")
        price = checked("price", price_of, None)
        thoughts = checked("thoughts", _thoughts, THOUGHTS[0])
        cloud = self._cloud(provider, model, problems)
        has_key_header = key_header(provider, legacy_auth=False) in map(str.lower, headers)
        if command and variable:
            problems["key_command"] = f"gives the key that {variable} holds too: leave one of them out"
        elif has_key_header and (command or variable):
            problems["headers"] = "have an 'authorization', which holds the key: leave it or the key out"
        elif provider in CLOUDS and any(map(is_signed_header, headers)):
            problems["headers"] = "have one that the SDK of the cloud sets: leave it out"
        if problems:
            raise AddingError(problems)
        if not (variable or command or has_key_header):
            variable = usual_key_variable(base_url)
        return ModelSpec(
            name,
            provider,
            model,
            base_url,
            variable,
            price=price,
            thoughts=thoughts,
            headers=headers,
            query=query,
            key_command=command,
            origin=owner,
            cloud=cloud,
        )

    def _cloud(self, provider: Provider, model: str, problems: dict[Field, str]) -> CloudSettings | None:
        """Return the settings of a cloud, and add their problems; `None` if the provider is none."""
        typed: dict[CloudField, str] = {}
        for name in CLOUD_FIELDS:
            if text := getattr(self, name).strip():
                typed[name] = text
        cloud = next((known for known in CLOUDS if known == provider), None)
        for wrong, problem in setting_problems(cloud, typed):
            problems[wrong] = problem
        if cloud is None or problems:
            return None
        given: dict[str, Any] = {"api": default_api(cloud, model)}
        for name, text in typed.items():
            given[name] = text
        return CloudSettings(**given)

    def _name_of(self, typed: str) -> str:
        """Return the typed name, or the usual name of the model.

        A missing model is reported for its own field alone.
        """
        name = typed or usual_name(None, self.model.strip())
        if not name and not self.model.strip():
            return ""
        return checked_name(name)


def usual_name(preset: Preset | None, model: str) -> str:
    """Return a name for a model in a `workbench.toml`: the last part of the endpoint's own name for it."""
    last = model.rpartition("/")[2]
    name = re.sub(r"[^\w.-]", "-", last).strip("-")
    # The built-in model is called offline.
    if preset is not None and model and name in ("", "offline"):
        return f"{preset.name}-{name}".strip("-")
    return name


def _address(text: str, provider: Provider) -> tuple[str, Mapping[str, str]]:
    if not text:
        return OWN_URLS.get(provider, ""), {}
    return checked_address(text)


def _key_command(text: str) -> tuple[str, ...]:
    if not text:
        return ()
    return checked_command(words_of(text))


def _key_variable(text: str) -> str | None:
    if not text:
        return None
    return checked_key_variable(text)


def _provider(text: str) -> Provider:
    for provider in PROVIDERS:
        if provider == text:
            return provider
    raise ValueError(f"must be one of {', '.join(PROVIDERS)}")


def _thoughts(text: str) -> Thoughts:
    for known in THOUGHTS:
        if known == (text or THOUGHTS[0]):
            return known
    raise ValueError(f"must be one of {', '.join(THOUGHTS)}")


def _model(text: str) -> str:
    if not text:
        raise ValueError("is missing: write the model's name at its endpoint")
    if not text.isprintable():
        raise ValueError("must not contain control characters")
    return text


def price_of(text: str) -> Price | None:
    """Return the price that a text has; `None` for an empty text. Raises ValueError."""
    if not text:
        return None
    try:
        numbers = [float(part.strip().removeprefix("$")) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(0 <= number < float("inf") for number in numbers):
        raise ValueError(
            "must be US dollars per million tokens, input and output, such as 0.15, 0.6; those read from a cache third"
        )
    return Price(*numbers)


def settings_file(program: Program, folder: Path, owner: Owner) -> Path:
    """Return the `workbench.toml` of the user, or of the project of the suites in a folder; it need not exist."""
    if owner == "user":
        return program.folders.config / SETTINGS_NAME
    home = program.environment.home
    return project_file(folder, home) or project_folder(folder, home) / SETTINGS_NAME


def usual_owner(program: Program, folder: Path) -> Owner:
    """Return the default owner of a new model: the project if it has a `workbench.toml`, or else the user."""
    if project_file(folder, program.environment.home) is not None:
        return "project"
    return "user"


async def check_typed(spec: ModelSpec, folder: Path, program: Program) -> CheckResult:
    """Return whether the endpoint of a typed model answers, accepts the key and has the model.

    Raises ConfigError if a `.env` cannot be read.
    """
    listed = ListedModel(program.models.located(spec, folder), program.environment.of(folder))
    await check_models([listed], program)
    assert listed.check is not None
    return listed.check


def check_typed_now(spec: ModelSpec, folder: Path, program: Program) -> CheckResult:
    """Return the result of `check_typed`, run on an event loop of its own."""
    return asyncio.run(check_typed(spec, folder, program))


def check_name_is_free(name: str, folder: Path, program: Program) -> None:
    """Raise ConfigError if a `workbench.toml` of a folder has a model of that name, or cannot be used."""
    for known in program.models.named(folder):
        if known.name == name:
            raise NameTakenError(
                f"{known.file} already names a model {name!r}: choose another name, or change that model"
            )


def named_model(name: str, folder: Path, program: Program) -> ModelSpec | None:
    """Return the model of that name in a `workbench.toml` of a folder; raise ConfigError if one cannot be used."""
    for known in program.models.named(folder):
        if known.name == name:
            return known
    return None


def owner_of(known: ModelSpec) -> Owner:
    """Return the owner of the `workbench.toml` that names a model."""
    if known.origin == "project":
        return "project"
    return "user"


def change_model(known: ModelSpec, spec: ModelSpec) -> Path:
    """Change a `known` model in its `workbench.toml`, and return the file.

    Comments, other settings and the rest of the file stay as they are. Raises ConfigError if the file cannot be read
    or written.
    """
    from workbench.suite.toml_edit import CannotEditError, edited

    file = known.file
    assert file is not None
    try:
        before, content = state_of(file), file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    # A file with errors is refused before anything is changed in it.
    settings_in(content, file, known.origin)
    text = content.decode("utf-8")
    mark = ""
    # tomllib rejects a byte order mark, which editors on Windows write.
    if text.startswith(_BOM):
        mark = _BOM
    old = tomllib.loads(text.removeprefix(mark))
    if spec.name not in old.get("models", {}):
        raise ConfigError(f"{file} has no model {spec.name!r} any more")
    new = {**old, "models": {**old["models"], spec.name: _changed(old["models"][spec.name], spec)}}
    try:
        line_end = "\n"
        if "\r\n" in text:
            line_end = "\r\n"
        text = mark + edited(text.removeprefix(mark), old, new, line_end)
    except CannotEditError as error:
        raise ConfigError(f"{file}: {spec.name} cannot be changed here, change it in the file: {error}") from error
    try:
        save(file, text, before)
    except SavingError as error:
        raise ConfigError(str(error)) from error
    return file


def _changed(written: dict[str, Any], spec: ModelSpec) -> dict[str, Any]:
    """Return the written settings of a model, changed to the given specification.

    Settings that agree already stay, whether they are needed or not.
    """
    needed = dict(_settings(spec))
    # Settings that equal their default need not be written, but may stay.
    agreeing = {name: getattr(spec, name) for name in ("base_url", "model", "api_key_env", "thoughts")} | needed
    if spec.cloud is not None:
        agreeing |= asdict(spec.cloud)
    changed: dict[str, Any] = {}
    for name, value in written.items():
        if name not in _TYPED or agreeing.get(name) == value:
            changed[name] = value
        elif name in needed:
            changed[name] = needed[name]
    for name, value in needed.items():
        changed.setdefault(name, value)
    return changed


def add_model(spec: ModelSpec, folder: Path, program: Program, owner: Owner) -> Path:
    """Write a model into the owner's `workbench.toml`, and return the file.

    The rest of the file stays to the byte. Raises ConfigError if the name is taken, or the file cannot be read or
    written.
    """
    check_name_is_free(spec.name, folder, program)
    file = settings_file(program, folder, owner)
    try:
        # The state is read before the content: `save` refuses if the file has changed since then.
        before, content = state_of(file), b""
        if before is not None:
            content = file.read_bytes()
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read or created: {error.strerror}") from error
    settings_in(content, file, spec.origin)
    text = with_model(content.decode("utf-8"), spec)
    if text is None:
        raise ConfigError(f"{file}: no model can be added: write its models as tables [models.NAME]")
    try:
        save(file, text, before)
    except SavingError as error:
        raise ConfigError(str(error)) from error
    return file


def with_model(text: str, spec: ModelSpec) -> str | None:
    """Return the text of a `workbench.toml` with one more model.

    `None` if its models are written in a way that allows no addition.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    settings = dict(_settings(spec))
    wanted = tomllib.loads(text.removeprefix(_BOM))
    wanted = {**wanted, "models": {**wanted.get("models", {}), spec.name: settings}}
    line_end = "\n"
    if "\r\n" in text:
        line_end = "\r\n"
    table = tomlkit.table()
    for name, value in settings.items():
        table.add(name, _item(value))
    # First a table of its own at the end, which leaves all else to the byte. That is invalid TOML if `models` is an
    # inline table or has dotted keys at the end; then tomlkit puts the model among the others.
    before = text
    if text.strip(_BOM):
        before += line_end
        if not text.endswith("\n"):
            before += line_end
    appended = before + tomlkit.dumps({"models": {spec.name: table}}).replace("\n", line_end)
    if _holds(appended, wanted):
        return appended
    try:
        document: Any = tomlkit.parse(text)
        document["models"][spec.name] = _item(settings)
        inserted = tomlkit.dumps(document)
    except (TOMLKitError, LookupError, TypeError, AttributeError):
        return None
    if not _holds(inserted, wanted):
        return None
    return inserted


def _settings(spec: ModelSpec) -> Iterator[tuple[str, Any]]:
    """Yield the settings that must be written to reach a model in this way."""
    yield "provider", spec.provider
    yield from _cloud_settings(spec).items()
    if spec.base_url != OWN_URLS.get(spec.provider, ""):
        yield "base_url", spec.base_url
    if spec.model != spec.name:
        yield "model", spec.model
    if spec.api_key_env is not None and spec.api_key_env != usual_key_variable(spec.base_url):
        yield "api_key_env", spec.api_key_env
    if spec.key_command:
        yield "key_command", list(spec.key_command)
    if spec.headers:
        yield "headers", dict(spec.headers)
    if spec.query:
        yield "query", dict(spec.query)
    if spec.thoughts != THOUGHTS[0]:
        yield "thoughts", spec.thoughts
    if (price := spec.price) is not None:
        yield "price", _given_prices(price)


def _cloud_settings(spec: ModelSpec) -> dict[str, str]:
    """Return the settings of a cloud that differ from their defaults."""
    if spec.cloud is None or spec.cloud_name is None:
        return {}
    usual = CloudSettings(default_api(spec.cloud_name, spec.model))
    settings: dict[str, str] = {}
    for name in SETTINGS_OF[spec.cloud_name]:
        value = getattr(spec.cloud, name)
        if value is not None and value != getattr(usual, name):
            settings[name] = value
    return settings


def _given_prices(price: Price) -> dict[str, float]:
    """Return the known prices of a model by name, in US dollars per million tokens."""
    given = {}
    for name in _PRICES:
        if (number := getattr(price, name)) is not None:
            given[name] = number
    return given


def _item(value: Any) -> Any:
    """Return a value for tomlkit, with tables in braces."""
    import tomlkit

    if not isinstance(value, dict):
        return tomlkit.item(value)
    inline = tomlkit.inline_table()
    for name, item in value.items():
        inline.append(name, _item(item))
    return inline


def _holds(text: str, wanted: object) -> bool:
    try:
        return tomllib.loads(text.removeprefix(_BOM)) == wanted
    except tomllib.TOMLDecodeError:
        return False
