"""Reading of a `workbench.toml`: its models and its judge, or all of its problems."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from workbench.config.clouds import (
    APIS,
    BEDROCK_ENDPOINTS,
    CLOUDS,
    SETTINGS_OF,
    V1,
    Api,
    BedrockEndpoint,
    Cloud,
    CloudSettings,
    CredentialChoice,
    default_api,
    is_signed_header,
    setting_problems,
)
from workbench.config.models import (
    DEFAULT_READ_TIMEOUT_S,
    OWN_URLS,
    PROVIDERS,
    ConfigError,
    FileSettings,
    ModelSpec,
    Origin,
    Price,
    Provider,
    Thoughts,
    checked_judge,
    checked_key_variable,
    checked_params,
    key_header,
    usual_key_variable,
)
from workbench.config.request_checks import (
    EXAMPLE_COMMAND,
    checked_address,
    checked_command,
    checked_headers,
    checked_query,
    joined_query,
)
from workbench.config.request_settings import split_address
from workbench.encoding import SAVE_AS_UTF_8, utf_8_problem

_NOT_NEGATIVE = Field(ge=0, allow_inf_nan=False)
_POSITIVE = Field(gt=0, allow_inf_nan=False)


def _checked_address(text: str) -> str:
    checked_address(text)
    return text


class _Strict(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, frozen=True)


class _Price(_Strict):
    input: Annotated[float, _NOT_NEGATIVE]
    output: Annotated[float, _NOT_NEGATIVE]
    cached_input: Annotated[float, _NOT_NEGATIVE] | None = None


_EARLIER_NAMES = {"silence_s": "read_timeout_s"}


_CLOUD_SETTINGS = tuple(dict.fromkeys(name for names in SETTINGS_OF.values() for name in names))


def _cloud_of(provider: str) -> Cloud | None:
    return next((cloud for cloud in CLOUDS if cloud == provider), None)


class _Model(_Strict):
    provider: Provider
    base_url: Annotated[str, AfterValidator(_checked_address)] | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    api_key_env: Annotated[str, AfterValidator(checked_key_variable)] | None = None
    key_command: Annotated[list[str], AfterValidator(checked_command)] | None = None
    params: Annotated[dict[str, JsonValue], AfterValidator(checked_params)] = Field(default_factory=dict)
    price: _Price | None = None
    concurrency: Annotated[int, Field(ge=1)] | None = None
    requests_per_minute: Annotated[float, _POSITIVE] | None = None
    read_timeout_s: Annotated[float, _POSITIVE] = DEFAULT_READ_TIMEOUT_S
    legacy_auth: bool = False
    thoughts: Thoughts = "reasoning"
    images: bool | None = None
    audio: bool = False
    headers: Annotated[dict[str, str], AfterValidator(checked_headers)] = Field(default_factory=dict)
    query: Annotated[dict[str, str], AfterValidator(checked_query)] = Field(default_factory=dict)
    api: Api | None = None
    resource: str | None = None
    api_version: str | None = None
    region: str | None = None
    project: str | None = None
    profile: str | None = None
    endpoint: BedrockEndpoint | None = None
    credentials: CredentialChoice | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_new_names(cls, written: object) -> object:
        """Rename settings that have the names of earlier versions. A setting with the new name takes precedence."""
        if not isinstance(written, dict):
            return written
        renamed = dict(written)
        for earlier, name in _EARLIER_NAMES.items():
            if earlier in renamed:
                value = renamed.pop(earlier)
                renamed.setdefault(name, value)
        return renamed

    @field_validator("legacy_auth")
    @classmethod
    def _only_where_it_means_something(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("provider", "anthropic") != "anthropic":
            raise ValueError("is for provider 'anthropic' only: omit it")
        return value

    @field_validator("audio")
    @classmethod
    def _only_in_chat(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("provider") in ("anthropic", "openai-responses"):
            raise ValueError("is for Chat Completions only, because no other API accepts audio: omit it")
        return value

    @field_validator("key_command")
    @classmethod
    def _only_without_a_variable(cls, command: Sequence[str] | None, info: ValidationInfo) -> Sequence[str] | None:
        if command is not None and info.data.get("api_key_env") is not None:
            raise ValueError("gives the key, but api_key_env also gives a key: omit one of them")
        return command

    @field_validator("headers")
    @classmethod
    def _only_one_key(cls, headers: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if _cloud_of(info.data.get("provider", "")) is not None:
            for name in headers:
                if is_signed_header(name):
                    raise ValueError(f"has {name!r}, which the SDK of the cloud sets: omit it")
        key = key_header(info.data.get("provider", ""), legacy_auth=info.data.get("legacy_auth", False))
        if key in map(str.lower, headers):
            for name in ("api_key_env", "key_command"):
                if info.data.get(name) is not None:
                    raise ValueError(f"has {key!r}, which holds the key of {name}: omit either the header or {name}")
        return headers

    @field_validator("query")
    @classmethod
    def _each_name_once(cls, query: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        joined_query(split_address(info.data.get("base_url") or "")[1], query)
        return query

    @field_validator(*_CLOUD_SETTINGS)
    @classmethod
    def _only_at_their_clouds(cls, value: str | None, info: ValidationInfo) -> str | None:
        # Which settings are valid depends on the provider. If the provider is unknown, no setting is checked.
        if value is not None and info.field_name is not None and "provider" in info.data:
            for _, problem in setting_problems(_cloud_of(info.data["provider"]), {info.field_name: value}):
                raise ValueError(problem)
        return value


SETTINGS = tuple(_Model.model_fields)
"""The names of the settings that a model can have."""


def checked_name(name: str) -> str:
    """Return the name of a model of a `workbench.toml` unchanged if it is valid. Raises ValueError otherwise."""
    # A colon ends the name of a provider, as in `openai:gpt-6-luna`.
    if not name or ":" in name or name == "offline" or " " in name or not name.isprintable():
        raise ValueError("cannot be the name of a model: use a name without ':' and spaces, other than 'offline'")
    return name


class _Settings(_Strict):
    models: dict[Annotated[str, AfterValidator(checked_name)], _Model] = Field(default_factory=dict)
    judge: Annotated[str, AfterValidator(checked_judge)] | None = None


def settings_schema() -> dict[str, object]:
    return _Settings.model_json_schema()


def read_settings(file: Path, origin: Origin) -> FileSettings:
    """Read a `workbench.toml`.

    Raises ConfigError with all its problems."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    return settings_in(content, file, origin)


def settings_in(content: bytes, file: Path, origin: Origin) -> FileSettings:
    """Return the settings in the content of a `workbench.toml`.

    `origin` says whether the file is the project's, whose models need approval, or the user's. Raises ConfigError with
    all problems."""
    try:
        text = content.decode("utf-8-sig")
        settings = _Settings.model_validate(tomllib.loads(text))
    except UnicodeDecodeError as error:
        line, why = utf_8_problem(content, error)
        raise ConfigError(f"{file}:{line} {why}: {SAVE_AS_UTF_8}") from error
    except ValidationError as error:
        raise ConfigError(*(_problem(file, text, found) for found in error.errors())) from None
    except tomllib.TOMLDecodeError as error:
        # The messages of tomllib end with "(at line 3, column 5)" or "(at end of document)".
        message, _, place = str(error).rpartition(" (at ")
        line = text.count("\n") + 1
        if number := re.match(r"line (\d+)", place):
            line = int(number[1])
        raise ConfigError(f"{file}:{line} is not valid TOML: {message}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    specs = {name: _spec(name, model, file, origin) for name, model in settings.models.items()}
    return FileSettings(specs, settings.judge)


def _spec(name: str, written: _Model, file: Path, origin: Origin) -> ModelSpec:
    base_url = written.base_url or OWN_URLS.get(written.provider, "")
    query: Mapping[str, str] = written.query
    if written.base_url is not None:
        base_url, of_address = checked_address(written.base_url)
        query = joined_query(of_address, query)
    key = written.api_key_env
    own_key = key_header(written.provider, legacy_auth=written.legacy_auth) in map(str.lower, written.headers)
    if key is None and written.key_command is None and not own_key:
        key = usual_key_variable(base_url)
    cloud: CloudSettings | None = None
    if (of := _cloud_of(written.provider)) is not None:
        cloud = CloudSettings(
            api=written.api or default_api(of, written.model or name),
            resource=written.resource,
            api_version=written.api_version or V1,
            region=written.region,
            project=written.project,
            profile=written.profile,
            endpoint=written.endpoint or BEDROCK_ENDPOINTS[0],
            credentials=written.credentials,
        )
    price = None
    if written.price is not None:
        price = Price(written.price.input, written.price.output, written.price.cached_input)
    return ModelSpec(
        name=name,
        provider=written.provider,
        model=written.model or name,
        base_url=base_url,
        api_key_env=key,
        params=written.params,
        price=price,
        concurrency=written.concurrency,
        requests_per_minute=written.requests_per_minute,
        read_timeout_s=written.read_timeout_s,
        legacy_auth=written.legacy_auth,
        thoughts=written.thoughts,
        images=written.images,
        audio=written.audio,
        headers=written.headers,
        query=query,
        key_command=tuple(written.key_command or ()),
        origin=origin,
        file=file,
        cloud=cloud,
    )


def _problem(file: Path, text: str, found: ErrorDetails) -> str:
    # The message never quotes the file's content, which may be a key in the wrong place.
    place = tuple(str(part) for part in found["loc"] if part != "[key]")
    at = str(file)
    if line := _line_of(text, place):
        at += f":{line}"
    return f"{at}: {'.'.join(place)} {_problem_text(found, place)}"


def _problem_text(found: ErrorDetails, place: tuple[str, ...]) -> str:
    match found["type"]:
        case "missing":
            return f"is missing: {_EXPECTED_VALUES.get(place[-1], 'it is needed')}"
        case "extra_forbidden":
            return _unknown(place)
        case "value_error":
            return str(found["ctx"]["error"])
    # A key inside `params` or `price` that has no advice gets the advice of `params` or `price`.
    setting = "models"
    if len(place) > 2:
        setting = place[2]
    wanted = _EXPECTED_VALUES.get(place[-1]) or _EXPECTED_VALUES.get(setting)
    return f"is invalid: {wanted}"


_EXPECTED_VALUES = {
    "models": "write each model as a table [models.NAME]",
    "judge": "give the name of a model as a text",
    "provider": f"give one of {', '.join(map(repr, PROVIDERS))}",
    "base_url": "give an address as a text",
    "model": "give the model's name at its endpoint as a text",
    "api_key_env": "give the name of an environment variable as a text",
    "key_command": f"give a program that prints the key, and its arguments, as a list of texts: {EXAMPLE_COMMAND}",
    "headers": 'give a table of texts, such as { "x-team" = "search", "x-gateway-key" = "$GATEWAY_KEY" }',
    "query": 'give a table of texts, such as { "api-version" = "2024-10-21" }',
    "params": "give a table of JSON values",
    "price": "give { input = …, output = … } in US dollars per million tokens, not below 0",
    "input": "give US dollars per million tokens, not below 0",
    "output": "give US dollars per million tokens, not below 0",
    "cached_input": "give US dollars per million tokens, not below 0",
    "concurrency": "give a whole number of at least 1",
    "requests_per_minute": "give a number above 0",
    "read_timeout_s": "give a number of seconds above 0",
    "legacy_auth": "give true or false",
    "thoughts": "give 'reasoning' or 'answer'",
    "images": "give true or false",
    "audio": "give true or false",
    "api": f"give one of {', '.join(map(repr, APIS))}",
    "resource": "give the name of an Azure resource as a text",
    "api_version": "give 'v1' or a date such as '2025-04-01-preview'",
    "region": "give the name of a region as a text",
    "project": "give the id of a Google Cloud project as a text",
    "profile": "give the name of an AWS profile as a text",
    "endpoint": f"give one of {', '.join(map(repr, BEDROCK_ENDPOINTS))}",
    "credentials": "give 'default', or omit it",
}


def _unknown(place: tuple[str, ...]) -> str:
    if place == ("format",):
        return "makes this a suite: give the suite's file another name"
    if place[-1] == "judge":
        return "is not a setting of a model: write judge = … above the first [table] of the file"
    if place[-1] in ("api_key", "key", "token"):
        return "is not a setting: put the key into an environment variable or .env, and name it in api_key_env"
    # The place is `KEY`, `models.NAME.KEY` or `models.NAME.price.KEY`.
    table: type[BaseModel] = _Price
    if len(place) == 1:
        table = _Settings
    elif len(place) == 3:
        table = _Model
    known = tuple(table.model_fields)
    near = difflib.get_close_matches(place[-1], known, n=1)
    if near:
        return f"is not a setting: did you mean {near[0]!r}?"
    return f"is not a setting: the settings are {', '.join(known)}"


def _line_of(text: str, place: tuple[str, ...]) -> int | None:
    """Return the line of a setting, otherwise the line at which its table begins, from 1.

    Returns `None` if neither line can be found."""
    lines = text.splitlines()
    if len(place) == 1:
        name = rf"""["']?{re.escape(place[0])}["']?\s*"""
        header = _first_line(r"\s*\[", lines, 0) or len(lines) + 1
        key = _first_line(rf"\s*{name}[=.]", lines[: header - 1], 0)
        return key or _first_line(rf"\s*\[+\s*{name}[.\]]", lines, 0)
    if not place:
        return None
    table = _first_line(rf"""\s*\[\s*models\s*\.\s*["']?{re.escape(place[1])}["']?\s*\]""", lines, 0)
    if table is None or len(place) < 3:
        return table
    end = _first_line(r"\s*\[", lines, table) or len(lines) + 1
    names = [place[2]]
    names += [earlier for earlier, name in _EARLIER_NAMES.items() if name == place[2]]
    written = "|".join(map(re.escape, names))
    key = _first_line(rf"""\s*["']?(?:{written})["']?\s*[=.]""", lines[: end - 1], table)
    return key or table


def _first_line(pattern: str, lines: list[str], after: int) -> int | None:
    for number, line in enumerate(lines[after:], after + 1):
        if re.match(pattern, line):
            return number
    return None
