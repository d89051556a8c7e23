"""The options of an evaluation, which are checked when they are created."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from pydantic import JsonValue

from workbench.config.model_book import ModelOptions
from workbench.config.models import DEFAULT_CONCURRENCY, ConfigError
from workbench.dataclasses import dataclass
from workbench.engine.plan import CellKey, PlannedRun, Selection
from workbench.limits import MAX_CLUSTER_WORKERS, MAX_LOOKS, MAX_REPEATS
from workbench.providers.built_in import is_built_in
from workbench.startup import late_pattern
from workbench.suite.grading_model import GraderName, RepeatRule
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import NO_VARIANTS, SEPARATOR, Variants, model_of

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.providers.model import Model


class OptionsError(ValueError):
    """The options contradict each other or are out of range. `problems` has a sentence for each problem."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@runtime_checkable
class OwnModel(Protocol):
    """A model that the caller provides, such as the caller's own agent. Suites cannot name it."""

    @property
    def name(self) -> str:
        """The name that results show."""
        ...

    def open(self, planned: PlannedRun) -> Model:
        """Return the model for one run.

        This method and the model are called on the engine's thread. Raises ModelError if there is no model for the run.
        """
        ...


@dataclass(frozen=True)
class AddedVariants:
    """Variants that are added to every suite of a batch.

    `tables` have the form of `[[variants]]` in a suite. Messages name `origin`, where the variants come from."""

    tables: tuple[Mapping[str, object], ...]
    origin: str


@dataclass(frozen=True)
class Resume:
    """A request to resume a batch of the history.

    `batch` is the batch's number or name. If it is `None`, the latest batch with missing runs is resumed. `anyway`
    resumes the batch even if the address or the settings of a model have changed."""

    batch: str | None = None
    anyway: bool = False


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A request to stop a batch early, once a rule has decided which model is better or whether a pass rate is reached.

    The runs have a random order, which `seed` sets. If `seed` is `None`, it is derived from the plan."""

    seed: int | None = None
    looks: int | None = None
    """The number of tests of a comparison; by default, there is a test after each case."""
    gate: float | None = None
    """The pass rate that each model must reach, instead of the suites' gates."""
    worse: float | None = None
    """The pass rate that counts as clearly too low; by default 0.1 below the gate."""


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A request to run only one part of a plan, because other machines run the other parts.

    The histories of all shards are merged afterwards."""

    index: int
    """The number of the shard, from 1."""
    of: int
    """The number of shards of the plan."""
    plan_id: str | None = None
    """An id that all shards of one batch share. It distinguishes batches of the same plan."""
    costs: Path | None = None
    """The history whose latencies divide the runs; by default, shards take runs in turn."""


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options of runs that the command line and the Python API share."""

    base_url: str | None = None
    """The endpoint of models given by name."""
    api_key_env: str | None = None
    """The environment variable with the key for these models."""
    params: Mapping[str, JsonValue] | None = None
    """The parameters added to each request to these models."""
    cases: Sequence[str] = ()
    """The ids, names or patterns of the cases to run, such as `refund*`; all cases if empty."""
    tags: Sequence[str] = ()
    """The tags to run: a case must have at least one of them; all cases if empty."""
    repeats: int | None = None
    """The number of runs of each case with each model, instead of the numbers in the suites."""
    repeat_rule: RepeatRule | None = None
    """The rule that decides the status of a case with repeats, instead of the rules of the cases.

    With `every`, each run must pass. With `last`, only the last run counts. With `mean`, the mean score decides. With
    `majority`, most runs must pass."""
    by: GraderName | None = None
    """The deciding grader, instead of the graders that the cases choose."""
    min_score: float | None = None
    """The mean score to reach, 0 to 1. It decides instead of statuses and gates."""
    max_cost_usd: float | None = None
    """The cost limit of the batch in US dollars, including judges, instead of the suites' `limits.batch_cost_usd`.

    Runs that would exceed the limit are not started. The prices of all models must be known."""
    concurrency: int = DEFAULT_CONCURRENCY
    """The number of runs at a time on each endpoint, unless the model sets another number."""
    cluster: str | None = None
    """The dask cluster that executes the runs: `local:8`, or the address of a scheduler (`tcp://scheduler:8786`)."""
    execute: bool | None = None
    """Whether tools marked read-only are executed; with `None`, each case decides."""
    execute_all: bool = False
    """Whether all tools are executed, even those that are not read-only."""
    judge: str | None = None
    """The judge of checks that name no judge, instead of the judge in `workbench.toml`."""
    user_model: str | None = None
    """The model that plays the users of conversations without a model of their own."""
    users: str | None = None
    """Recordings (`replay:DIR`) from which the users' messages are taken. The tested model still answers itself."""
    renew_judgements: bool = False
    """Whether judges are asked again about values that they have already judged."""
    original_pace: bool = False
    """Whether recordings of `replay:` models play at the original pace instead of at once."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(CommonOptions):
    """The options of a plan: suites, cases, models, number of repeats, and how the runs are executed."""

    suites: tuple[str | Path | SuiteFile, ...] = ()
    """Suite files, folders with suites, or loaded suites."""
    models: tuple[str | OwnModel, ...] = ()
    """The models to run, instead of the models that the suites name."""
    variants: Variants = NO_VARIANTS
    """The variants of the suites to run."""
    added_variants: tuple[AddedVariants, ...] = ()
    """Variants for this batch only. They always run, regardless of `variants`."""
    cells: frozenset[CellKey] | None = None
    """The pairs of a case and a model to run; all pairs if `None`."""
    compares: bool = False
    """Whether the history shows the batch as a comparison of its models."""
    until: Stop | None = None
    """The rule by which the batch may stop before its last run."""
    shard: Shard | None = None
    """The part of the plan to run; by default, the whole plan."""
    resume: Resume | None = None
    history: Path | None = None
    """The file in which the batch is recorded, if any."""
    history_named: bool = False
    """Whether the user named this history. If so, a failure to write it is an error."""

    def __post_init__(self) -> None:
        problems = [*self._problems()]
        if problems:
            raise OptionsError(*problems)

    @property
    def model_names(self) -> tuple[str, ...]:
        """The names of the models, each once."""
        return tuple(dict.fromkeys(map(_name, self.models)))

    @property
    def all_variants(self) -> Variants:
        """The variants to run, including those in `added_variants`."""
        names = set(self.variants.names)
        for added in self.added_variants:
            names.update(str(table.get("name")) for table in added.tables)
        return replace(self.variants, names=frozenset(names))

    @property
    def own_models(self) -> dict[str, OwnModel]:
        return {model.name: model for model in self.models if not isinstance(model, str)}

    @property
    def own_openers(self) -> dict[str, Callable[[PlannedRun], Model]]:
        """The functions that open the caller's own models, by name."""
        return {name: model.open for name, model in self.own_models.items()}

    @property
    def model_options(self) -> ModelOptions:
        """The options for models and judges.

        Raises ConfigError."""
        return ModelOptions(
            frozenset(self.model_names),
            self.base_url,
            self.api_key_env,
            dict(self.params or {}),
            self.judge,
            self.user_model,
            self.users,
        )

    @property
    def selection(self) -> Selection:
        return Selection(frozenset(self.cases), frozenset(self.tags))

    def _problems(self) -> Iterator[str]:
        if not self.suites and self.resume is None:
            yield "no suite is given"
        if "" in self.suites:
            # An empty text is usually an unset variable of a script. `Path("")` would be the current folder.
            yield "an empty path is not allowed: write '.' for the current folder"
        if "" in self.model_names:
            yield "a model has no name"
        for name in self.model_names:
            if SEPARATOR in name:
                yield f"{model_of(name)!r} is the model of {name!r}: choose the variant with --variant"
        for name, own in self.own_models.items():
            # Results identify models only by name, so the names must differ.
            if is_built_in(name) or any(model != own and _name(model) == name for model in self.models):
                yield f"two models are called {name!r}: give your own model another name"
        if self.repeats is not None and not 1 <= self.repeats <= MAX_REPEATS:
            yield f"repeats {MAX_REPEATS.reached(given=self.repeats)}"
        if self.concurrency < 1:
            yield f"concurrency must be a whole number of at least 1, not {self.concurrency}"
        if self.cluster is not None:
            yield from self._problems_of_cluster(self.cluster)
        if self.min_score is not None and not 0 <= self.min_score <= 1:
            yield f"a score to reach must be a number from 0 to 1, not {self.min_score}"
        if self.max_cost_usd is not None and not 0 < self.max_cost_usd < math.inf:
            yield f"a limit on cost must be a number of US dollars above 0, not {self.max_cost_usd}"
        if self.until is not None and self.min_score is not None:
            yield "a mean score needs all runs: leave out either --min-score or --until"
        if self.shard is not None:
            yield from self._problems_of_shard(self.shard)
        if self.until is not None and self.until.looks is not None and not 1 <= self.until.looks <= MAX_LOOKS:
            yield f"the number of looks must be from 1 to {MAX_LOOKS}, not {self.until.looks}"
        try:
            _ = self.model_options
        except ConfigError as error:
            yield from error.problems

    def _problems_of_shard(self, shard: Shard) -> Iterator[str]:
        if not 1 <= shard.index <= shard.of:
            yield f"there is no shard {shard.index}/{shard.of}: write one of 1/{shard.of} to {shard.of}/{shard.of}"
        if self.until is not None:
            yield "a shard has only its own runs, so --until cannot decide: leave out either --shard or --until"
        if self.compares:
            yield "models can be compared only when no run is missing: merge the shards of 'workbench run' first"
        if self.history is None and self.resume is None:
            yield "shards are merged from their histories, so a shard needs one"

    def _problems_of_cluster(self, cluster: str) -> Iterator[str]:
        try:
            cluster_address(cluster)
        except ValueError as error:
            yield str(error)
        if self.own_models:
            yield f"{next(iter(self.own_models))!r} exists only in this process: name a model that a cluster can use"
        if self.until is not None:
            yield "--until decides after each case, but a cluster runs many at a time: leave out --cluster"


AppView = Literal["run", "compare"]


@dataclass(frozen=True)
class AppStart:
    """The runs with which the app starts, as `workbench run --break` and `workbench compare` request them.

    Runs pause at `breakpoints`. `opens` is the first view: a paused run, or the models side by side. `only_differences`
    applies only to models side by side. The options `renew_judgements` and `original_pace` apply while the app is
    open."""

    options: RunOptions
    breakpoints: tuple[Breakpoint, ...] = ()
    opens: AppView = "run"
    only_differences: bool = False


def _name(model: str | OwnModel) -> str:
    if isinstance(model, str):
        return model
    return model.name


_SCHEDULER = late_pattern(r"(?:tcp|tls)://[^\s/@]+:(\d{1,5})")
_LOCAL = "local:"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A cluster: a number of worker processes on this machine, or the address of a dask scheduler.

    `workers` is 0 for a scheduler."""

    text: str
    workers: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the workers are started on this machine for this batch."""
        return self.workers > 0


def cluster_address(text: str) -> ClusterAddress:
    """Parse the address of a cluster, such as `local:8` or `tcp://scheduler:8786`.

    Raises ValueError for any other text."""
    if text.startswith(_LOCAL):
        number = text.removeprefix(_LOCAL)
        if number.isdecimal() and 1 <= int(number) <= MAX_CLUSTER_WORKERS:
            return ClusterAddress(text, int(number))
        raise ValueError(MAX_CLUSTER_WORKERS.reached(given=repr(number)))
    if (match := _SCHEDULER.fullmatch(text)) is not None and 0 < int(match[1]) < 65536:
        return ClusterAddress(text)
    raise ValueError(
        f"a cluster must be local:N or the address of a dask scheduler, such as tcp://scheduler:8786, not {text!r}"
    )
