"""Summaries of runs by case and by model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.authoring.case_list import CaseKey
from workbench.dataclasses import dataclass
from workbench.grading.grade import StepGrade
from workbench.grading.repeats import join_runs
from workbench.grading.run_summary import RunSummary, finished_summaries
from workbench.grading.status import WORST_FIRST, Status, worst_of
from workbench.suite.variants import variant_name_of
from workbench.tui.run_book.record import RunIdentity, RunRecord, Stage, without


class RunsByModel:
    """The runs that decide the results of cases, by case and model.

    These are the runs of the last batch, or earlier runs if the batch was stopped early. Recorded runs are included
    only if there are no other runs. Forks are never included."""

    def __init__(self) -> None:
        self._runs: dict[CaseKey, dict[str, list[RunRecord]]] = {}
        self._before: dict[CaseKey, dict[str, list[RunRecord]]] = {}
        """The runs that counted when the last batch began. Present only if any of these runs had ended."""
        self._models: dict[Path, dict[str, None]] = {}
        self._change_numbers: dict[CaseKey, int] = {}
        """The value of `_change_count` when a case's runs were last stored or regraded, with the latest case last."""
        self._change_count = 0

    def start(self, batch: Iterable[RunRecord]) -> None:
        """Replace the previous runs with those of a new batch."""
        fresh: dict[tuple[CaseKey, str], list[RunRecord]] = {}
        for run in batch:
            if not run.is_fork:
                fresh.setdefault((run.case_key, run.model), []).append(run)
        for (case, model), runs in fresh.items():
            last = self._runs.get(case, {}).get(model, [])
            counted = self._before.get(case, {}).get(model, [])
            # Runs of a batch that was stopped early do not replace the earlier runs.
            if _verdicts(last) and not _fewer_ended(last, counted):
                self._before.setdefault(case, {})[model] = last
            self._put(case, model, sorted(runs, key=lambda run: run.repeat))

    def recall(self, run: RunRecord) -> None:
        case = run.case_key
        known = self._runs.get(case, {}).get(run.model, [])
        if not run.is_fork and all(other.recorded for other in known):
            others = [other for other in known if other.repeat != run.repeat]
            self._put(case, run.model, sorted([*others, run], key=lambda each: each.repeat))

    def drop(self, run: RunRecord) -> None:
        """Remove a run that the user discarded.

        If no run of the last batch is left, the earlier runs decide the result of the case again."""
        case = run.case_key
        of_case = self._runs.get(case, {})
        runs = of_case.get(run.model, [])
        left = without(runs, run)
        # A fork or a replaced run is not listed here.
        if len(left) == len(runs):
            return
        left = left or self._before.get(case, {}).get(run.model, [])
        if left:
            self._put(case, run.model, left)
        else:
            del of_case[run.model]
            self._note_change(case)

    def regrade(self, case: CaseKey) -> None:
        """Record that finished runs of a case have new grades."""
        self._note_change(case)

    def of(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """Return the runs that decide the result of a case, by model. The runs of each model are sorted by repeat."""
        latest, spared = self._runs.get(case, {}), self.earlier_runs(case)
        if not spared:
            return latest
        return {**latest, **spared}

    def earlier_runs(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """Return the earlier runs of the models whose last runs were stopped. They decide the result of the case."""
        latest = self._runs.get(case, {})
        earlier_runs: dict[str, list[RunRecord]] = {}
        for model, runs in self._before.get(case, {}).items():
            has_ended = all(run.figures is not None for run in latest[model])
            if has_ended and _fewer_ended(latest[model], runs):
                earlier_runs[model] = runs
        return earlier_runs

    def before(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """Return the runs that decided a case's result before its last runs began, by model.

        Only models with an ended run are included."""
        return self._before.get(case, {})

    def models(self, suite: Path) -> Iterable[str]:
        """Return the models that cases of a suite ran on, in the order of their first run."""
        return self._models.get(suite, ())

    @property
    def change_count(self) -> int:
        """The number of changes of runs and grades so far."""
        return self._change_count

    def changed_since(self, seen: int) -> tuple[list[CaseKey], int]:
        """Return the cases with new runs or grades, latest first, and the value of `seen` for the next call.

        `seen` is 0 in the first call."""
        found: list[CaseKey] = []
        # The latest cases are at the end, so only new cases are visited.
        for case, puts in reversed(self._change_numbers.items()):
            if puts <= seen:
                break
            found.append(case)
        return found, self._change_count

    def _put(self, case: CaseKey, model: str, runs: list[RunRecord]) -> None:
        self._note_change(case)
        self._runs.setdefault(case, {})[model] = runs
        self._models.setdefault(case[0], {})[model] = None

    def _note_change(self, case: CaseKey) -> None:
        self._change_count += 1
        # Removing and setting the case again moves it to the end of the dictionary, where `changed_since` begins.
        self._change_numbers.pop(case, None)
        self._change_numbers[case] = self._change_count


def _fewer_ended(runs: Sequence[RunRecord], before: Sequence[RunRecord]) -> bool:
    over = _verdicts(runs)
    return over < len(runs) and over < _verdicts(before)


def _verdicts(runs: Sequence[RunRecord]) -> int:
    """Return the number of ended runs, including errors."""
    return sum(run.has_verdict for run in runs)


_WORST_STEP_FIRST: tuple[Status | None, ...] = (*WORST_FIRST[:2], None, *WORST_FIRST[2:])
"""The order of the statuses of steps. `None` is a step that was never reached."""

StepStage = Literal["waiting", "running", "made", "over"]
"""The progress of a step: `made` while a run continues after the step, `over` if the case has no active run."""


class UserErrorCounts(NamedTuple):
    """Counts the runs of a case if a simulated user invalidated some of them.

    `good` counts the passed and warned runs, `graded` the graded runs, and `errors` the invalid runs."""

    good: int
    graded: int
    errors: int


@dataclass(frozen=True)
class CaseSummary:
    """The summary of a case for the tree: the worst status and lowest score of its models, and progress of its runs.

    The repeats on one model are combined by the case's repeat rule."""

    status: Status | None = None
    score: float | None = None
    stage: Stage | None = None
    asks: bool = False
    """Whether a run asks for permission to execute a call."""
    is_held: bool = False
    """Whether a run is held for the user."""
    disagree: bool = False
    """Whether graders disagree on any of the runs."""
    graded: Status | None = None
    """The worst status of the models that did not end in an error, `None` if no run was graded."""
    user_errors: UserErrorCounts | None = None
    """The counts of the runs if a simulated user invalidated some of them, otherwise `None`."""


NEVER_RUN = CaseSummary()


class CaseTally(NamedTuple):
    """Counts cases by outcome.

    `good` counts passed cases and cases with a warning, and `graded` all graded cases. `errors` counts the cases that
    ended in an error on some model."""

    good: int = 0
    graded: int = 0
    errors: int = 0

    @classmethod
    def of(cls, cases: Iterable[CaseSummary]) -> CaseTally:
        good, graded, errors = 0, 0, 0
        for case in cases:
            good += case.graded is not None and case.graded.good
            graded += case.graded is not None
            errors += case.status == Status.ERROR
        return cls(good, graded, errors)

    def plus(self, other: CaseTally) -> CaseTally:
        return CaseTally(self.good + other.good, self.graded + other.graded, self.errors + other.errors)


def worst_graded(statuses: Collection[Status]) -> Status | None:
    """Return the worst status apart from errors, `None` if no run was graded."""
    worst = worst_of(status for status in statuses if status != Status.ERROR)
    if worst is None or not worst.graded:
        return None
    return worst


@dataclass(frozen=True)
class StepSummary:
    """The summary of one step of a chain: the worst status and the lowest score of all models.

    Of each model, only the repeat that decides its result is included. If `stage` is `over` and `status` is `None`, no
    run reached the step."""

    stage: StepStage
    status: Status | None = None
    score: float | None = None
    asks: bool = False
    is_held: bool = False


@dataclass(frozen=True)
class Counts:
    """The number of latest runs by status, and of active runs."""

    ended: Mapping[Status, int] = field(default_factory=dict)
    running: int = 0
    waiting: int = 0
    asking: int = 0
    """The number of running runs that ask for permission."""
    held: int = 0
    """The number of running runs that are held."""


def deciding_run(runs: Sequence[RunRecord]) -> int:
    """Return the index of the run to show first. It is a run on the first model.

    Among the repeats on this model, it is the last run with their combined status. If a repeat has not ended, it is the
    last run."""
    return next(_deciding_runs(runs), 0)


def _deciding_runs(runs: Sequence[RunRecord]) -> Iterator[int]:
    of_models: dict[tuple[str, bool, str | None], list[int]] = {}
    for index, run in enumerate(runs):
        of_models.setdefault((run.model, run.recorded, run.identity.fork), []).append(index)
    for of_model in of_models.values():
        figures = list(finished_summaries(map(runs.__getitem__, of_model)))
        deciding: list[int] = []
        # While repeats are missing, their model has no status, and the last repeat is shown.
        if len(figures) == len(of_model):
            status = join_runs(figures).status
            deciding = [index for index in of_model if runs[index].status == status]
        yield (deciding or of_model)[-1]


def counting(runs: Mapping[RunIdentity, RunRecord]) -> list[RunRecord]:
    """Return the runs that decide the result of a case, without forks.

    Recorded runs and runs of variants are returned only if there are no other runs."""
    own = [run for run in runs.values() if not run.is_fork]
    own = [run for run in own if not run.recorded] or own
    return [run for run in own if variant_name_of(run.model) is None] or own


def summarised(runs: Sequence[RunRecord], forks: Sequence[RunRecord]) -> CaseSummary:
    """Return the summary of a case with these runs. Active forks only add to its progress."""
    all_runs = (*runs, *forks)
    stages: set[Stage] = set()
    asks = held = disagree = False
    for run in all_runs:
        stages.add(run.displayed_stage)
        asks = asks or run.is_asking
        held = held or run.is_held
    stage: Stage = "done"
    if "running" in stages:
        stage = "running"
    elif "waiting" in stages:
        stage = "waiting"
    of_models: dict[str, list[RunSummary]] = {}
    for run in runs:
        disagree = disagree or run.graders_disagree
        if run.figures is not None:
            of_models.setdefault(run.model, []).append(run.figures)
    statuses: set[Status] = set()
    scores: list[float] = []
    for model in map(join_runs, of_models.values()):
        statuses.add(model.status)
        if model.score is not None:
            scores.append(model.score)
    worst, spoilt = worst_of(statuses), _user_error_counts(runs)
    return CaseSummary(worst, min(scores, default=None), stage, asks, held, disagree, worst_graded(statuses), spoilt)


def _user_error_counts(runs: Sequence[RunRecord]) -> UserErrorCounts | None:
    errors = sum(run.is_user_error for run in runs)
    if not errors:
        return None
    graded = [run.status for run in runs if run.status is not None and run.status.graded]
    return UserErrorCounts(sum(status.good for status in graded), len(graded), errors)


def active_step_summary(runs: Sequence[RunRecord], number: int) -> StepSummary:
    """Return the summary of a step (from 1) in the active runs of a case."""
    stage: StepStage = "made"
    asks = held = False
    for run in runs:
        if run.step == number:
            stage = "running"
            asks = asks or run.is_asking
            held = held or run.is_held
        elif run.step < number and stage == "made":
            stage = "waiting"
    return StepSummary(stage, asks=asks, is_held=held)


def summarised_steps(runs: Sequence[RunRecord]) -> tuple[StepSummary, ...]:
    """Return the summary of each step, from finished runs of one chain. Empty if no run was graded."""
    of_models = []
    for index in _deciding_runs(runs):
        result = runs[index].result
        if result is not None and result.steps:
            of_models.append(result.steps)
    # Runs from before and after an edit may have different numbers of steps.
    return tuple(map(_worst_step, zip_longest(*of_models)))


def _worst_step(grades: Sequence[StepGrade | None]) -> StepSummary:
    """Return the summary of one step over all models. An unreached step is worse than a warning."""
    statuses: list[Status | None] = []
    scores: list[float] = []
    for grade in grades:
        # `zip_longest` adds `None` for models whose runs have fewer steps.
        if grade is None:
            continue
        statuses.append(grade.status)
        if grade.score is not None:
            scores.append(grade.score)
    worst = min(statuses, key=_WORST_STEP_FIRST.index, default=None)
    return StepSummary("over", worst, min(scores, default=None))
