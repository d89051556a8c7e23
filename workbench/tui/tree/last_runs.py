"""The last runs below a row of the tree, and the state for which they are cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from workbench.analysis.comparison import ModelTotals, cells_of, model_totals
from workbench.dataclasses import dataclass
from workbench.grading.status import Status

if TYPE_CHECKING:
    from workbench.grading.run_summary import RunSummary
    from workbench.history.records import RunRow
    from workbench.tui.run_book.record import RunRecord


MAX_RUNS_AT_ONCE = 500
"""The maximum number of runs whose totals are computed on the event loop. It takes about 10 ms."""


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

    earlier_totals: ModelTotals | None = field(default=None, compare=False)
    """The totals before the last change. They are shown until the new totals are computed."""

    _totals: ModelTotals | None = field(default=None, compare=False)

    def add_up(self) -> ModelTotals:
        """Compute the latency, tokens and cost of all runs together. For many runs, call this in a thread."""
        self._totals = model_totals("", cells_of(self.runs).values())
        return self._totals

    @property
    def totals(self) -> ModelTotals | None:
        """The totals of all runs, or the earlier totals while a thread still has to compute the totals of many runs.

        `None` if there are no earlier totals either."""
        if self._totals is None and not self.needs_thread:
            return self.add_up()
        return self._totals or self.earlier_totals

    @property
    def needs_thread(self) -> bool:
        """Whether the totals are not computed and would take too long on the event loop."""
        return self._totals is None and len(self.runs) > MAX_RUNS_AT_ONCE

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

    `objects` are compared by identity, `values` by value."""

    same: tuple[object, ...]
    equal: tuple[object, ...]
    found: LastRuns

    def is_current(self, objects: Sequence[object], values: tuple[object, ...]) -> bool:
        """Return whether the last runs would be the same for this state."""
        if len(objects) != len(self.same) or any(a is not b for a, b in zip(objects, self.same, strict=True)):
            return False
        return values == self.equal
