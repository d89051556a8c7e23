"""Models by name."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.providers.model import Model, ModelError

OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that can be opened by its name, and what it is in one line."""

    name: str
    description: str


def known_models() -> tuple[ModelInfo, ...]:
    """Every model that this installation can open."""
    return (ModelInfo(OFFLINE, "baseline, no language model: matches words, needs no network and no key"),)


def open_model(name: str, *, pace_ms: float = 0) -> Model:
    """The model of that name; `pace_ms` is the pause between two pieces of a model that sets its own pace.

    Raises ModelError when there is none.
    """
    if name == OFFLINE:
        from workbench.providers.offline.model import OfflineModel

        return OfflineModel(pace_ms=pace_ms)
    raise ModelError(f"there is no model {name!r}: only '{OFFLINE}' is built into this version, choose it instead")
