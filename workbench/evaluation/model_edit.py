"""Adds a model to a `workbench.toml`, or changes one: what is typed about it is checked, its endpoint is asked, and a
table is written that leaves all else in the file as it was."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

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
    checked_base_url,
    checked_key_variable,
    usual_key_variable,
)
from workbench.config.program import Program
from workbench.config.settings_file import checked_name, settings_in
from workbench.dataclasses import dataclass
from workbench.evaluation.model_list import ListedModel, check_models
from workbench.providers.http.endpoints import CheckResult
from workbench.suite.files import SavingError, save, state_of

Owner = Literal["project", "user"]
"""Whose `workbench.toml`: the one next to the suites, or the user's own."""

OWNERS: tuple[Owner, ...] = get_args(Owner)

Field = Literal["provider", "base_url", "model", "api_key_env", "name", "price", "thoughts"]

_Value = TypeVar("_Value")

_BOM = "\ufeff"

_TYPED = ("provider", "base_url", "model", "api_key_env", "price", "thoughts")
"""The settings that can be typed."""


class AddingError(Exception):
    """A model cannot be added. `problems` has what is wrong by field."""

    def __init__(self, problems: dict[Field, str]) -> None:
        super().__init__("; ".join(f"{field} {problem}" for field, problem in problems.items()))
        self.problems = problems


class NameTakenError(ConfigError):
    """A `workbench.toml` already names a model so."""


@dataclass(frozen=True)
class TypedModel:
    """A model as it was typed, each field a text; an empty one has the usual value. `price` is US dollars per million
    tokens, as `INPUT, OUTPUT` or `INPUT, OUTPUT, CACHED INPUT`."""

    provider: str = "openai"
    base_url: str = ""
    model: str = ""
    api_key_env: str = ""
    name: str = ""
    price: str = ""
    thoughts: str = THOUGHTS[0]

    @classmethod
    def of_preset(cls, preset: Preset, model: str = "") -> TypedModel:
        """Return a model at a known endpoint."""
        return cls(preset.provider, preset.base_url, model, preset.api_key_env or "", usual_name(preset, model))

    @classmethod
    def of_spec(cls, spec: ModelSpec) -> TypedModel:
        """Return a model as it could have been typed."""
        price = spec.price
        numbers = (price.input, price.output, price.cached_input) if price is not None else ()
        typed = ", ".join(f"{number:g}" for number in numbers if number is not None)
        return cls(spec.provider, spec.base_url, spec.model, spec.api_key_env or "", spec.name, typed, spec.thoughts)

    def spec(self, owner: Owner = "user") -> ModelSpec:
        """Return how the model is reached. Raises AddingError with everything that is wrong."""
        problems: dict[Field, str] = {}

        def checked(field: Field, check: Callable[[str], _Value], otherwise: _Value) -> _Value:
            try:
                return check(getattr(self, field).strip())
            except ValueError as error:
                problems[field] = str(error)
                return otherwise

        provider = checked("provider", _provider, PROVIDERS[0])
        base_url = checked("base_url", lambda text: checked_base_url(text) if text else OWN_URLS[provider], "")
        variable = checked("api_key_env", lambda text: checked_key_variable(text) if text else None, None)
        model = checked("model", _model, "")
        name = checked("name", self._name_of, "")
        price = checked("price", price_of, None)
        thoughts = checked("thoughts", _thoughts, THOUGHTS[0])
        if problems:
            raise AddingError(problems)
        key = variable or usual_key_variable(base_url)
        return ModelSpec(name, provider, model, base_url, key, price=price, thoughts=thoughts, origin=owner)

    def _name_of(self, typed: str) -> str:
        """Return the name, by default the usual one of the model. A missing model is told of the model alone."""
        name = typed or usual_name(None, self.model.strip())
        return checked_name(name) if name or self.model.strip() else ""


def usual_name(preset: Preset | None, model: str) -> str:
    """Return a name for a model that a `workbench.toml` can have: the last part of the endpoint's own name for it."""
    last = model.rpartition("/")[2]
    name = "".join(character if character.isalnum() or character in "._-" else "-" for character in last).strip("-")
    taken = name in ("", "offline")
    return f"{preset.name}-{name}".strip("-") if preset is not None and taken and model else name


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
    """Return the price that a text says, `None` for an empty one. Raises ValueError."""
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
    """Return the `workbench.toml` of the user, or of the project that the suites in a folder belong to. It may not be
    there yet."""
    if owner == "user":
        return program.folders.config / SETTINGS_NAME
    home = program.environment.home
    return project_file(folder, home) or project_folder(folder, home) / SETTINGS_NAME


def usual_owner(program: Program, folder: Path) -> Owner:
    """Return whose `workbench.toml` a model is written into by default: the project's where there is one."""
    return "project" if project_file(folder, program.environment.home) is not None else "user"


async def check_typed(spec: ModelSpec, folder: Path, program: Program) -> CheckResult:
    """Ask the endpoint of a model that was typed here whether it answers, accepts the key and has the model. Raises
    ConfigError when a `.env` cannot be read."""
    listed = ListedModel(spec, program.environment.of(folder))
    await check_models([listed], program)
    assert listed.check is not None
    return listed.check


def check_typed_now(spec: ModelSpec, folder: Path, program: Program) -> CheckResult:
    """Do as `check_typed`, on an event loop of its own."""
    return asyncio.run(check_typed(spec, folder, program))


def check_name_is_free(name: str, folder: Path, program: Program) -> None:
    """Raise ConfigError when a `workbench.toml` of a folder already names a model so, or cannot be used."""
    for known in program.models.named(folder):
        if known.name == name:
            raise NameTakenError(
                f"{known.file} already names a model {name!r}: choose another name, or change that model"
            )


def named_model(name: str, folder: Path, program: Program) -> ModelSpec | None:
    """Return the model that a `workbench.toml` of a folder names so. Raises ConfigError when one cannot be used."""
    return next((known for known in program.models.named(folder) if known.name == name), None)


def owner_of(known: ModelSpec) -> Owner:
    """Return whose `workbench.toml` names a model."""
    return "project" if known.origin == "project" else "user"


def change_model(known: ModelSpec, spec: ModelSpec) -> Path:
    """Change how a `known` model of a `workbench.toml` is reached, and return the file. Its comments, its other
    settings, and all else in the file stay. Raises ConfigError when the file cannot be read or written."""
    from workbench.suite.toml_edit import CannotEditError, edited

    file = known.file
    assert file is not None
    try:
        before, content = state_of(file), file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    settings_in(content, file, known.origin)
    text = content.decode("utf-8")
    mark = _BOM if text.startswith(_BOM) else ""
    old = tomllib.loads(text.removeprefix(mark))
    if spec.name not in old.get("models", {}):
        raise ConfigError(f"{file} has no model {spec.name!r} any more")
    new = {**old, "models": {**old["models"], spec.name: _changed(old["models"][spec.name], spec)}}
    try:
        text = mark + edited(text.removeprefix(mark), old, new, "\r\n" if "\r\n" in text else "\n")
    except CannotEditError as error:
        raise ConfigError(f"{file}: {spec.name} cannot be changed here, change it in the file: {error}") from error
    try:
        save(file, text, before)
    except SavingError as error:
        raise ConfigError(str(error)) from error
    return file


def _changed(written: dict[str, Any], spec: ModelSpec) -> dict[str, Any]:
    """Return the settings of a model as they are written, changed to reach it in another way. What already says the
    same stays, whether it is needed or not."""
    needed = dict(_settings(spec))
    said = {name: getattr(spec, name) for name in ("base_url", "model", "api_key_env", "thoughts")}
    kept = {
        name: value
        for name, value in written.items()
        if name not in _TYPED or needed.get(name, said.get(name)) == value
    }
    order = dict.fromkeys((*written, *needed))
    return {name: kept.get(name, needed.get(name)) for name in order if name in kept or name in needed}


def add_model(spec: ModelSpec, folder: Path, program: Program, owner: Owner) -> Path:
    """Write a model into the owner's `workbench.toml`, and return the file. All else in it stays to the byte.

    Raises ConfigError when the name is taken, or the file cannot be read or written.
    """
    check_name_is_free(spec.name, folder, program)
    file = settings_file(program, folder, owner)
    try:
        before = state_of(file)
        content = file.read_bytes() if before is not None else b""
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read or created: {error.strerror}") from error
    settings_in(content, file, spec.origin)
    text = with_model(content.decode("utf-8"), spec)
    if text is None:
        raise ConfigError(
            f"{file}: its models are written in a way that cannot be added to: write them as tables [models.NAME]"
        )
    try:
        save(file, text, before)
    except SavingError as error:
        raise ConfigError(str(error)) from error
    return file


def with_model(text: str, spec: ModelSpec) -> str | None:
    """Return the text of a `workbench.toml` with one more model; `None` where its models are written in a way that none
    can be added to."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    settings = dict(_settings(spec))
    wanted = tomllib.loads(text.removeprefix(_BOM))
    wanted = {**wanted, "models": {**wanted.get("models", {}), spec.name: settings}}
    line_end = "\r\n" if "\r\n" in text else "\n"
    table = tomlkit.table()
    for name, value in settings.items():
        table.add(name, _item(value))
    written = tomlkit.dumps({"models": {spec.name: table}}).replace("\n", line_end)
    before = text if not text.strip(_BOM) or text.endswith("\n") else text + line_end
    texts = [f"{before}{line_end if before.strip(_BOM) else ''}{written}"]
    try:
        document: Any = tomlkit.parse(text)
        document["models"][spec.name] = _item(settings)
        texts.append(tomlkit.dumps(document))
    except (TOMLKitError, LookupError, TypeError, AttributeError):
        pass  # a text that is not made is not tried
    return next((made for made in texts if _holds(made, wanted)), None)


def _settings(spec: ModelSpec) -> Iterator[tuple[str, Any]]:
    """Yield what has to be written to reach a model in this way."""
    yield "provider", spec.provider
    if spec.base_url != OWN_URLS[spec.provider]:
        yield "base_url", spec.base_url
    if spec.model != spec.name:
        yield "model", spec.model
    if spec.api_key_env is not None and spec.api_key_env != usual_key_variable(spec.base_url):
        yield "api_key_env", spec.api_key_env
    if spec.thoughts != THOUGHTS[0]:
        yield "thoughts", spec.thoughts
    if (price := spec.price) is not None:
        prices = {"input": price.input, "output": price.output, "cached_input": price.cached_input}
        yield "price", {name: number for name, number in prices.items() if number is not None}


def _item(value: Any) -> Any:
    """Return a value as tomlkit writes it, tables in braces."""
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
