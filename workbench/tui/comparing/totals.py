"""The totals of the compared models, updated as their cells change and time allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.analysis.comparison import ModelTotals, model_totals
from workbench.reports.compared_words import totals_rows
from workbench.suite.model import Gate
from workbench.tui.comparing.state import CompareState

SHARE = 0.05
"""The maximum share of time for totals while runs are active."""

AT_ONCE_S = 0.004
"""The maximum time for one update."""

_FIRST = ("pass rate", "95% interval", "mean score", "gate", "latency p50", "latency p95", "cost")
"""The measures that come first, in case there is little room."""


class ComparedTotals:
    """The totals of each column. `clock` counts seconds.

    Computing thousands of cells takes too long to do it on every event. Each update covers as many columns as time
    allows without delaying keys, the longest outdated first. While runs are active it takes at most `SHARE` of the
    time.
    """

    def __init__(self, state: CompareState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._of: dict[str, ModelTotals] = {}
        """The computed columns, the longest outdated first."""
        self._gates: Mapping[str, Gate] = {}
        self._looked_s = clock()
        self._ahead_s = 0.0
        """By how much the share of time was exceeded."""
        self._models: tuple[str, ...] = ()
        """The columns of `rows`, empty if they have to be rebuilt."""
        self.rows: Sequence[tuple[str, Sequence[str]]] = ()
        """The measures, each with its value for every column."""
        self.floors: dict[str | None, int] = {}
        """The maximum width so far of each column's values and of the names of measures (`None`). It only grows, so
        columns do not jump."""

    @property
    def is_behind(self) -> bool:
        """Whether columns or their cells changed since the last update."""
        return self._models != self._state.models or not self._state.changed.isdisjoint(self._models)

    def add_up(self) -> None:
        """Update the columns that time allows."""
        state, now_s = self._state, self._clock()
        share = SHARE if state.going else 1.0
        self._ahead_s = max(self._ahead_s - share * (now_s - self._looked_s), 0.0)
        self._looked_s = now_s
        if (gates := state.source.gates()) != self._gates:
            self._gates = gates
            state.changed.update(state.models)
        longest_ago = {model: at for at, model in enumerate(self._of)}
        behind = sorted(
            state.changed.intersection(state.models),
            key=lambda model: (longest_ago.get(model, -1), state.models.index(model)),
        )
        while behind and self._ahead_s <= AT_ONCE_S:
            began_s, model = self._clock(), behind.pop(0)
            self._of.pop(model, None)
            self._of[model] = model_totals(model, state.cells(model), gates)
            state.changed.discard(model)
            self._ahead_s += self._clock() - began_s
            self._models = ()
        if self._models == state.models:
            return
        self._models = state.models
        names = {case.suite: case.suite_name for case in state.cases}
        self.rows = sorted(totals_rows([self._totals(model) for model in state.models], names), key=_place)
        for model, *values in zip((None, *state.models), *((name, *values) for name, values in self.rows), strict=True):
            self.floors[model] = max(self.floors.get(model, 0), *map(len, values))

    def _totals(self, model: str) -> ModelTotals:
        return self._of[model] if model in self._of else model_totals(model, ())


def _place(row: tuple[str, Sequence[str]]) -> int:
    name = "gate" if row[0].startswith("gate") else row[0]
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)
