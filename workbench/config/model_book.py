"""Finds out how a model is reached from what it is called."""

from __future__ import annotations

from pathlib import Path

from workbench.config.models import ModelSpec, UnknownModelError


class ModelBook:
    """The models that are named in a `workbench.toml` beside suites and in the user's own, and any that a text like
    `openai:gpt-4o-mini` or `openai:llama-3.1@http://localhost:1234/v1` describes."""

    def __init__(self, config_folder: Path) -> None:
        self._config_folder = config_folder

    def resolve(self, name: str, folder: Path, *, by_suite: bool) -> ModelSpec:
        """How the model is reached for the suites in a folder. `by_suite`: the name stands in a suite, not on the
        command line.

        Raises UnknownModelError when there is none, ConfigError when a `workbench.toml` cannot be used.
        """
        raise UnknownModelError(f"there is no model {name!r}")
