"""Specifications of models, such as address, key and price, and the known endpoints."""

from __future__ import annotations

import ipaddress
import json
import shlex
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlsplit

from workbench.config.clouds import CLOUDS, Api, Cloud, CloudPlace, CloudSettings, default_api
from workbench.config.request_settings import settings_text, variables_of
from workbench.dataclasses import dataclass
from workbench.startup import late_pattern

if TYPE_CHECKING:
    from pydantic import JsonValue

# The hosted models in docs, help texts and examples. If a vendor retires a model, replace its name here and in the
# places that `tests/test_example_models.py` finds.

OPENAI_MODEL = "gpt-6-luna"
ANTHROPIC_MODEL = "claude-sonnet-5-5"

EXAMPLE_MODELS = (OPENAI_MODEL, "gpt-6.1-sol", ANTHROPIC_MODEL)

Provider = Literal["openai", "openai-responses", "anthropic", "azure", "bedrock", "vertex"]
"""The API of a model: a vendor's own API, or a cloud with several of these APIs."""

PROVIDERS: tuple[Provider, ...] = get_args(Provider)

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
OWN_URLS: Mapping[Provider, str] = {
    "openai": OPENAI_URL,
    "openai-responses": OPENAI_URL,
    "anthropic": ANTHROPIC_URL,
}
"""The address of each vendor. The addresses of clouds depend on their settings."""

_API_OF: Mapping[Provider, Api] = {"openai": "chat", "openai-responses": "responses", "anthropic": "messages"}

_KEYS_AT = {OPENAI_URL: "OPENAI_API_KEY", ANTHROPIC_URL: "ANTHROPIC_API_KEY"}

SET_BY_PROGRAM = ("model", "messages", "input", "tools", "stream", "stream_options", "system", "instructions")
"""Keys that the program writes into each request, so `params` cannot have them."""

Origin = Literal["suite", "project", "user", "command line"]
"""The origin of a model's specification: a suite (`openai:…@URL` among its models), the project's `workbench.toml`, the
user's own `workbench.toml`, or the command line. Models of the first two need trust."""

Thoughts = Literal["reasoning", "answer"]
"""The treatment of thoughts (`<think>…</think>`) at the beginning of a model's text."""

THOUGHTS: tuple[Thoughts, ...] = get_args(Thoughts)
"""All treatments of thoughts, the default first."""

DEFAULT_READ_TIMEOUT_S = 100.0


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in US dollars per million tokens. Without `cached_input`, cached input has the price `input`."""

    input: float
    output: float
    cached_input: float | None = None


@dataclass(frozen=True)
class ModelSpec:
    """The specification of a model: how to reach it, its price and its limits.

    `name` is the user's name for the model, and `model` its name at the endpoint. `api_key_env` is the environment
    variable that holds its key, or `None` if it needs no key. `key_command` is a command that prints the key. `params`,
    `headers` and `query` go into every request. Variables in headers and query are not yet replaced by their values.
    `legacy_auth` sends an Anthropic key as `x-api-key` with the older API version, as some gateways require.

    `read_timeout_s` is how long the endpoint may send nothing, in seconds. `images` and `audio` say whether the model
    accepts such content. If `images` is `None`, `accepts_images` decides. `file` is the `workbench.toml` with the
    model, if any.

    A model at a cloud has `cloud` settings. Its `base_url` and `api_key_env` come from the settings until `ModelBook`
    has found its `place`, and then from the place."""

    name: str
    provider: Provider
    model: str
    base_url: str
    api_key_env: str | None = None
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    price: Price | None = None
    concurrency: int | None = None
    requests_per_minute: float | None = None
    read_timeout_s: float = DEFAULT_READ_TIMEOUT_S
    legacy_auth: bool = False
    thoughts: Thoughts = "reasoning"
    images: bool | None = None
    audio: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    key_command: tuple[str, ...] = ()
    origin: Origin = "user"
    file: Path | None = None
    cloud: CloudSettings | None = None
    place: CloudPlace | None = None

    @property
    def api(self) -> Api:
        """The wire format of the model's endpoint."""
        if self.cloud is not None:
            return self.cloud.api
        if (cloud := self.cloud_name) is not None:
            return default_api(cloud, self.model)
        return _API_OF[self.provider]

    @property
    def cloud_name(self) -> Cloud | None:
        """The cloud of the model, or `None` for a model at no cloud."""
        return next((cloud for cloud in CLOUDS if cloud == self.provider), None)

    @property
    def accepts_images(self) -> bool:
        """Whether images are sent to the model. By default, only vendors' own addresses and clouds get images."""
        if self.images is not None:
            return self.images
        if (cloud := self.cloud_name) is not None:
            # Chat Completions at Bedrock serves models of many makers, most of which read only text.
            return cloud != "bedrock" or self.api == "messages"
        return self.base_url.rstrip("/") == OWN_URLS[self.provider]

    @property
    def problem(self) -> str | None:
        """The reason why a model at a cloud cannot be used, or `None` if it can."""
        if self.place is not None and self.place.problem:
            return f"the model {self.name} {self.place.problem}"
        return None

    @property
    def credentials(self) -> str:
        """The source of a cloud model's credentials, or "" if a variable holds the key or the model is at no cloud."""
        if self.place is None:
            return ""
        return self.place.source.text

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables whose values are secret: variables in requests, and keys for a cloud."""
        if self.place is None:
            return self.variables
        return (*self.variables, *self.place.source.secret_variables)

    @property
    def description(self) -> str:
        """One line with the model's name at the endpoint, the address, and the source of the key."""
        if self.place is not None and self.place.problem:
            return f"{self.model}, which {self.place.problem}"
        key = self.credentials or "no key"
        if self.api_key_env:
            key = f"the key in {self.api_key_env}"
        elif self.key_command:
            key = f"the key that {self.command_text} prints"
        elif self.has_key_header:
            key = f"its header {self.key_header}"
        return f"{self.model} at {self.base_url} with {key}"

    @property
    def command_text(self) -> str:
        return shlex.join(self.key_command)

    @property
    def key_header(self) -> str:
        return key_header(self.provider, legacy_auth=self.legacy_auth)

    @property
    def has_key_header(self) -> bool:
        """Whether the settings of the model include the header that usually carries the key."""
        return self.key_header in map(str.lower, self.headers)

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables of the key, the headers and the query."""
        names = [*variables_of(self.headers), *variables_of(self.query)]
        if self.api_key_env is not None:
            names.insert(0, self.api_key_env)
        return tuple(dict.fromkeys(names))

    @property
    def endpoint(self) -> str:
        """A text that identifies the endpoint: its address, and the query and headers before variables are replaced.

        Headers are included because a gateway may choose the model by a header."""
        identity = self.base_url
        for settings in (self.query, {name.lower(): value for name, value in self.headers.items()}):
            if settings:
                identity += f" with {settings_text(dict(sorted(settings.items())))}"
        return identity


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The model for judged checks that name no model.

    `by_suite` is true if the project's `workbench.toml` chose it."""

    name: str
    by_suite: bool = False


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The content of a `workbench.toml`: the models by name, in the order of the file, and the default judge."""

    models: Mapping[str, ModelSpec]
    judge: str | None = None


class ConfigError(Exception):
    """Settings that cannot be used. Each of `problems` names the file and the place in it, and gives advice."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class UnknownModelError(ConfigError):
    """The name of a model that is not known. The message lists the models and explains how to name a model."""


def usual_key_variable(base_url: str) -> str | None:
    """Return the variable that usually holds the key for a vendor's address, or `None` for any other address."""
    # A vendor's key must not be sent to another address.
    return _KEYS_AT.get(base_url)


def key_header(provider: str, *, legacy_auth: bool) -> str:
    """Return the name of the header that carries the key for a provider's models."""
    # Earlier versions of Anthropic's API, and other implementations still, expect the key as `x-api-key`.
    if provider == "anthropic" and legacy_auth:
        return "x-api-key"
    return "authorization"


_ENDPOINT_PATH = late_pattern(r"/chat/completions$|/v1/messages$|(?<=/v1)/(responses|models)$")


def checked_base_url(text: str) -> str:
    """Return the address of an endpoint without a final slash.

    Raises ValueError for an invalid address. The message never quotes a password."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is not an address: write one such as http://localhost:1234/v1") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("must be an http or https address, such as http://localhost:1234/v1")
    if "@" in parts.netloc:
        raise ValueError("must not contain a user or a password: name the variable that holds the key in api_key_env")
    if "#" in text:
        raise ValueError("must end with its path, without '#': put other settings of requests into params or query")
    if "?" in text:
        raise ValueError("must end with its path, without '?' and anything after it")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must not contain spaces or other characters that addresses cannot have")
    text = text.rstrip("/")
    base = _ENDPOINT_PATH.sub("", text)
    if base != text:
        raise ValueError(f"must end before the path that the API adds to it: did you mean {base}?")
    return text


_VARIABLE = late_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_LIKE_A_KEY = late_pattern(r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}")
_MAX_LOWER_CASE_NAME_CHARS = 20
"""The longest name of a variable with small letters. Longer names are usually in capitals, and keys are not."""


def checked_key_variable(text: str) -> str:
    """Return `text` unchanged if it can be the name of an environment variable.

    Raises ValueError otherwise, and for a text that looks like a key. The message does not quote the text."""
    long_and_lower = len(text) > _MAX_LOWER_CASE_NAME_CHARS and text != text.upper()
    if not _VARIABLE.fullmatch(text) or long_and_lower or any(map(_LIKE_A_KEY.fullmatch, text.split("_"))):
        raise ValueError(
            "must be the name of an environment variable, such as OPENAI_API_KEY, never a key: keep keys in the "
            f"environment or in .env, and write names of more than {_MAX_LOWER_CASE_NAME_CHARS} characters in capitals"
        )
    return text


def checked_params(params: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the additional parameters of requests unchanged if they are valid.

    Raises ValueError for keys that the program sets, and for infinite numbers and NaN, which JSON lacks."""
    taken = [name for name in SET_BY_PROGRAM if name in params]
    if taken:
        raise ValueError(f"must not contain {', '.join(map(repr, taken))}, which the program sets")
    try:
        json.dumps(params, allow_nan=False)
    except ValueError:
        raise ValueError("must contain only JSON values: remove nan and inf") from None
    return params


def checked_judge(name: str) -> str:
    """Return `name` unchanged if the model can be a judge.

    Raises ValueError for a built-in model, because it is not a language model."""
    return _language_model(name, "judge")


def checked_user_model(name: str) -> str:
    """Return `name` unchanged if the model can simulate users.

    Raises ValueError for a built-in model, because it is not a language model."""
    return _language_model(name, "play a user")


def _language_model(name: str, to: str) -> str:
    if not name:
        raise ValueError(f"must name a model: write one as for --model, such as openai:{OPENAI_MODEL}")
    if name == "offline" or name.startswith(("offline:", "replay:")):
        raise ValueError(f"must be a language model: {name} is not one, so it cannot {to}")
    return name


DEFAULT_CONCURRENCY = 8
"""The default number of runs at the same time."""


def is_loopback(url: str) -> bool:
    """Return whether a URL is an address of this machine. Such an address is reached without a proxy."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


@dataclass(frozen=True, slots=True)
class Preset:
    """A known endpoint: its address, and the variable that usually holds its key.

    `name` is its name on the command line, and `title` its name for people."""

    name: str
    title: str
    base_url: str
    api_key_env: str | None = None
    provider: Provider = "openai"

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is a server on this machine."""
        return is_loopback(self.base_url)

    @property
    def place(self) -> str:
        """The endpoint's host and port."""
        return urlsplit(self.base_url).netloc

    def model_name(self, model: str) -> str | None:
        """Return a name that describes a model at this endpoint, such as `openai:gpt-6-luna`.

        Returns `None` if such a name is not enough, so that the model needs an entry in a `workbench.toml`."""
        # Such a name does not contain the variable of the key, so the model must use the usual variable.
        if self.api_key_env != usual_key_variable(self.base_url):
            return None
        if self.base_url == OWN_URLS.get(self.provider):
            return f"{self.provider}:{model}"
        return f"{self.provider}:{model}@{self.base_url}"

    def spec(self, model: str = "") -> ModelSpec:
        return ModelSpec(self.title, self.provider, model, self.base_url, self.api_key_env, origin="command line")


PRESETS = (
    Preset("openai", "OpenAI", OPENAI_URL, "OPENAI_API_KEY"),
    Preset("anthropic", "Anthropic", ANTHROPIC_URL, "ANTHROPIC_API_KEY", "anthropic"),
    Preset("gemini", "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    Preset("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    Preset("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    Preset("deepseek", "DeepSeek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    Preset("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    Preset("ollama", "Ollama", "http://localhost:11434/v1"),
    Preset("lm-studio", "LM Studio", "http://localhost:1234/v1"),
    Preset("vllm", "vLLM", "http://localhost:8000/v1"),
)
