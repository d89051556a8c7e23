"""Lookup of a model by name. The result is its specification: the address, the key and the settings of requests."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from workbench.config.agents import unknown_agent
from workbench.config.clouds import (
    CLOUDS,
    CloudPlace,
    CloudSettings,
    default_api,
    is_own_address,
    place_of,
    place_refusal,
)
from workbench.config.folders import SETTINGS_NAME, project_file
from workbench.config.models import (
    OWN_URLS,
    PROVIDERS,
    ConfigError,
    FileSettings,
    JudgeChoice,
    ModelSpec,
    Origin,
    Provider,
    UnknownModelError,
    checked_judge,
    checked_key_variable,
    checked_params,
    checked_user_model,
    usual_key_variable,
)
from workbench.config.request_checks import checked_address
from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

_WITH_URL = late_pattern(r"(?P<model>.+)@(?P<url>https?://.*)", re.DOTALL | re.IGNORECASE)

_WITHOUT_SCHEME = late_pattern(
    r".+@(?P<place>(localhost|\[[0-9a-f:.]+\]|[\w.-]+(?=:\d{1,5}(/|$))|[\w-]+(\.[\w-]+)+(?=/))(:\d{1,5})?(/[^?#@]*)?(\?[^#@]*)?)",
    re.DOTALL | re.IGNORECASE,
)
"""An address without its scheme, a common mistake: `@localhost…`, `@HOST:PORT…`, `@HOST.DOMAIN/…`.

Names of models may also contain an `@`, but none of these forms after it."""

MAX_KNOWN_SHOWN = 20

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class ModelOptions:
    """The command line's options for models. They do not apply to models that a suite names.

    `judge` is the model for judged checks that name no model. `user_model` simulates the users of cases that name no
    model for them. `users` (`replay:DIR`) names a folder of recordings, whose user messages are replayed in place of
    simulated users."""

    models: frozenset[str] = frozenset()
    base_url: str | None = None
    api_key_env: str | None = None
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    judge: str | None = None
    user_model: str | None = None
    users: str | None = None

    def __post_init__(self) -> None:
        """Check the options. Raise ConfigError with all their problems."""
        problems = [
            *_wrong("--base-url", checked_address, self.base_url),
            *_wrong("--api-key-env", checked_key_variable, self.api_key_env),
            *_wrong("--param", checked_params, self.params),
            *_wrong("--judge", checked_judge, self.judge),
            *_wrong("--user-model", checked_user_model, self.user_model),
            *_wrong("--user", _checked_recordings, self.users),
        ]
        if problems:
            raise ConfigError(*problems)


def _wrong(option: str, check: Callable[[_Value], object], value: _Value | None) -> Iterator[str]:
    try:
        if value is not None:
            check(value)
    except ValueError as error:
        yield f"{option} {error}"


def _checked_recordings(name: str) -> None:
    if not name.startswith("replay:"):
        raise ValueError(
            f"must name recordings, such as replay:runs, not {name!r}; to let a model play the user, give --user-model"
        )


NO_MODEL_OPTIONS = ModelOptions()


def _no_variables(_folder: Path) -> Mapping[str, str]:
    return {}


class ModelBook:
    """A lookup of models by name, for any thread.

    It knows the models in the project's and the user's `workbench.toml`, and names that describe a model, such as
    `openai:gpt-6-luna` or `openai:llama-3.1@http://localhost:1234/v1`. A changed file is read again.

    `home` is the user's home. A `workbench.toml` in a folder above it is ignored. `environment` returns the variables
    for the suites in a folder, from which the addresses and credentials at clouds are read. `own_variables` has only
    the variables of the process, by default `os.environ`."""

    def __init__(
        self,
        config_folder: Path,
        *,
        home: Path | None = None,
        options: ModelOptions = NO_MODEL_OPTIONS,
        environment: Callable[[Path], Mapping[str, str]] = _no_variables,
        own_variables: Mapping[str, str] | None = None,
    ) -> None:
        self._user_file = config_folder / SETTINGS_NAME
        self._home = home
        self._options = options
        self._environment = environment
        self._own_variables = own_variables
        self._files: dict[Path, tuple[tuple[int, int], FileSettings]] = {}

    @property
    def options(self) -> ModelOptions:
        return self._options

    def resolve(self, name: str, folder: Path, *, by_suite: bool, judges: bool = False) -> ModelSpec:
        """Return the specification of a model for the suites in a folder.

        `by_suite` is true if a suite, and not the command line, names the model. `judges` is true if the model is a
        judge.

        Raises UnknownModelError for an unknown name. Raises ConfigError if a `workbench.toml` cannot be used, or if the
        address or the credentials of a model at a cloud are unknown."""
        if (problem := unknown_agent(name)) is not None:
            raise UnknownModelError(problem)
        options = NO_MODEL_OPTIONS
        origin: Origin = "suite"
        if not by_suite:
            origin = "command line"
            if name in self._options.models:
                options = self._options
        spec = spec_from_text(name, origin)
        if options.base_url is not None and _WITH_URL.fullmatch(name):
            # The results would name an address that was never asked.
            raise ConfigError("a model has an address after '@' in its name: omit this address, or --base-url")
        if spec is None:
            named = self._named(folder)
            spec = named.get(name)
            if spec is None and options.base_url is None:
                known = list(named)
                # The offline model is not a language model and cannot judge.
                if not judges:
                    known.insert(0, "offline")
                raise UnknownModelError(_unknown(name, known))
        spec = self.with_place(
            _with(spec or ModelSpec(name, "openai", name, "", origin="command line"), options), folder
        )
        if spec.problem is not None:
            raise ConfigError(spec.problem)
        return spec

    def with_place(self, spec: ModelSpec, folder: Path) -> ModelSpec:
        """Return the specification of a model at a cloud with its address and credentials filled in.

        The specification of a model elsewhere is returned unchanged. `folder` holds the suites that use the model. If
        the address cannot be found, the `place` of the result has a `problem`."""
        cloud = spec.cloud_name
        if cloud is None or spec.cloud is None or spec.place is not None:
            return spec
        try:
            environment = self._environment(folder)
            has_command = bool(spec.key_command)
            place = place_of(cloud, spec.cloud, spec.base_url, spec.api_key_env, environment, has_command=has_command)
        except ConfigError as error:
            place = CloudPlace(spec.base_url, key_variable=spec.api_key_env, problem=f"cannot be reached: {error}")
        place = replace(place, written_url=spec.base_url, written_key=spec.api_key_env)
        # Models of the project are approved together with their addresses. Models of the user's settings and of the
        # command line need no approval, so their addresses are checked here.
        if cloud == "azure" and not place.problem and spec.origin in ("user", "command line"):
            environment = self._environment(folder)
            own = environment if self._own_variables is None else self._own_variables
            place = replace(place, problem=place_refusal(place, spec.cloud, environment, own))
        return replace(spec, base_url=place.base_url, api_key_env=place.key_variable, place=place)

    def named(self, folder: Path) -> tuple[ModelSpec, ...]:
        """Return the models in the `workbench.toml` of the project and of the user, the project's models first.

        Models at clouds have a `place`. If a cloud cannot be used, its place has a `problem`. Raises ConfigError if a
        file cannot be used."""
        return tuple(self.with_place(spec, folder) for spec in self._named(folder).values())

    def of_project(self, folder: Path) -> tuple[ModelSpec, ...]:
        """Return the models of the project's `workbench.toml`.

        Raises ConfigError as `named` does."""
        return tuple(spec for spec in self.named(folder) if spec.origin == "project")

    def judge(self, folder: Path) -> JudgeChoice | None:
        """Return the default judge for the suites in a folder, or `None` if there is none.

        The command line takes precedence over the project's file, and the project's file over the user's file. Raises
        ConfigError as `named` does."""
        if self._options.judge is not None:
            return JudgeChoice(self._options.judge)
        project, users = self._settings(folder)
        if project is not None and project.judge is not None:
            return JudgeChoice(project.judge, by_suite=True)
        if users.judge is not None:
            return JudgeChoice(users.judge)
        return None

    def problems(self, folder: Path) -> tuple[str, ...]:
        """Return all problems of the project's and of the user's `workbench.toml`."""
        files: list[tuple[Path, Origin]] = []
        project = project_file(folder, self._home)
        if project is not None:
            files.append((project, "project"))
        if self._user_file.is_file() and self._user_file != project:
            files.append((self._user_file, "user"))
        found: list[str] = []
        for file, origin in files:
            try:
                self._read(file, origin)
            except ConfigError as error:
                found += error.problems
        if not found and (judge := self.judge(folder)) is not None:
            try:
                self.resolve(judge.name, folder, by_suite=judge.by_suite, judges=True)
            except ConfigError as error:
                found += (f"the judge {judge.name!r}: {problem}" for problem in error.problems)
        return tuple(found)

    def _named(self, folder: Path) -> Mapping[str, ModelSpec]:
        project, users = self._settings(folder)
        if project is None:
            return users.models
        # The project's models are listed first, and take precedence over the user's models with the same names.
        named = dict(project.models)
        for name, spec in users.models.items():
            named.setdefault(name, spec)
        return named

    def _settings(self, folder: Path) -> tuple[FileSettings | None, FileSettings]:
        """Return the settings of the project and the settings of the user, from their `workbench.toml`.

        The project's settings are `None` if it has no such file, or if its file is also the user's."""
        project = project_file(folder, self._home)
        users = FileSettings({})
        if self._user_file.is_file():
            users = self._read(self._user_file, "user")
        if project is None or project == self._user_file.resolve():
            return None, users
        return self._read(project, "project"), users

    def _read(self, file: Path, origin: Origin) -> FileSettings:
        from workbench.config.settings_file import read_settings

        try:
            status = file.stat()
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._files.get(file)
        if known is None or known[0] != stamp:
            known = self._files[file] = (stamp, read_settings(file, origin))
        return known[1]


def spec_from_text(name: str, origin: Origin) -> ModelSpec | None:
    """Return the specification of a model from a name that describes it.

    Return `None` if the name does not begin with a provider and `:`.

    Examples are `anthropic:claude-sonnet-5-5` and `openai:llama@http://localhost:1234/v1`. Raises ConfigError if the
    text after the provider is invalid."""
    prefix, colon, rest = name.partition(":")
    provider: Provider | None = next((known for known in PROVIDERS if known == prefix), None)
    if provider is None or not colon:
        return None
    model, base_url = rest, OWN_URLS.get(provider, "")
    query: Mapping[str, str] = {}
    found = _WITH_URL.fullmatch(rest)
    try:
        if found is not None:
            model = found["model"]
            base_url, query = checked_address(found["url"])
    except ValueError as error:
        # The message does not quote the name, which may contain a password.
        raise ConfigError(f"the address after '@' in the name of the {provider} model {error}") from None
    if not model or model.startswith("@http"):
        raise UnknownModelError(_unnamed(provider))
    if found is None and (bare := _WITHOUT_SCHEME.fullmatch(rest)):
        meant = f"{provider}:MODEL@http://{bare['place']}"
        raise ConfigError(
            f"the text after '@' in the name of the {provider} model is not an address: did you mean {meant}?"
        )
    cloud: CloudSettings | None = None
    if (of := next((known for known in CLOUDS if known == provider), None)) is not None:
        cloud = CloudSettings(default_api(of, model))
    key = usual_key_variable(base_url)
    return ModelSpec(name, provider, model, base_url, api_key_env=key, query=query, origin=origin, cloud=cloud)


def _with(spec: ModelSpec, options: ModelOptions) -> ModelSpec:
    # The key and the headers are meant for the original address and must not be sent to another address.
    if options.base_url is not None:
        base_url, query = checked_address(options.base_url)
        spec = replace(
            spec,
            base_url=base_url,
            api_key_env=usual_key_variable(base_url),
            headers={},
            query=query,
            key_command=(),
            origin="command line",
            file=None,
            cloud=_cloud_at(spec, base_url),
        )
    if options.api_key_env is not None:
        others = {name: value for name, value in spec.headers.items() if name.lower() != spec.key_header}
        cloud = spec.cloud
        if cloud is not None:
            cloud = replace(cloud, profile=None, credentials=None)
        spec = replace(spec, api_key_env=options.api_key_env, headers=others, key_command=(), cloud=cloud)
    if options.params:
        spec = replace(spec, params={**spec.params, **options.params})
    return spec


def _cloud_at(spec: ModelSpec, base_url: str) -> CloudSettings | None:
    """Return a model's cloud settings for use at another address, or `None` for a model of no cloud.

    The AWS profile is dropped if the address does not belong to the cloud."""
    if spec.cloud is None or spec.cloud_name is None:
        return None
    profile = spec.cloud.profile if is_own_address(spec.cloud_name, base_url) else None
    return replace(spec.cloud, resource=None, profile=profile, credentials=None)


def _unnamed(provider: str) -> str:
    return f"{provider} is not followed by a model: write {provider}:MODEL or {provider}:MODEL@http://HOST/v1"


def _unknown(name: str, known: Sequence[str]) -> str:
    if name in PROVIDERS:
        return _unnamed(name)
    message = f"there is no model {name!r}: "
    if near := difflib.get_close_matches(name, known, n=1):
        message += f"did you mean {near[0]!r}? "
    if known:
        some = ", ".join(known[:MAX_KNOWN_SHOWN])
        if len(known) > MAX_KNOWN_SHOWN:
            some += ", …"
        message += f"there are {some}; "
    message += f"name it in a {SETTINGS_NAME}, or write its provider before it, as in "
    if "@http" in name:
        return f"{message}openai:{name} or anthropic:{name}"
    return f"{message}openai:{name}, anthropic:{name} or openai:{name}@http://localhost:1234/v1"
