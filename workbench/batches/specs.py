"""How the models of one batch are reached, and in which environment. It is found out once, so that what a run changes
on disk sends no other run elsewhere than where the user was told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.batches.plan import PlannedRun
from workbench.config.environment import Environment
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError, ModelSpec, Price
from workbench.providers.built_in import is_built_in


class Specs:
    """The models of one batch."""

    def __init__(self, models: ModelBook, environment: Environment) -> None:
        self._models = models
        self._environment = environment
        self._environments: dict[Path, Mapping[str, str]] = {}
        self._found: dict[tuple[str, Path, bool], ModelSpec | ConfigError] = {}

    def environment_of(self, run: PlannedRun) -> Mapping[str, str]:
        """The variables for the suite of a run; raises ConfigError when they cannot be read."""
        folder = run.file.path.parent
        if folder not in self._environments:
            self._environments[folder] = self._environment.of(folder)
        return self._environments[folder]

    def of(self, run: PlannedRun) -> ModelSpec | None:
        """How the model of a run is reached, `None` for one that is built in; raises ConfigError when that is not
        known."""
        if is_built_in(run.model):
            return None
        asked = (run.model, run.file.path.parent, run.model_of_suite)
        if asked not in self._found:
            try:
                self._found[asked] = self._models.resolve(asked[0], asked[1], by_suite=asked[2])
            except ConfigError as error:
                self._found[asked] = error
        found = self._found[asked]
        if isinstance(found, ConfigError):
            raise found
        return found

    def price_of(self, run: PlannedRun) -> Price | None:
        """What the model of a run costs, `None` when that is not known."""
        try:
            spec = self.of(run)
        except ConfigError:
            return None
        return spec.price if spec is not None else None
