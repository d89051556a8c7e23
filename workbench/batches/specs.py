"""How the models of one batch are reached, and in which environment. It is found out once, so that what a run changes
on disk sends no other run elsewhere than where the user was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.batches.cost import FREE
from workbench.batches.plan import PlannedRun
from workbench.config.environment import Environment
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError, JudgeChoice, ModelSpec, Price, checked_judge
from workbench.providers.built_in import is_built_in
from workbench.suite.checks import Judged


class Specs:
    """The models of one batch."""

    def __init__(self, models: ModelBook, environment: Environment) -> None:
        self._models = models
        self._environment = environment
        self._environments: dict[Path, Mapping[str, str]] = {}
        self._found: dict[tuple[str, Path, bool, bool], ModelSpec | ConfigError] = {}
        self._judges: dict[Path, JudgeChoice | None] = {}

    def environment_of(self, run: PlannedRun) -> Mapping[str, str]:
        """The variables for the suite of a run; raises ConfigError when they cannot be read."""
        folder = run.file.path.parent
        if folder not in self._environments:
            self._environments[folder] = self._environment.of(folder)
        return self._environments[folder]

    def of(self, run: PlannedRun) -> ModelSpec | None:
        """How the model of a run is reached, `None` for one that is built in; raises ConfigError when that is not
        known."""
        return self.of_model(run.model, run.file.path.parent, by_suite=run.model_of_suite)

    def of_model(self, name: str, folder: Path, *, by_suite: bool) -> ModelSpec | None:
        """As `of`: a model that is named for the suites of a folder, by one of them or by the person who runs it."""
        return None if is_built_in(name) else self._resolved(name, folder, by_suite)

    def judge_of(self, run: PlannedRun, check: Judged) -> ModelSpec:
        """How the model that judges is reached: the one that the check names, else the one that is chosen. Raises
        ConfigError when there is none, when it cannot judge, or when it is not known how to reach it."""
        folder = run.file.path.parent
        return judge_of(
            check,
            lambda: self._judge_in(folder),
            lambda name, by_suite: self._resolved(name, folder, by_suite, judges=True),
        )

    def _judge_in(self, folder: Path) -> JudgeChoice | None:
        if folder not in self._judges:
            self._judges[folder] = self._models.judge(folder)
        return self._judges[folder]

    def _resolved(self, name: str, folder: Path, by_suite: bool, *, judges: bool = False) -> ModelSpec:
        asked = (name, folder, by_suite, judges)
        if asked not in self._found:
            try:
                self._found[asked] = self._models.resolve(name, folder, by_suite=by_suite, judges=judges)
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
        return spec.price if spec is not None else FREE


NO_JUDGE = (
    'no judge is chosen: give --judge MODEL, write judge = "MODEL" into a workbench.toml, or name a model in the check'
)


def judge_of(
    check: Judged, choose: Callable[[], JudgeChoice | None], resolve: Callable[[str, bool], ModelSpec]
) -> ModelSpec:
    """The model that judges a check: its own, else the chosen one. `resolve` finds a model by its name and whether it
    is the suite's, or its settings', word. Raises ConfigError as `Specs.judge_of` does."""
    chosen = choose() if check.model is None else JudgeChoice(check.model, by_suite=True)
    if chosen is None:
        raise ConfigError(NO_JUDGE)
    try:
        checked_judge(chosen.name)
    except ValueError as error:
        raise ConfigError(f"the judge {error}") from None
    return resolve(chosen.name, chosen.by_suite)
