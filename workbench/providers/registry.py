"""Models by name: those built in, and those behind endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.model import Model, ModelError

OFFLINE = "offline"
REPLAY = "replay:"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that is built in, and what it is in one line."""

    name: str
    description: str


def built_in_models() -> tuple[ModelInfo, ...]:
    """The models that need no endpoint."""
    return (
        ModelInfo(OFFLINE, "baseline, no language model: matches words, needs no network and no key"),
        ModelInfo(f"{REPLAY}FILE", "plays a recorded run again"),
    )


def is_built_in(name: str) -> bool:
    """Whether a model of that name needs no endpoint."""
    return name == OFFLINE or name.startswith(REPLAY)


def open_built_in(name: str, *, pace_ms: float = 0, own_pace: bool = False) -> Model:
    """A built-in model. `pace_ms` is the pause between two pieces of the offline model's answers, `own_pace` plays a
    recording at the pace at which it was made.

    Raises ModelError when a recording cannot be read.
    """
    if name == OFFLINE:
        from workbench.providers.offline.model import OfflineModel

        return OfflineModel(pace_ms=pace_ms)
    raise ModelError(f"there is no model {name!r}")


class Endpoints:
    """The endpoints of a session: one connection pool and one queue for each, shared by all models behind it.

    To be used on one event loop.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def open(self, spec: ModelSpec, environment: Mapping[str, str]) -> Model:
        """The model behind its endpoint; nothing is connected and no SDK imported before its first request.

        Raises ModelError when the variable of its key is not set.
        """
        raise ModelError(f"there is no model {spec.name!r}")

    async def close(self) -> None:
        """Close all connections."""
