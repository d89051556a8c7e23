"""The totals of the compared models, added up again where their cells are others now, as far as time allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from workbench.analysis.comparison import ModelTotals, model_totals
from workbench.reports.compared_words import totals_rows
from workbench.suite.model import Gate
from workbench.tui.comparing.state import CompareState

SHARE = 0.05
"""Adding up takes at most this share of the time while runs come in."""

AT_ONCE_S = 0.004
"""So long it may take whenever it is asked for."""

_FIRST = ("pass rate", "95% interval", "mean score", "gate", "latency p50", "latency p95", "cost")
"""What stands above the other measures, where there is room for few."""


class ComparedTotals:
    """What each column adds up to. `clock` counts seconds.

    Adding up thousands of cells takes a while, too long for every news: each time only so many columns are, the ones
    that were longest ago first, that a key need not wait for it; while runs go on it takes no more than `SHARE` of the
    time, too.
    """

    def __init__(self, state: CompareState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._of: dict[str, ModelTotals] = {}
        """The columns that were added up, the one that was longest ago first."""
        self._gates: Mapping[str, Gate] = {}
        self._looked_s = clock()
        self._ahead_s = 0.0
        """By how much more than its share was taken."""
        self._models: tuple[str, ...] = ()
        """The columns of the rows, none where those are to be made anew."""
        self.rows: Sequence[tuple[str, Sequence[str]]] = ()
        """The measures, each with what it is for every column."""
        self.floors: dict[str | None, int] = {}
        """How many cells the longest value of each column, and the longest name of a measure (`None`), have ever taken:
        columns do not jump while runs come in."""

    @property
    def is_behind(self) -> bool:
        """Whether there are other columns, or other cells in any, than when they were added up."""
        return self._models != self._state.models or not self._state.changed.isdisjoint(self._models)

    def add_up(self) -> None:
        """Add up the columns that time allows."""
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
