"""The comparison that the app can start with: opened before anything runs, and printed when the app is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analysis.side_by_side import WhenLeft, compared
from workbench.tui.comparing.opening import CompareCommands
from workbench.tui.comparing.sources import ComparedCase, LiveRuns
from workbench.tui.comparing.state import CompareState
from workbench.tui.kit.stage import Stage
from workbench.tui.runs.runner import Runner
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.evaluation.options import Begin


class Compared:
    """Compares models on the cases of all open suites that `begin` selects."""

    def __init__(
        self, stage: Stage, selection: Selection, runner: Runner, comparing: CompareCommands, begin: Begin
    ) -> None:
        def takes(case: ComparedCase) -> bool:
            return begin.options.selection.takes_one(case.case_id, case.tags)

        self._stage = stage
        self._comparing = comparing
        self._runner = runner
        self._open_suites = selection.open_suites
        self._source = LiveRuns(selection.book, lambda: selection.open_suites.suites, lambda: selection.models, takes)
        self._state = CompareState(self._source)
        self._state.show_differences(begin.only_differences)

    def open(self) -> None:
        """Open the screen."""
        self._stage.show(self._comparing.screen(self._state, self._open_suites.workspace.place))

    def tell(self, left: WhenLeft) -> None:
        """Report the results, if there are any."""
        state, runner = self._state, self._runner
        state.read()
        keys = [case.on(model) for case in state.cases for model in state.models]
        cells = {key: cell for key in keys if (cell := state.at(key).cell) is not None}
        runs = (run for key in keys for run in self._source.records(key))
        missing = dict.fromkeys(run.batch for run in runs if run.figures is None or run.status == "stopped")
        numbers = [number for batch in missing if (number := runner.number_of(batch)) is not None]
        if cells:
            names = {case.suite: case.suite_name for case in state.cases}
            left(compared(cells, state.models, names, self._source.gates()), numbers)
