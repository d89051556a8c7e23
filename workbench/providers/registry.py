"""Models by name: those built in, and those behind endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.providers.http.check import CheckResult
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import Model, ModelError

__all__ = [
    "OFFLINE",
    "REPLAY",
    "CheckResult",
    "Endpoints",
    "ModelInfo",
    "built_in_models",
    "is_built_in",
    "open_built_in",
]

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


def open_built_in(name: str, folder: Path, *, pace_ms: float = 0, own_pace: bool = False) -> Model:
    """A built-in model. `pace_ms` is the pause between two pieces of the offline model's answers, `own_pace` plays a
    recording at the pace at which it was made; a recording's path is relative to `folder`.

    Raises ModelError when a recording cannot be read.
    """
    if name == OFFLINE:
        from workbench.providers.offline.model import OfflineModel

        return OfflineModel(pace_ms=pace_ms)
    if name.startswith(REPLAY):
        from workbench.providers.replay import open_replay

        return open_replay(name, folder / name.removeprefix(REPLAY), own_pace=own_pace)
    raise ModelError(f"there is no model {name!r}")
