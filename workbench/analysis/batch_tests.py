"""Tests whether the changes from one batch to another are more than chance, by paired tests of their models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from workbench.analysis.comparison import Cell, cells_of
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
    `batch_diff`."""
    earlier, later = _by_model(before, same), _by_model(after, {})
    if across is not None:
        return {across[1]: paired(earlier.get(across[0], ()), later.get(across[1], ()))}
    both = [model for model in later if model in earlier]
    return dict(zip(both, together([paired(earlier[model], later[model]) for model in both]), strict=True))


def _by_model(figures: Sequence[RunSummary], same: SameSuites) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells_of(replace(run, score=counted_score(run)) for run in figures).values():
        found.setdefault(cell.model, []).append(replace(cell, suite=same.get(cell.suite, cell.suite)))
    return found
