"""The models that need no endpoint, by their names."""

from __future__ import annotations

from dataclasses import dataclass

OFFLINE = "offline"
REPLAY = "replay:"
MODEL_SIGN = "#"
"""Stands between a folder of recordings and the model of which they are to be."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that is built in, and what it is in one line."""

    name: str
    description: str


def built_in_models() -> tuple[ModelInfo, ...]:
    """All of them."""
    return (
        ModelInfo(OFFLINE, "baseline, no language model: matches words, needs no network and no key"),
        ModelInfo(f"{REPLAY}FILE", "plays a recorded run again"),
    )


def is_built_in(name: str) -> bool:
    """Whether a model of that name needs no endpoint."""
    return name == OFFLINE or name.startswith(REPLAY)
