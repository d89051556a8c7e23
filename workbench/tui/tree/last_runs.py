"""The last runs below a row of the tree, and the state for which they are cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from workbench.analysis.comparison import ModelTotals, cells_of, model_totals
from workbench.dataclasses import dataclass
from workbench.grading.status import Status

if TYPE_CHECKING:
    from workbench.grading.run_summary import RunSummary
    from workbench.history.records import RunRow
    from workbench.tui.run_book.record import RunRecord


@dataclass
class LastRuns:
    """The last runs of the cases below a row. `statuses` counts the cases by their status in the tree."""

    statuses: Counter[Status | None] = field(default_factory=Counter)
    runs: list[RunSummary] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    """The start times of results from the history, in milliseconds since 1970."""
    edited: int = 0
    """The number of cases edited since their result in the history."""
    failed: list[RunRow | RunRecord] = field(default_factory=list)

    @cached_property
    def totals(self) -> ModelTotals:
        """The latency, tokens and cost of all runs together."""
        return model_totals("", cells_of(self.runs).values())

    def add(self, runs: Iterable[RunRow | RunRecord]) -> None:
        for run in runs:
            # Only an ended run has figures.
            if run.figures is None:
                continue
            self.runs.append(run.figures)
            if run.figures.status == Status.FAILED:
                self.failed.append(run)


@dataclass(frozen=True)
class CachedRuns:
    """The last runs below a row, and the state from which they were computed.

    The objects in `same` are compared by identity, those in `equal` by value."""

    same: tuple[object, ...]
    equal: tuple[object, ...]
    found: LastRuns

    def is_current(self, same: Sequence[object], equal: tuple[object, ...]) -> bool:
        """Return whether the last runs would be the same for this state."""
        if len(same) != len(self.same) or any(a is not b for a, b in zip(same, self.same, strict=True)):
            return False
        return equal == self.equal
