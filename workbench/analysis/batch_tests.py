"""Tests whether the changes from one batch to another are more than chance, by paired tests of their models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

from workbench.analysis.comparison import Cell, cells_of, runs_of_models
from workbench.analysis.paired import Paired, paired, together
from workbench.grading.run_summary import RunSummary
from workbench.grading.scoring import counted_score
from workbench.history.records import SameSuites


def tests_of(
    before: Sequence[RunSummary],
    after: Sequence[RunSummary],
    *,
    across: tuple[str, str] | None,
    same: SameSuites = MappingProxyType({}),
) -> dict[str, Paired]:
    """Returns the paired test of each model that both batches have, by model; where each batch has one model and these
    differ, which are then `across`, of those, by the later one. Scores are those that count in gates. `same` as in
    `batch_diff`. The tests are in numbers, and the runs of one model are in memory at a time."""
    earlier, later = runs_of_models(before), runs_of_models(after)

    def tested(model_before: str, model_after: str) -> Paired:
        old, new = earlier.get((None, model_before), ()), later.get((None, model_after), ())
        return paired(_cells(before, old, same), _cells(after, new, {})).in_numbers

    if across is not None:
        return {across[1]: tested(*across)}
    both = [model for _, model in later if (None, model) in earlier]
    return dict(zip(both, together([tested(model, model) for model in both]), strict=True))


def _cells(figures: Sequence[RunSummary], indices: Iterable[int], same: SameSuites) -> Iterator[Cell]:
    counted = (replace(run, score=counted_score(run)) for run in map(figures.__getitem__, indices))
    for cell in cells_of(counted).values():
        yield replace(cell, suite=same.get(cell.suite, cell.suite))
