"""Models that the user has named, and how each is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

Provider = Literal["openai", "openai-responses", "anthropic"]
"""A wire format and the SDK that speaks it: Chat Completions, Responses, Messages."""

Origin = Literal["suite", "project", "user", "command line"]
"""Who said how a model is reached: a suite (`openai:…@URL` among its models), a `workbench.toml` beside it, the user's
own `workbench.toml`, or the command line. The first two need trust."""

DEFAULT_SILENCE_S = 100.0


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; `cached_input` is what those read from a cache cost, if that differs."""

    input: float
    output: float
    cached_input: float | None = None


@dataclass(frozen=True)
class ModelSpec:
    """How one model is reached.

    `name` is what the user calls it, `model` what its endpoint does. `api_key_env` is the variable that holds its key,
    `None` when it needs none. `params` go into every request under the API's own names. `silence_s` is how long the
    endpoint may send nothing, in seconds. `legacy_auth` sends an Anthropic key as `x-api-key` with the older API
    version, as gateways want it.
    """

    name: str
    provider: Provider
    model: str
    base_url: str
    api_key_env: str | None = None
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    price: Price | None = None
    concurrency: int | None = None
    requests_per_minute: float | None = None
    silence_s: float = DEFAULT_SILENCE_S
    legacy_auth: bool = False
    origin: Origin = "user"


class ConfigError(Exception):
    """Settings that cannot be used; the message names the file, the place in it and the way out."""


class UnknownModelError(ConfigError):
    """No model of that name; the message says which there are and how to write one."""
