"""The plan of a batch: its runs in order, and their division into shards."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from workbench.config.agents import AGENT
from workbench.dataclasses import dataclass, kept_property
from workbench.history.records import ShardRef
from workbench.suite.files import absolute
from workbench.suite.grading_model import GRADERS, REPEAT_RULES, GraderName, RepeatRule
from workbench.suite.model import Case, Subject, Suite, Variant, agent_subject
from workbench.suite.settings import CaseSettings, settings_of
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import (
    NO_VARIANTS,
    SEPARATOR,
    UnknownVariantError,
    Variants,
    model_of,
    target_name,
    variant_of,
    varied_case,
    varied_suite,
)

if TYPE_CHECKING:
    from workbench.engine.fork import Fork
    from workbench.providers.model import Model


@dataclass(frozen=True)
class PlannedRun:
    """One run of a plan.

    `repeat` counts from 0. `run_id` is unique while the program runs. `model_of_suite` means that the suite names the
    model, not the person who runs it. `by` and `repeat_rule` are the grader and the repeat rule that the person has
    chosen; `case` already includes both. `fork` is set if the run forks another run. `own_model` is set if the model is
    an object of the Python caller; `model` is then its name.

    `written` is the case as it stands in the suite's file. If the run has a variant, `model` ends with the variant's
    name, and `suite` and `case` include the variant's changes."""

    run_id: str
    file: SuiteFile
    written: Case
    model: str
    repeat: int
    model_of_suite: bool = False
    by: GraderName | None = None
    fork: Fork | None = None
    own_model: OpenOwnModel | None = None
    repeat_rule: RepeatRule | None = None

    @property
    def written_suite(self) -> Suite:
        """The suite in the file, without the changes of a variant."""
        if self.file.suite is None:
            raise ValueError(f"{self.file.path} has problems and cannot be run")
        return self.file.suite

    @property
    def variant(self) -> Variant | None:
        """The variant of the run; `None` for a run without a variant.

        Raises UnknownVariantError."""
        # A fast test comes first, because each run reads this property many times and few runs have a variant.
        if SEPARATOR not in self.model:
            return None
        return variant_of(self.written_suite, self.model)

    @property
    def asked_model(self) -> str:
        return model_of(self.model)

    @property
    def subject(self) -> Subject | None:
        """The suite's subject or an agent such as `agent:codex`; `None` for a model."""
        if self.file.suite is None or self.own_model is not None:
            return None
        subject = self.file.suite.subject
        if subject is None or self.asked_model != subject.name:
            return agent_subject(self.asked_model)
        return subject

    @property
    def is_out_of_reach(self) -> bool:
        """Whether a subject performs the whole run by itself, so that the run cannot be held or forked."""
        return self.subject is not None and not self.subject.is_agent

    @kept_property
    def suite(self) -> Suite:
        return varied_suite(self.written_suite, self.variant)

    @kept_property
    def case(self) -> Case:
        return varied_case(self.written, self.variant)

    @kept_property
    def settings(self) -> CaseSettings:
        return settings_of(self.suite, self.case)


@dataclass(frozen=True)
class Selection:
    """A selection of cases by id and tag.

    An empty set of ids selects cases with any id. An empty set of tags selects cases with any tags or none."""

    case_ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    def includes(self, suite: Suite, case: Case) -> bool:
        return self.includes_case(case.id, (*suite.tags, *case.tags))

    def includes_case(self, case_id: str, tags: Iterable[str]) -> bool:
        """Return whether a case is selected; `tags` are the tags of the case and of its suite."""
        wanted_id = not self.case_ids or case_id in self.case_ids
        wanted_tag = not self.tags or not self.tags.isdisjoint(tags)
        return wanted_id and wanted_tag


OpenOwnModel = Callable[[PlannedRun], "Model"]
"""A function that opens a model of the caller for one run."""

OwnModels = Mapping[str, OpenOwnModel]
"""The models of the caller, by the names that runs use."""

NO_OWN_MODELS: OwnModels = MappingProxyType({})

ALL_CASES = Selection()

EarlierInstructions = Mapping[Path, Mapping[str, str]]
"""The instructions sent to earlier runs of a resumed batch, by suite and server; "" means no instructions.

Unknown instructions are left out."""

CellKey = tuple[Path, str, str]
"""A case with a model: the absolute path of the suite, the id of the case, the model."""


@dataclass(frozen=True)
class ExecutionRules:
    """The rules for executing tools on their servers in a batch.

    A call that the rules do not allow needs a person's permission. Without a person, the call is refused."""

    wanted: bool | None = None
    """Whether tools are executed in all cases; `None` leaves the decision to each case."""
    all_tools: bool = False
    """Whether tools that are not marked read-only are executed without asking."""
    exempt: Callable[[SuiteFile], bool] = lambda _file: False
    """A function that returns whether a suite's servers are known to be harmless. The servers of bundled suites are."""


SUBJECT_NOT_STEPPED = (
    "a subject makes a whole run by itself, which cannot be stepped, held or forked; choose a model for that"
)
"""The message that refuses to hold or fork the run of a subject."""

AGENT_NOT_FORKED = (
    "the conversation of an agent cannot be replayed, so its run cannot be forked; run the case again instead"
)
"""The message that refuses to fork the run of an agent."""

DEFAULT_EXECUTION = ExecutionRules()

_numbers = count(1)


def next_run_id() -> str:
    return f"run-{next(_numbers)}"


def parse_grader(name: str | None) -> GraderName | None:
    """Return the grader with a stored name; `None` without a name, or if this version does not know the grader."""
    return next((grader for grader in GRADERS if grader == name), None)


def parse_repeat_rule(name: object) -> RepeatRule | None:
    """Return the repeat rule with a stored name; `None` for any other value."""
    return next((rule for rule in REPEAT_RULES if rule == name), None)


def with_grader(case: Case, grader: GraderName | None, repeat_rule: RepeatRule | None = None) -> Case:
    """Return the case with another grader and another repeat rule. `None` leaves the case's own value."""
    update: dict[str, str] = {}
    if grader is not None:
        update["by"] = grader
    if repeat_rule is not None:
        update["repeat_rule"] = repeat_rule
    if not update:
        return case
    return case.model_copy(update={"grading": case.grading.model_copy(update=update)})


def plan_fork(
    file: SuiteFile,
    case: Case,
    model: str,
    fork: Fork,
    *,
    repeat: int = 0,
    model_of_suite: bool = False,
    grader: GraderName | None = None,
    next_run_id: Callable[[], str] = next_run_id,
) -> PlannedRun:
    # The forked run may come from a recording, whose run ids another program assigned.
    run_id = next_run_id()
    while run_id == fork.origin.run_id:
        run_id = next_run_id()
    return PlannedRun(run_id, file, with_grader(case, grader), model, repeat, model_of_suite, grader, fork)


def plan_runs(
    files: Iterable[SuiteFile],
    *,
    models: Sequence[str] = (),
    case_ids: Iterable[str] = (),
    tags: Iterable[str] = (),
    repeats: int | None = None,
    by: GraderName | None = None,
    repeat_rule: RepeatRule | None = None,
    variants: Variants = NO_VARIANTS,
    cells: Container[CellKey] | None = None,
    own_models: OwnModels = NO_OWN_MODELS,
    next_run_id: Callable[[], str] = next_run_id,
) -> tuple[PlannedRun, ...]:
    """Plan every selected case with its repeats on every model, in the order of the files.

    `models` replaces the models of suites and cases. `repeats` replaces the number of runs of each case. `by` is the
    deciding grader, and `repeat_rule` is the rule that combines repeats. Each model also runs with the `variants`. With
    `cells`, only these combinations of case and model are planned. `own_models` holds the caller's models among
    `models`. Files with errors are left out."""
    selection = Selection(frozenset(case_ids), frozenset(tags))
    runs = []
    for file in files:
        # Include the data rows in the suite's text, so that the case of a stored run can be read without the file of
        # rows.
        file = file.standalone
        if file.suite is None:
            continue
        for written in file.suite.cases:
            if not selection.includes(file.suite, written):
                continue
            case = with_grader(written, by, repeat_rule)
            chosen = _variants_of_case(case, variants)
            for model in model_and_variant_names(file.suite, models or settings_of(file.suite, case).models, chosen):
                if cells is not None and (absolute(file.path), case.id, model) not in cells:
                    continue
                by_suite = model_of(model) not in models
                own_model = own_models.get(model_of(model)) if models else None
                for repeat in range(case.repeats if repeats is None else repeats):
                    run_id = next_run_id()
                    runs.append(
                        PlannedRun(run_id, file, case, model, repeat, by_suite, by, None, own_model, repeat_rule)
                    )
    return tuple(runs)


def _variants_of_case(case: Case, variants: Variants) -> Variants:
    """Return the variants in which a case is run.

    A case may be limited to certain variants. Such a case runs only those of its variants that the plan selects. If the
    plan selects no variants, the case runs in all of its variants."""
    if not case.runs_only_in_variants:
        return variants
    own = frozenset(each.name for each in case.variants)
    if variants.all_of_them or variants == NO_VARIANTS:
        return Variants(own, plain=False)
    return Variants(own & variants.names, plain=False)


def model_and_variant_names(suite: Suite, models: Iterable[str], variants: Variants) -> tuple[str, ...]:
    """Return the distinct names of the models and variants that run the cases of a suite.

    Each model runs the suite with each selected variant and, if the plan includes it, without a variant. A variant with
    its own model runs only on that model."""
    selected: list[Variant | None] = [variant for variant in suite.variants if variants.takes(variant)]
    if variants.plain:
        selected.insert(0, None)
    # The dict keeps the order and removes duplicates: a variant with its own model appears once for each model of the
    # plan.
    names: dict[str, None] = {}
    for model in models:
        for variant in selected:
            # A host variant adds the prompt and tools of an MCP host. An agent is a host itself.
            if variant is None or not (variant.host and model.startswith(AGENT)):
                names[target_name(model, variant)] = None
    return tuple(names)


_ASKED_BY_SUITE = ("servers", "tools", "provider_tools", "mocks", "answers")
_ASKED_BY_CASE = ("each", "user", "messages", "setup", "tools", "offer", "mocks", "answers", "stop_on_failure")


def sends_same_requests(run: PlannedRun, suite: Suite, case: Case) -> bool:
    """Return whether a new run of the case would send the same requests.

    Texts, tools, mocks and limits are compared."""
    if run.case is case and run.suite is suite:
        return True
    try:
        variant, variant_now = run.variant, variant_of(suite, run.model)
    except UnknownVariantError:
        return False
    suite, case = varied_suite(suite, variant_now), varied_case(case, variant_now)
    # Graders, expectations and repeats are not compared. They change the grade of a run, but not its requests.
    before, now = run.settings, settings_of(suite, case)
    return (
        same_value(_asked_by_variant(variant), _asked_by_variant(variant_now))
        and _same_fields(run.case, case, _ASKED_BY_CASE)
        and _same_fields(run.suite, suite, _ASKED_BY_SUITE)
        and (run.case.skip is None) == (case.skip is None)
        and (before.system, before.clock, before.execute) == (now.system, now.clock, now.execute)
        and before.limits.max_rounds == now.limits.max_rounds
        and before.limits.timeout_s == now.limits.timeout_s
        and (
            not run.model_of_suite
            or run.asked_model in now.models
            or (variant is not None and variant.model is not None)
        )
        and same_value(_steps_asked(run.case), _steps_asked(case))
        and (
            run.subject is None
            or run.subject is agent_subject(run.asked_model)
            or same_value(run.subject, suite.subject)
        )
    )


def _same_fields(left: object, right: object, names: Iterable[str]) -> bool:
    return all(same_value(getattr(left, name), getattr(right, name)) for name in names)


def _asked_by_variant(variant: Variant | None) -> object:
    if variant is None:
        return None
    return variant.params, variant.changes


def same_value(left: object, right: object) -> bool:
    """Return whether two values of a suite are equal. Unlike in Python, 1, 1.0 and true differ."""
    return left is right or (left == right and repr(left) == repr(right))


def _steps_asked(case: Case) -> list[object]:
    return [(step.user, step.system, step.mock_result) for step in case.steps]


@dataclass(frozen=True)
class PlannedShard:
    """One shard of a plan that several programs or computers divide among themselves.

    `whole` holds all runs of the plan in order. `places` are the indices of this shard's runs in `whole`."""

    ref: ShardRef
    whole: tuple[PlannedRun, ...]
    places: tuple[int, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """The runs of this shard in the order of the plan. Their ids are unique among all shards."""
        runs = []
        for place in self.places:
            run = self.whole[place]
            runs.append(replace(run, run_id=run_id_at(run.run_id, place)))
        return tuple(runs)


def run_id_at(run_id: str, place: int) -> str:
    """Return an id for a run that is unique among all shards of a plan.

    The run's number in the plan is appended, unless the id already ends with it."""
    # Every program numbers its runs from 1, so runs of different shards would have the same id.
    if run_id == f"run-{place + 1}":
        return run_id
    return f"{run_id}.{place + 1}"


def places_in_turn(run_count: int, index: int, shard_count: int) -> tuple[int, ...]:
    """Return the positions in the plan of one shard's runs.

    `index` is the number of the shard, from 1. `shard_count` is the number of shards. Each shard gets every
    `shard_count`-th run. Neighbouring runs have different models, so each shard gets runs of all models."""
    return tuple(range(index - 1, run_count, shard_count))


def places_by_cost(costs: Sequence[float], index: int, shard_count: int) -> tuple[int, ...]:
    """Return the positions in the plan of one shard's runs, so that all shards cost about the same.

    `index` is the number of the shard, from 1.

    The runs are assigned from the most to the least expensive, each to the shard with the least cost so far. This is
    the greedy "longest processing time" rule of R. L. Graham, 1969. Equal costs always give the same shards."""
    # The heap has a pair for each shard: its cost so far and its number.
    load = [(0.0, shard) for shard in range(shard_count)]
    mine: list[int] = []
    for place in sorted(range(len(costs)), key=lambda place: (-costs[place], place)):
        cost, shard = load[0]
        heapq.heapreplace(load, (cost + costs[place], shard))
        if shard == index - 1:
            mine.append(place)
    return tuple(sorted(mine))


def costs_of(
    runs: Sequence[PlannedRun], means: Mapping[tuple[str, str, str], float], paths: Mapping[str, str]
) -> list[float]:
    """Return the expected duration in milliseconds of each run of a plan.

    The estimate is the mean duration of the case with the model. If it is unknown, the estimate is the mean duration of
    the model's runs, or else of all runs. The keys of `means` are the suite's path in its project, the case and the
    model. `paths` maps each suite file to its path in the project."""
    of_model: dict[str, list[float]] = {}
    for (_, _, model), mean in means.items():
        of_model.setdefault(model, []).append(mean)
    usual = {model: sum(each) / len(each) for model, each in of_model.items()}
    # If there is no mean at all, all runs get the same cost.
    of_all = sum(means.values()) / len(means) if means else 1.0
    costs = []
    for run in runs:
        cell = (paths[str(run.file.path)], run.case.id, run.model)
        costs.append(means.get(cell, usual.get(run.model, of_all)))
    return costs
