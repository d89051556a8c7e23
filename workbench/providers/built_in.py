"""The names of the models that need no endpoint."""

from __future__ import annotations

from workbench.dataclasses import dataclass

OFFLINE = "offline"
REPLAY = "replay:"
MODEL_SIGN = "#"
"""Separates a folder of recordings from the recorded model to choose."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A built-in model, with a description in one line."""

    name: str
    description: str


def built_in_models() -> tuple[ModelInfo, ...]:
    """Returns all built-in models."""
    return (
        ModelInfo(OFFLINE, "baseline, not a language model: matches words, needs no network and no key"),
        ModelInfo(f"{REPLAY}FILE", "replays a recorded run"),
    )


def is_built_in(name: str) -> bool:
    """Returns whether a model of that name needs no endpoint."""
    return name == OFFLINE or name.startswith(REPLAY)
