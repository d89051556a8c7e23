"""The settings of the models and judges that suites use, and the cost of a run at its model's price."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from workbench.checks.combined_kinds import Judged
from workbench.config.agents import agent_named
from workbench.config.model_book import ModelBook
from workbench.config.models import ConfigError, JudgeChoice, ModelSpec, Price, checked_judge, checked_user_model
from workbench.config.passed_variables import passed_variables
from workbench.config.program import Environment
from workbench.providers.built_in import is_built_in
from workbench.suite.model import Case
from workbench.suite.settings import judged_checks
from workbench.suite.variants import model_of
from workbench.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from workbench.engine.plan import PlannedRun

FREE = Price(0.0, 0.0)
"""The price of a built-in model."""

_PRICED_TOKENS = 1_000_000


def cost_of(trajectory: Trajectory, price: Price | None) -> float | None:
    """Return the cost of a run in US dollars: 0 if no model was asked, `None` if price or tokens are unknown.

    A cost that an agent reports takes precedence. Failed attempts report no tokens and are left out. Rounds that a fork
    replays cost nothing."""
    answers = trajectory.requested_rounds
    if not answers:
        return 0.0
    reported = [each.cost_usd for each in answers if each.cost_usd is not None]
    if reported:
        return sum(reported)
    if price is None:
        return None
    # A free model costs nothing even if its server reports no tokens, like many local servers.
    if not any((price.input, price.output, price.cached_input)):
        return 0.0
    usage = trajectory.usage
    uncounted = any(each.stop_reason is not None and each.usage is None for each in answers)
    if usage is None or uncounted:
        return None
    # Cached tokens are part of the input tokens, but some endpoints report more cached tokens than input tokens.
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    dollars = (usage.input_tokens - cached) * price.input + cached * cached_price + usage.output_tokens * price.output
    return dollars / _PRICED_TOKENS


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _SettingsCache(Generic[_Key, _Value]):
    """Caches settings by key, and the ConfigErrors of settings that could not be read."""

    def __init__(self) -> None:
        self.answers: dict[_Key, _Value | ConfigError] = {}

    def get(self, key: _Key, find: Callable[[], _Value] | None) -> _Value:
        """Return the cached setting of a key, or find the setting with `find`.

        Raises ConfigError if `find` raised ConfigError for this key, now or in an earlier call. If `find` is `None`, a
        new key also raises ConfigError."""
        if key not in self.answers:
            if find is None:
                raise ConfigError("this setting was not approved: start the run again")
            try:
                self.answers[key] = find()
            except ConfigError as error:
                self.answers[key] = error
        answer = self.answers[key]
        if isinstance(answer, ConfigError):
            raise answer
        return answer


class ModelSpecs:
    """The models, judges and environment variables of suites, each read once.

    Suites are identified by their paths."""

    def __init__(self, models: ModelBook, environment: Environment) -> None:
        self._models = models
        self._environment = environment
        self._environments = _SettingsCache[Path, Mapping[str, str]]()
        self._specs = _SettingsCache[tuple[str, Path, bool, bool], ModelSpec]()
        self._judges = _SettingsCache[Path, JudgeChoice | None]()
        self._users = _SettingsCache[tuple[Path, str], ModelSpec | None]()
        self._sealed = False

    def merge(self, other: ModelSpecs) -> None:
        """Add all settings that another object has read."""
        self._environments.answers |= other._environments.answers
        self._specs.answers |= other._specs.answers
        self._judges.answers |= other._judges.answers
        self._users.answers |= other._users.answers

    def freeze(self) -> None:
        """Forbid reading further settings. From now on, a setting that was not read raises ConfigError."""
        # The user has approved the settings read so far, and a file may change between approval and run.
        self._sealed = True

    def load(self, runs: Iterable[PlannedRun]) -> None:
        """Read all settings that the runs need.

        Errors are ignored here, because the runs report them."""
        runs = tuple(runs)
        for run in {(run.file.path, run.model, run.model_of_suite): run for run in runs}.values():
            with suppress(ConfigError):
                self.of(run)
        checks: dict[Path, list[Judged]] = {}
        for run in {(run.file.path, run.written.id): run for run in runs}.values():
            case = run.case
            checks.setdefault(run.file.path, []).extend(judged_checks(run.suite, case))
            if case.conversation is not None:
                with suppress(ConfigError):
                    self.user_of(run.file.path, case)
        for suite, of_suite in checks.items():
            self.load_judges(suite, of_suite)

    def passed_variables(self) -> tuple[str, ...]:
        """Return the names of the shell variables that every command of a trusted suite receives."""
        return passed_variables(self._environment.variables)

    def load_judges(self, suite: Path, checks: Iterable[Judged]) -> None:
        """Read the environment of a suite and the judge settings of some checks."""
        with suppress(ConfigError):
            self.environment_at(suite)
        with suppress(ConfigError):
            self._judge_at(suite)
        for check in checks:
            with suppress(ConfigError):
                self.judge_of(suite, check)

    def environment_at(self, suite: Path) -> Mapping[str, str]:
        """Return the environment variables for a suite.

        Raises ConfigError if they cannot be read."""
        # The environment is copied, because a module imported into this process may change it.
        return self._environments.get(suite, self._unless_sealed(lambda: dict(self._environment.of(suite.parent))))

    def of(self, run: PlannedRun) -> ModelSpec | None:
        """Return the settings of a run's model.

        Return `None` for a built-in model, a model of the caller, a subject and an agent. Raises ConfigError if the
        settings are missing or wrong."""
        if run.own_model is not None or run.subject is not None:
            return None
        variant = run.variant
        spec = self.of_model(run.model, run.file.path, by_suite=run.model_of_suite)
        if spec is None or variant is None or not variant.params:
            return spec
        return replace(spec, params={**spec.params, **variant.params})

    def of_model(self, name: str, suite: Path, *, by_suite: bool) -> ModelSpec | None:
        """Return the settings of a model for a suite, without the changes of a variant.

        `by_suite` means that the suite names the model, not the person who runs it."""
        name = model_of(name)
        if is_built_in(name) or agent_named(name) is not None:
            return None
        return self._resolved(suite, name, by_suite)

    def found_for(self, suite: Path) -> Iterator[tuple[ModelSpec, bool]]:
        """Yield the models and judges found for a suite, each with a flag.

        The flag is True if the suite's own files name the model, not the person who runs the suite."""
        for (_, path, by_suite, _), spec in self._specs.answers.items():
            if path == suite and isinstance(spec, ModelSpec):
                yield spec, by_suite

    def of_project(self, suite: Path) -> tuple[ModelSpec, ...]:
        """Return the models in the project's `workbench.toml`.

        Raises ConfigError for mistakes in it."""
        return self._models.of_project(suite.parent)

    def judge_of(self, suite: Path, check: Judged) -> ModelSpec:
        """Return the settings of the judge of a check: the model that the check names, or else the chosen judge.

        Raises ConfigError when there is no judge, when the model cannot judge, or when its settings are missing."""
        return judge_of(check, partial(self._judge_at, suite), partial(self._resolved, suite, judges=True))

    def user_of(self, suite: Path, case: Case) -> ModelSpec | None:
        """Return the settings of the model that plays the user of a case; `None` if no model plays the user.

        Raises ConfigError when no model is chosen, when the model cannot play, or when its settings are missing."""
        table = case.conversation
        if table is None or not table.is_played or self._models.options.users is not None:
            return None

        def find() -> ModelSpec | None:
            name = table.model or self._models.options.user_model
            if name is None:
                raise ConfigError(NO_USER_MODEL)
            try:
                checked_user_model(name)
            except ValueError as error:
                raise ConfigError(f"the user's model {error}") from None
            return self._models.resolve(name, suite.parent, by_suite=table.model is not None, judges=True)

        return self._users.get((suite, case.id), self._unless_sealed(find))

    def lacks_player(self, case: Case) -> bool:
        """Return whether a case needs a model to play its user, and no such model is chosen."""
        table, options = case.conversation, self._models.options
        if table is None or not table.is_played or options.users is not None:
            return False
        return table.model is None and options.user_model is None

    @property
    def replayed_users(self) -> str | None:
        """The recordings whose user messages every case replays, as `replay:DIR`; `None` if none are chosen."""
        return self._models.options.users

    def _judge_at(self, suite: Path) -> JudgeChoice | None:
        return self._judges.get(suite, self._unless_sealed(lambda: self._models.judge(suite.parent)))

    def _resolved(self, suite: Path, name: str, by_suite: bool, *, judges: bool = False) -> ModelSpec:
        def resolve() -> ModelSpec:
            return self._models.resolve(name, suite.parent, by_suite=by_suite, judges=judges)

        return self._specs.get((name, suite, by_suite, judges), self._unless_sealed(resolve))

    def _unless_sealed(self, find: Callable[[], _Value]) -> Callable[[], _Value] | None:
        return None if self._sealed else find

    def price_of(self, run: PlannedRun) -> Price | None:
        """Return the price of a run's model; `None` if the price is unknown."""
        if run.own_model is not None or run.subject is not None:
            return None
        try:
            spec = self.of(run)
        except ConfigError:
            return None
        if spec is None:
            return FREE
        return spec.price


NO_USER_MODEL = 'no model plays the user: give --user-model MODEL, or write model = "MODEL" into [cases.user]'

NO_JUDGE = (
    'no judge is chosen: give --judge MODEL, write judge = "MODEL" into a workbench.toml, or name a model in the check'
)


def judge_of(
    check: Judged, choose: Callable[[], JudgeChoice | None], resolve: Callable[[str, bool], ModelSpec]
) -> ModelSpec:
    """Return the judge of a check: the model that the check names, or else the chosen judge.

    `resolve` returns the settings of a model, given its name and whether the suite's files name it. Raises ConfigError
    like `ModelSpecs.judge_of`."""
    if check.model is not None:
        chosen: JudgeChoice | None = JudgeChoice(check.model, by_suite=True)
    else:
        chosen = choose()
    if chosen is None:
        raise ConfigError(NO_JUDGE)
    try:
        checked_judge(chosen.name)
    except ValueError as error:
        raise ConfigError(f"the judge {error}") from None
    return resolve(chosen.name, chosen.by_suite)
