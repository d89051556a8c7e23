"""Opens the comparison of two runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.kit.stage import Stage
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.trajectory.opening import RunScreens
    from workbench.tui.two_runs.screen import PairScreen


class PairScreens:
    """Creates screens of two runs."""

    def __init__(self, stage: Stage, selection: Selection, runs: RunScreens) -> None:
        self._stage = stage
        self._selection = selection
        self._runs = runs
        self.methods: dict[str, Callable[[], object]] = {"run.pair": self._pair}

    async def of(self, left: RunRecord, right: RunRecord, batches: tuple[str, ...] | None = None) -> PairScreen:
        """Compare the current state of two runs in a thread and return their screen. `batches` names the batch of
        each."""
        from workbench.tui.two_runs.screen import PairScreen, compare_runs

        state = await compare_runs(left, right)
        if batches is not None:
            state.batches = batches
        return PairScreen(self._stage, state, self._runs.of)

    def _pair(self) -> None:
        """Compare the displayed run with its origin, or else with the next run of the case."""
        runs, shown = self._selection.runs, self._selection.run
        if shown is None or len(runs) < 2:
            return
        next_one = runs[(self._selection.chosen_run + 1) % len(runs)]
        other = next((run for run in runs if run is shown.origin), next_one)
        left, right = sorted((shown, other), key=runs.index)

        async def show() -> None:
            screen = await self.of(left, right)
            if self._stage.shows_main:  # otherwise the user has gone elsewhere
                self._stage.show(screen)

        self._stage.work(show(), "pair", exclusive=True)
