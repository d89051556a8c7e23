"""The comparison of models: cases as rows, models as columns, the totals of each model, and the paired tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from workbench.analysis.comparison import (
    NO_GATES,
    Cell,
    CellKey,
    ModelTotals,
    graded_cells,
    model_totals,
    repeat_rules_of,
    scores_differ,
    scores_of,
)
from workbench.analysis.measures import Measure
from workbench.analysis.paired import PairedComparison, compare_pairs, corrected_for_count
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary, is_not_needed
from workbench.suite.grading_model import Gate, RepeatRule

if TYPE_CHECKING:
    from workbench.analysis.early_stop_state import PairEarlyStop

MAX_ALL_PAIRS = 3
"""The most models among which every pair is compared. With more models, each model is compared only with the first
model, because every further comparison makes the corrected tests weaker."""


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case with its cell for each model, in the order of the columns. `None` means that a model did not run it."""

    suite: str
    suite_name: str
    case_id: str
    case_name: str
    cells: tuple[Cell | None, ...]

    @property
    def differs(self) -> bool:
        """Whether the models that were graded have different verdicts or visibly different scores."""
        return cells_differ(self.cells)


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models compared case by case. In `found`, `first` is model A and `second` is model B."""

    first: str
    second: str
    found: PairedComparison


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of several models. Rows are in the order of the cases' first runs."""

    models: tuple[str, ...]
    rows: tuple[CaseRow, ...]
    totals: tuple[ModelTotals, ...]
    on_same_cases: tuple[ModelTotals, ...]
    """The totals over the cases on which every model with runs was graded. Only these totals are comparable."""
    pairs: tuple[ModelPair, ...]

    @property
    def cells(self) -> Iterator[Cell]:
        for row in self.rows:
            yield from filter(None, row.cells)

    @property
    def columns(self) -> dict[str, list[Cell]]:
        """The cells of each model, in the order of the rows."""
        columns: dict[str, list[Cell]] = {}
        for at, model in enumerate(self.models):
            column = (row.cells[at] for row in self.rows)
            columns[model] = [cell for cell in column if cell is not None]
        return columns

    @property
    def runs(self) -> Iterator[RunSummary]:
        for cell in self.cells:
            yield from cell.runs

    @property
    def with_repeats(self) -> bool:
        return any(len(cell.runs) > 1 for cell in self.cells)

    @property
    def repeat_rules(self) -> tuple[RepeatRule, ...]:
        """The rules that joined cases with several runs. Empty if every case has a single run."""
        return repeat_rules_of(self.cells)

    @property
    def suite_names(self) -> dict[str, str]:
        return {row.suite: row.suite_name for row in self.rows}

    @property
    def has_suites(self) -> bool:
        return len(self.suite_names) > 1


@dataclass(frozen=True, slots=True)
class Weakest:
    """The models that fail most and the models that fail least, among the cases graded with every model.

    The `models` each fail `failed` cases, and the `best` models each fail `best_failed` cases. `only_there` are the
    names of cases that fail only with the models that fail most. `differs` is false if each case fails with all models
    or with none."""

    models: tuple[str, ...]
    failed: int
    cases: int
    only_there: tuple[str, ...]
    best: tuple[str, ...]
    best_failed: int
    differs: bool


_MIN_COLUMNS = 3
"""The fewest models for which a weakest model is named. With two models, the test of the pair already names the weaker
model."""


def weakest_models(columns: Mapping[str, Iterable[Cell]]) -> Weakest | None:
    """Return the models that fail most.

    Return `None` for fewer than three models, or if no case was graded with every model."""
    graded: dict[tuple[str, str], dict[str, Cell]] = {}
    for model, cells in columns.items():
        for cell in graded_cells(cells):
            graded.setdefault(cell.case_key, {})[model] = cell
    whole = [row for row in graded.values() if len(row) == len(columns)]
    if len(columns) < _MIN_COLUMNS or not whole:
        return None
    counts = dict.fromkeys(columns, 0)
    failing: list[tuple[str, set[str]]] = []
    for row in whole:
        bad = {model for model, cell in row.items() if not cell.is_good}
        for model in bad:
            counts[model] += 1
        if bad:
            failing.append((next(iter(row.values())).case_name, bad))
    most, fewest = max(counts.values()), min(counts.values())
    worst = tuple(model for model in columns if counts[model] == most)
    best = tuple(model for model in columns if counts[model] == fewest)
    only_there: tuple[str, ...] = ()
    if len(worst) < len(columns):
        only_there = tuple(name for name, bad in failing if bad <= set(worst))
    differs = any(len(bad) < len(columns) for _, bad in failing)
    return Weakest(worst, most, len(whole), only_there, best, fewest, differs)


LeaveCallback = Callable[[Comparison, Sequence[int]], None]
"""A callback for leaving the app's comparison. Its arguments are the comparison and the numbers of stored batches with
missing runs."""


def compare_cells(
    cells: Mapping[CellKey, Cell],
    models: Sequence[str],
    suite_names: Mapping[str, str],
    gates: Mapping[str, Gate] = NO_GATES,
    early_stops: Sequence[PairEarlyStop] = (),
) -> Comparison:
    """Return a comparison of cells. `models` are the columns.

    `suite_names` and `gates` have the name and the gate of each suite, by the suite's key in the cells. `early_stops`
    are the pairs of models in a batch that may stop early. No other pair is then tested, and a case that the early
    decision skipped for every model has no row."""
    models = tuple(dict.fromkeys(models))
    columns: dict[str, list[Cell]] = {model: [] for model in models}
    rows_cells: dict[tuple[str, str], list[Cell | None]] = {}
    for (suite, case_id, model), cell in cells.items():
        if model in columns:
            columns[model].append(cell)
            row = rows_cells.setdefault((suite, case_id), [None] * len(models))
            row[models.index(model)] = cell
    rows = []
    for (suite, case_id), row in rows_cells.items():
        # `None` represents a model that did not run the case.
        ran = list(filter(None, row))
        if not all(map(_is_not_needed, ran)):
            rows.append(CaseRow(suite, suite_names.get(suite, suite), case_id, ran[0].case_name, tuple(row)))
    return Comparison(
        models,
        tuple(rows),
        tuple(model_totals(model, column, gates) for model, column in columns.items()),
        totals_on_same_cases(columns),
        tuple(_pairs(columns, early_stops)),
    )


def totals_on_same_cases(columns: Mapping[str, Collection[Cell]]) -> tuple[ModelTotals, ...]:
    """Return the totals of models over the cases that were graded with every model that has a cell."""
    graded: list[set[tuple[str, str]]] = []
    for cells in columns.values():
        if cells:
            graded.append({cell.case_key for cell in graded_cells(cells)})
    same: set[tuple[str, str]] = set()
    if graded:
        same = set.intersection(*graded)
    totals = []
    for model, cells in columns.items():
        comparable = [cell for cell in cells if cell.case_key in same]
        totals.append(model_totals(model, comparable))
    return tuple(totals)


def cells_differ(cells: Iterable[Cell | None]) -> bool:
    """Return whether cells of one case have different verdicts or visibly different scores.

    A cell that was not graded has no verdict and differs from no other cell."""
    graded = graded_cells(filter(None, cells))
    scores = scores_of(graded)
    if scores and scores_differ(max(scores), min(scores)):
        return True
    return len({cell.status for cell in graded}) > 1


def _is_not_needed(cell: Cell) -> bool:
    return all(map(is_not_needed, cell.runs))


def _pairs(columns: Mapping[str, Sequence[Cell]], early_stops: Sequence[PairEarlyStop]) -> Iterator[ModelPair]:
    pairs = list(_tested(list(columns), early_stops))
    found = corrected_for_count(compare_pairs(columns[one], columns[other], decision) for one, other, decision in pairs)
    for (one, other, _), test in zip(pairs, found, strict=True):
        yield ModelPair(one, other, test)


def _tested(
    models: Sequence[str], early_stops: Sequence[PairEarlyStop]
) -> Iterator[tuple[str, str, PairEarlyStop | None]]:
    # Tests for a fixed number of cases are invalid for a batch that may stop early.
    if early_stops:
        for each in early_stops:
            yield each.first, each.second, each
    elif len(models) <= MAX_ALL_PAIRS:
        for one, other in combinations(models, 2):
            yield one, other, None
    else:
        for other in models[1:]:
            yield models[0], other, None


# The Pareto front of score against cost, latency or tokens.


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A model in a Pareto chart. Less is better for `amount`, and more is better for `score`."""

    name: str
    amount: float
    score: float

    def beats(self, other: ParetoPoint) -> bool:
        """Return whether this point is at least as good in both dimensions and better in one."""
        as_good = self.amount <= other.amount and self.score >= other.score
        return as_good and (self.amount, self.score) != (other.amount, other.score)


def pareto_front(points: Sequence[ParetoPoint]) -> tuple[ParetoPoint, ...]:
    """Return the points that no other point beats (the Pareto front), in ascending order of `amount`.

    Of several equal points, either all or none are on the front."""
    found: list[ParetoPoint] = []
    # In ascending order of `amount`, a point is on the front if it scores more than the front's last point.
    for point in sorted(points, key=lambda each: (each.amount, -each.score)):
        if not found or point.score > found[-1].score or _are_equal(point, found[-1]):
            found.append(point)
    return tuple(found)


def _are_equal(one: ParetoPoint, other: ParetoPoint) -> bool:
    return (one.amount, one.score) == (other.amount, other.score)


def pareto_points(measure: Measure, totals: Sequence[ModelTotals]) -> tuple[tuple[ParetoPoint, ...], tuple[str, ...]]:
    """Return a point for each model that has a score and a value of the measure, and the names of the other models.

    The less a model takes of `measure`, such as cost, the better."""
    found = []
    without = []
    for each in totals:
        takes = None
        if measure.per_run is not None:
            takes = measure.per_run.of(each)
        if takes is not None and each.mean_score is not None:
            found.append(ParetoPoint(each.model, takes, each.mean_score))
        else:
            without.append(each.model)
    return tuple(found), tuple(without)
