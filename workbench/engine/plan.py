"""The plan of a batch: which case runs on which model, how often, in which order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.history.records import ShardRef
from workbench.suite.files import absolute
from workbench.suite.model import GRADERS, REPEAT_RULES, Case, GraderName, RepeatRule, Subject, Suite, Variant
from workbench.suite.settings import CaseSettings, settings_of
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import (
    NO_VARIANTS,
    UnknownVariantError,
    Variants,
    contender,
    model_of,
    variant_of,
    varied_case,
    varied_suite,
)

if TYPE_CHECKING:
    from workbench.engine.fork import Fork
    from workbench.providers.model import Model


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run to be made.

    `repeat` counts from 0; `run_id` is unique within the program's life. `model_of_suite` says that the suite names
    the model, not the person who runs it. `by` is the grader that person has chosen instead of the suite's, and
    `repeat_rule` the rule for repeats; `case` has both already. `fork` is the run that it begins like. `own_model`
    opens a model that the caller brings along; `model` is then only its name.

    `written` is the case as the suite has it. With a variant, whose name follows that of the model in `model`,
    `suite` and `case` have its changes."""

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
        """The suite as its file has it."""
        if self.file.suite is None:
            raise ValueError(f"{self.file.path} has problems and cannot be run")
        return self.file.suite

    @property
    def variant(self) -> Variant | None:
        """The variant that is run; raises UnknownVariantError."""
        return variant_of(self.written_suite, self.model)

    @property
    def asked_model(self) -> str:
        """The name of the model without that of a variant."""
        return model_of(self.model)

    @property
    def subject(self) -> Subject | None:
        """The subject of the suite, where it is run in the place of a model."""
        subject = self.file.suite.subject if self.file.suite is not None else None
        if subject is None or self.own_model is not None or self.asked_model != subject.name:
            return None
        return subject

    @property
    def suite(self) -> Suite:
        return varied_suite(self.written_suite, self.variant)

    @property
    def case(self) -> Case:
        return varied_case(self.written, self.variant)

    @property
    def settings(self) -> CaseSettings:
        return settings_of(self.suite, self.case)


@dataclass(frozen=True)
class Selection:
    """Which cases of some suites are meant: all, or those with one of the ids and (if any) one of the tags."""

    case_ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    def takes(self, suite: Suite, case: Case) -> bool:
        return self.takes_one(case.id, (*suite.tags, *case.tags))

    def takes_one(self, case_id: str, tags: Iterable[str]) -> bool:
        """Return whether a case with this id is meant; `tags` are its own and those of its suite."""
        wanted_id = not self.case_ids or case_id in self.case_ids
        wanted_tag = not self.tags or not self.tags.isdisjoint(tags)
        return wanted_id and wanted_tag


OpenOwnModel = Callable[[PlannedRun], "Model"]
"""Opens a model that the caller brings along, for one run."""

OwnModels = Mapping[str, OpenOwnModel]
"""The models that the caller brings along, by the names that runs know them by."""

NO_OWN_MODELS: OwnModels = MappingProxyType({})

EVERYTHING = Selection()

CellKey = tuple[Path, str, str]
"""A case with a model: the absolute path of the suite, the id of the case, the model."""


@dataclass(frozen=True)
class Execution:
    """Real execution of tools in a batch.

    A call that is not covered is asked about where someone can answer, else refused."""

    wanted: bool | None = None
    """For every case, or `None` for each case's own choice."""
    all_tools: bool = False
    """Tools that are not marked read-only too, without asking."""
    exempt: Callable[[SuiteFile], bool] = lambda _file: False
    """Suites whose servers are known to do no harm: the bundled ones."""


NOT_STEPPED = "a subject does all of a run by itself: it cannot be stepped, held or forked; choose a model for that"
"""Why the run of a subject cannot be held or begin like another one."""

AS_CASES_SAY = Execution()

_numbers = count(1)


def next_run_id() -> str:
    """Return an id that no other run of this program has."""
    return f"run-{next(_numbers)}"


def grader_named(name: str | None) -> GraderName | None:
    """Return the grader of a stored name; `None` where nothing was stored, or by a program with other graders."""
    return next((grader for grader in GRADERS if grader == name), None)


def rule_named(name: object) -> RepeatRule | None:
    """Return the rule for repeats of a stored name; `None` where nothing was stored."""
    return next((rule for rule in REPEAT_RULES if rule == name), None)


def with_grader(case: Case, grader: GraderName | None, repeat_rule: RepeatRule | None = None) -> Case:
    """Return the case with another grader and another rule for its repeats; `None` keeps the case's own."""
    chosen = {"by": grader, "repeat_rule": repeat_rule}
    update = {}
    for key, value in chosen.items():
        if value is not None:
            update[key] = value
    if update:
        return case.model_copy(update={"grading": case.grading.model_copy(update=update)})
    return case


def plan_fork(
    file: SuiteFile,
    case: Case,
    model: str,
    fork: Fork,
    *,
    repeat: int = 0,
    model_of_suite: bool = False,
    by: GraderName | None = None,
    next_run_id: Callable[[], str] = next_run_id,
) -> PlannedRun:
    """Plan a run that begins like another one, which may come from elsewhere: its id is another one than that."""
    run_id = next_run_id()
    while run_id == fork.origin.run_id:
        run_id = next_run_id()
    return PlannedRun(run_id, file, with_grader(case, by), model, repeat, model_of_suite, by, fork)


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
    """Plan every selected case on every model, as often as it repeats, in the order of the files.

    With `cells`, only these are planned.

    `models` replaces the models of suites and cases, `repeats` the number of runs of a case, `by` the grader that
    decides, `repeat_rule` the rule that joins the repeats. `variants` are those that each model is run as.
    `own_models` are those among `models` that the caller brings along. Files with errors are passed over: the caller
    has shown them."""
    selection = Selection(frozenset(case_ids), frozenset(tags))
    return tuple(
        PlannedRun(
            next_run_id(),
            file,
            case,
            model,
            repeat,
            model_of_suite=not models or model_of(model) not in models,
            by=by,
            own_model=own_models.get(model_of(model)) if models else None,
            repeat_rule=repeat_rule,
        )
        for file in files
        if file.suite is not None
        for written in file.suite.cases
        if selection.takes(file.suite, written)
        for case in (with_grader(written, by, repeat_rule),)
        for model in contenders(file.suite, models or settings_of(file.suite, case).models, variants)
        if cells is None or (absolute(file.path), case.id, model) in cells
        for repeat in range(case.repeats if repeats is None else repeats)
    )


def contenders(suite: Suite, models: Iterable[str], variants: Variants) -> tuple[str, ...]:
    """Return the models and variants that cases are run as, each once.

    That is each model with the suite as written and with each of the wanted variants. A variant with a model of its own
    is run on that one alone."""
    wanted = [variant for variant in suite.variants if variants.takes(variant)]
    each = (contender(model, variant) for model in models for variant in (*([None] if variants.plain else []), *wanted))
    return tuple(dict.fromkeys(each))


_ASKED_BY_SUITE = ("servers", "tools", "mocks")
_ASKED_BY_CASE = ("user", "messages", "tools", "offer", "mocks", "stop_on_failure")


def same_question(run: PlannedRun, suite: Suite, case: Case) -> bool:
    """Return whether model and tools would see the same as in this run, were the case run now."""
    if run.case is case and run.suite is suite:
        return True
    try:
        variant, variant_now = run.variant, variant_of(suite, run.model)
    except UnknownVariantError:
        return False
    suite, case = varied_suite(suite, variant_now), varied_case(case, variant_now)
    before, now = run.settings, settings_of(suite, case)
    return (
        same_value(_asked_by_variant(variant), _asked_by_variant(variant_now))
        and all(same_value(getattr(run.case, name), getattr(case, name)) for name in _ASKED_BY_CASE)
        and all(same_value(getattr(run.suite, name), getattr(suite, name)) for name in _ASKED_BY_SUITE)
        and (run.case.skip is None) == (case.skip is None)
        and (before.system, before.execute) == (now.system, now.execute)
        and before.limits.max_rounds == now.limits.max_rounds
        and before.limits.timeout_s == now.limits.timeout_s
        and (
            not run.model_of_suite
            or run.asked_model in now.models
            or (variant is not None and variant.model is not None)
        )
        and same_value(_steps_asked(run.case), _steps_asked(case))
        and (run.subject is None or same_value(run.subject, suite.subject))
    )


def _asked_by_variant(variant: Variant | None) -> object:
    return (variant.params, variant.changes) if variant is not None else None


def same_value(left: object, right: object) -> bool:
    """Return whether two values are one in a suite, in which 1, 1.0 and true are three."""
    return left is right or (left == right and repr(left) == repr(right))


def _steps_asked(case: Case) -> list[object]:
    return [(step.user, step.system, step.mock_result) for step in case.steps]


# Shards: one plan of which several programs, also on several machines, make some runs each. Every run keeps its
# place in the whole plan.


@dataclass(frozen=True)
class PlannedShard:
    """One shard of a plan.

    `whole` are all runs of the plan in their order, `places` those of the runs that this shard makes."""

    ref: ShardRef
    whole: tuple[PlannedRun, ...]
    places: tuple[int, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        """The runs that this shard makes, in the order of the plan.

        Their ids are those of no run of another shard."""
        return tuple(
            replace(self.whole[place], run_id=run_id_at(self.whole[place].run_id, place)) for place in self.places
        )


def run_id_at(run_id: str, place: int) -> str:
    """Return the id of a run that a shard makes: programs number their runs alike, and shards are put together."""
    return run_id if run_id == f"run-{place + 1}" else f"{run_id}.{place + 1}"


def places_in_turn(planned: int, index: int, of: int) -> tuple[int, ...]:
    """Return the places of a shard that takes its runs in turn with the others: each then has all models."""
    return tuple(range(index - 1, planned, of))


def places_by_cost(costs: Sequence[float], index: int, of: int) -> tuple[int, ...]:
    """Return the places of a shard, with the cost of the plan shared out evenly.

    The dearest run is placed first, each run in the shard that costs least so far (the greedy "longest processing time"
    rule). The same costs give the same shards."""
    load = [(0.0, shard) for shard in range(of)]
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
    """Return the expected milliseconds of each run of a plan.

    They are the mean of its case with its model, else of its model, else of all models. `means` are by path of the
    suite in its project, case and model; `paths` has that path of each suite's file."""
    of_model: dict[str, list[float]] = {}
    for (_, _, model), mean in means.items():
        of_model.setdefault(model, []).append(mean)
    usual = {model: sum(each) / len(each) for model, each in of_model.items()}
    of_all = sum(means.values()) / len(means) if means else 1.0
    return [
        means.get((paths[str(run.file.path)], run.case.id, run.model), usual.get(run.model, of_all)) for run in runs
    ]
