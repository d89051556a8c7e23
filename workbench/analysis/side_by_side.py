"""A whole comparison: cases as rows, models as columns, the totals of each model, and the tests between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from workbench.analysis.comparison import (
    NO_GATES,
    Cell,
    CellKey,
    ModelTotals,
    model_totals,
    repeat_rules_of,
    scores_differ,
)
from workbench.analysis.measures import Measure
from workbench.analysis.paired import Paired, paired, together
from workbench.dataclasses import dataclass
from workbench.grading.run_summary import RunSummary, is_not_needed
from workbench.suite.model import Gate, RepeatRule

if TYPE_CHECKING:
    from workbench.analysis.watched import PairWatched

MAX_ALL_PAIRS = 3
"""With more models than this, each is compared with the first one only."""


@dataclass(frozen=True, slots=True)
class Row:
    """A case, with its result for each model, in the order of the columns: `None` where it did not run."""

    suite: str
    suite_name: str
    case_id: str
    case_name: str
    cells: tuple[Cell | None, ...]

    @property
    def differs(self) -> bool:
        """Whether the graded models have different results."""
        return differ(self.cells)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models compared case by case: `second` is better or worse than `first`."""

    first: str
    second: str
    found: Paired


@dataclass(frozen=True, slots=True)
class Comparison:
    """Models compared; rows are in the order in which their cases were first run."""

    models: tuple[str, ...]
    rows: tuple[Row, ...]
    totals: tuple[ModelTotals, ...]
    on_same_cases: tuple[ModelTotals, ...]
    """The totals over the cases that were graded with each model that ran at all: only these can be held against each
    other."""
    pairs: tuple[Pair, ...]

    @property
    def cells(self) -> Iterator[Cell]:
        """The cells of all rows."""
        return (cell for row in self.rows for cell in row.cells if cell is not None)

    @property
    def runs(self) -> Iterator[RunSummary]:
        """The runs of all cells."""
        return (run for cell in self.cells for run in cell.runs)

    @property
    def with_repeats(self) -> bool:
        """Whether a case has several runs with one model."""
        return any(len(cell.runs) > 1 for cell in self.cells)

    @property
    def repeat_rules(self) -> tuple[RepeatRule, ...]:
        """The rules by which cases with several runs were joined; none without repeats."""
        return repeat_rules_of(self.cells)

    @property
    def suite_names(self) -> dict[str, str]:
        """The names of suites, by their keys."""
        return {row.suite: row.suite_name for row in self.rows}

    @property
    def has_suites(self) -> bool:
        """Whether there are several suites."""
        return len({row.suite for row in self.rows}) > 1


WhenLeft = Callable[[Comparison, Sequence[int]], None]
"""Called with what was compared in the app when it is left, and the numbers of the batches in the history of which runs
are missing."""


def compared(
    cells: Mapping[CellKey, Cell],
    models: Sequence[str],
    suite_names: Mapping[str, str],
    gates: Mapping[str, Gate] = NO_GATES,
    watched: Sequence[PairWatched] = (),
) -> Comparison:
    """Return a comparison of cells, in columns by `models`.

    `suite_names` gives the names of suites, and `gates` their gates, by the keys of suites in the cells. `watched` are
    the pairs of a batch that stopped early: no other is then tested, and a case that was not needed with any model is
    no row."""
    models = tuple(dict.fromkeys(models))
    cases = dict.fromkeys((suite, case_id) for suite, case_id, model in cells if model in models)
    for_nothing = set()
    for case in cases:
        if _not_needed([cells.get((*case, model)) for model in models]):
            for_nothing.add(case)
    rows = tuple(
        _row(suite, suite_names.get(suite, suite), case_id, tuple(cells.get((suite, case_id, each)) for each in models))
        for suite, case_id in cases
        if (suite, case_id) not in for_nothing
    )
    columns = {}
    for model in models:
        columns[model] = [cell for key, cell in cells.items() if key[2] == model]
    return Comparison(
        models,
        rows,
        tuple(model_totals(model, column, gates) for model, column in columns.items()),
        totals_on_same_cases(columns),
        tuple(_pairs(columns, watched)),
    )


def totals_on_same_cases(columns: Mapping[str, Collection[Cell]]) -> tuple[ModelTotals, ...]:
    """Return the totals of columns over the cases that were graded with each of those that ran at all."""
    graded = []
    for cells in columns.values():
        if cells:
            graded.append({(cell.suite, cell.case_id) for cell in cells if cell.is_graded})
    same = set[tuple[str, str]]().union(*graded[:1]).intersection(*graded)
    return tuple(
        model_totals(model, [cell for cell in cells if (cell.suite, cell.case_id) in same])
        for model, cells in columns.items()
    )


def differ(cells: Iterable[Cell | None]) -> bool:
    """Return whether cells of one case have different verdicts, or scores that look different to a person.

    A cell that was not graded has no verdict, and differs from none."""
    graded = [cell for cell in cells if cell is not None and cell.is_graded]
    scores = []
    for cell in graded:
        if cell.score is not None:
            scores.append(cell.score)
    apart = bool(scores) and scores_differ(max(scores), min(scores))
    return apart or len({cell.status for cell in graded}) > 1


def _row(suite: str, suite_name: str, case_id: str, cells: tuple[Cell | None, ...]) -> Row:
    named = next(cell for cell in cells if cell is not None)
    return Row(suite, suite_name, case_id, named.case_name, cells)


def _not_needed(cells: Iterable[Cell | None]) -> bool:
    return all(is_not_needed(run) for cell in cells if cell is not None for run in cell.runs)


def _pairs(columns: Mapping[str, Sequence[Cell]], watched: Sequence[PairWatched]) -> Iterator[Pair]:
    if watched:
        found = together(paired(columns[each.first], columns[each.second], each) for each in watched)
        return (Pair(each.first, each.second, test) for each, test in zip(watched, found, strict=True))
    names = list(columns)
    pairs = list(combinations(names, 2)) if len(names) <= MAX_ALL_PAIRS else [(names[0], other) for other in names[1:]]
    found = together(paired(columns[one], columns[other]) for one, other in pairs)
    return (Pair(one, other, test) for (one, other), test in zip(pairs, found, strict=True))


# The Pareto front: who is not beaten in score by one that takes no more.


@dataclass(frozen=True, slots=True)
class Point:
    """A contender's cost, of which less is better, and its score, of which more is better."""

    name: str
    takes: float
    score: float

    def beats(self, other: Point) -> bool:
        """Return whether this one is as good in both, and better in one."""
        as_good = self.takes <= other.takes and self.score >= other.score
        return as_good and (self.takes, self.score) != (other.takes, other.score)


def front(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the points that none beats, from the one that takes least.

    Equal points are on it together."""
    found: list[Point] = []
    for point in sorted(points, key=lambda each: (each.takes, -each.score)):
        best = found[-1] if found else None
        if best is None or point.score > best.score or (point.takes, point.score) == (best.takes, best.score):
            found.append(point)
    return tuple(found)


def points(measure: Measure, totals: Sequence[ModelTotals]) -> tuple[tuple[Point, ...], tuple[str, ...]]:
    """Return models by a measure of which less is better, and the models without that measure or a score."""
    per_run = measure.per_run
    if per_run is None:
        return (), tuple(each.model for each in totals)
    taken = [(each, per_run.of(each)) for each in totals]
    found = tuple(
        Point(each.model, takes, each.mean_score)
        for each, takes in taken
        if takes is not None and each.mean_score is not None
    )
    placed = {point.name for point in found}
    return found, tuple(each.model for each, _ in taken if each.model not in placed)
