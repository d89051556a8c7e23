"""A model whose settings the user types, and the `workbench.toml` in which it is stored."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from workbench.config.clouds import CLOUDS, SETTINGS_OF, CloudSettings, default_api, is_signed_header, setting_problems
from workbench.config.folders import SETTINGS_NAME, project_file, project_folder
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
from workbench.config.request_settings import settings_of, settings_text, words_of
from workbench.config.settings_file import checked_name, settings_in
from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import PRICES, ListedModel, check_models
from workbench.numerals import setting_text
from workbench.providers.http.checks import CheckResult
from workbench.suite.files import SavingError, save, state_of

Owner = Literal["project", "user"]
"""The owner of a `workbench.toml`: the user, or the project if the file is next to its suites."""

CloudField = Literal["api", "resource", "api_version", "region", "project", "profile", "endpoint", "credentials"]
CLOUD_FIELDS: tuple[CloudField, ...] = get_args(CloudField)
"""The settings of models that a cloud hosts."""

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


class InvalidModelError(Exception):
    """The model cannot be added. `problems` has a message for each invalid field."""

    def __init__(self, problems: dict[Field, str]) -> None:
        super().__init__("; ".join(f"{field} {problem}" for field, problem in problems.items()))
        self.problems = problems


class NameTakenError(ConfigError):
    """A `workbench.toml` already has a model of that name."""


@dataclass(frozen=True)
class TypedModel:
    """The settings of a model as the user typed them. An empty text means the default.

    `price` is in US dollars per million tokens, as `INPUT, OUTPUT` or `INPUT, OUTPUT, CACHED INPUT`. `headers` and
    `query` are words `NAME=VALUE`. `key_command` holds the words of a command, quoted as in a shell. The fields from
    `api` on are settings of clouds."""

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
        return cls(preset.provider, preset.base_url, model, preset.api_key_env or "", usual_name(preset, model))

    @classmethod
    def of_spec(cls, spec: ModelSpec) -> TypedModel:
        """Return the fields that a user would type for a model."""
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
        """Return the typed settings as a `ModelSpec`.

        Raises InvalidModelError with the problems of all fields."""
        problems: dict[Field, str] = {}

        # All fields are checked, so a form can show every problem at once.
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
            problems["key_command"] = f"gives the key that {variable} holds too: omit one of them"
        elif has_key_header and (command or variable):
            problems["headers"] = "have an 'authorization', which holds the key: leave it or the key out"
        elif provider in CLOUDS and any(map(is_signed_header, headers)):
            problems["headers"] = "have one that the SDK of the cloud sets: omit it"
        if problems:
            raise InvalidModelError(problems)
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
        """Return the typed name, or else a name derived from the model.

        If the model is missing too, the result is empty, because the field `model` reports that problem."""
        name = typed or usual_name(None, self.model.strip())
        if not name and not self.model.strip():
            return ""
        return checked_name(name)


def usual_name(preset: Preset | None, model: str) -> str:
    """Return the default name of a model in a `workbench.toml`: the last part of the model's name at the endpoint."""
    last = model.rpartition("/")[2]
    name = re.sub(r"[^\w.-]", "-", last).strip("-")
    # `offline` is the name of a built-in model, so no other model can have it.
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
    """Read a price; return `None` for an empty text.

    Raises ValueError."""
    if not text:
        return None
    try:
        numbers = [float(part.strip().removeprefix("$")) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(0 <= number < float("inf") for number in numbers):
        raise ValueError(
            "must be US dollars per million tokens, input and output, such as 0.15, 0.6; a third is for cached input"
        )
    return Price(*numbers)


def settings_file(program: Program, folder: Path, owner: Owner) -> Path:
    """Return the path of the user's `workbench.toml`, or of the project to which a folder belongs.

    The file need not exist."""
    if owner == "user":
        return program.folders.config / SETTINGS_NAME
    home = program.environment.home
    return project_file(folder, home) or project_folder(folder, home) / SETTINGS_NAME


def usual_owner(program: Program, folder: Path) -> Owner:
    """Return the default owner of a new model: the project if it has a `workbench.toml`, else the user."""
    if project_file(folder, program.environment.home) is not None:
        return "project"
    return "user"


async def check_typed(spec: ModelSpec, folder: Path, program: Program) -> CheckResult:
    """Check whether the endpoint of a typed model answers, accepts the key and has the model.

    Raises ConfigError if a `.env` cannot be read."""
    listed = ListedModel(program.models.with_place(spec, folder), program.environment.of(folder))
    await check_models([listed], program)
    assert listed.check is not None
    return listed.check


def check_typed_blocking(spec: ModelSpec, folder: Path, program: Program) -> CheckResult:
    """Call `check_typed` on a new event loop, and wait for the result."""
    return asyncio.run(check_typed(spec, folder, program))


def check_name_is_free(name: str, folder: Path, program: Program) -> None:
    """Raise ConfigError if a `workbench.toml` for a folder cannot be used or has a model of that name."""
    for known in program.models.named(folder):
        if known.name == name:
            raise NameTakenError(
                f"{known.file} already names a model {name!r}: choose another name, or change that model"
            )


def named_model(name: str, folder: Path, program: Program) -> ModelSpec | None:
    """Return the model `name` from the `workbench.toml` files that apply to a folder, or `None`.

    Raises ConfigError if one of these files cannot be used."""
    for known in program.models.named(folder):
        if known.name == name:
            return known
    return None


def owner_of(known: ModelSpec) -> Owner:
    """Return whose `workbench.toml` names a model: the user's or the project's."""
    if known.origin == "project":
        return "project"
    return "user"


def change_model(known: ModelSpec, spec: ModelSpec) -> Path:
    """Change the settings of a `known` model in its `workbench.toml` to `spec`, and return the file.

    Comments, other settings and the rest of the file stay unchanged. Raises ConfigError if the file cannot be read or
    written."""
    from workbench.suite.toml_edit import CannotEditError, edit_toml

    file = known.file
    assert file is not None
    try:
        before, content = state_of(file), file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    # `settings_in` raises an error for an invalid file, before the file is changed.
    settings_in(content, file, known.origin)
    text = content.decode("utf-8")
    mark = ""
    # Editors on Windows write a byte order mark, which tomllib rejects.
    if text.startswith(_BOM):
        mark = _BOM
    old = tomllib.loads(text.removeprefix(mark))
    if spec.name not in old.get("models", {}):
        raise ConfigError(f"{file} no longer has a model {spec.name!r}")
    new = {**old, "models": {**old["models"], spec.name: _changed(old["models"][spec.name], spec)}}
    try:
        line_end = "\n"
        if "\r\n" in text:
            line_end = "\r\n"
        text = mark + edit_toml(text.removeprefix(mark), old, new, line_end)
    except CannotEditError as error:
        raise ConfigError(f"{file}: {spec.name} cannot be changed here ({error}): edit the file itself") from error
    try:
        save(file, text, before)
    except SavingError as error:
        raise ConfigError(str(error)) from error
    return file


def _changed(written: dict[str, Any], spec: ModelSpec) -> dict[str, Any]:
    """Return the settings of a model's table, changed to match a specification.

    A setting that already agrees is kept, even if it equals a default."""
    needed = dict(_settings(spec))
    # `needed` lacks settings that equal their defaults. If such a setting is written, it agrees too and is kept.
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
    """Add a model to the owner's `workbench.toml`, and return the file.

    Every other byte of the file stays unchanged. Raises ConfigError if the name is taken or the file cannot be read or
    written."""
    check_name_is_free(spec.name, folder, program)
    file = settings_file(program, folder, owner)
    try:
        # `save` refuses a file that has changed since its state was read. So the state is read before the content.
        before, content = state_of(file), b""
        if before is not None:
            content = file.read_bytes()
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read or created: {error.strerror}") from error
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

    Returns `None` if its models are written in a form that cannot be extended, such as an inline table."""
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
    # A separate table at the end is tried first because it leaves every other byte unchanged. The result is invalid
    # TOML if `models` is an inline table or has dotted keys at the end. Then tomlkit inserts the model among the
    # others.
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
    given = {}
    for name in PRICES:
        if (number := getattr(price, name)) is not None:
            given[name] = number
    return given


def _item(value: Any) -> Any:
    import tomlkit

    if not isinstance(value, dict):
        return tomlkit.item(value)
    inline = tomlkit.inline_table()
    for name, item in value.items():
        inline.append(name, _item(item))
    return inline


def _holds(text: str, value: object) -> bool:
    try:
        return tomllib.loads(text.removeprefix(_BOM)) == value
    except tomllib.TOMLDecodeError:
        return False
