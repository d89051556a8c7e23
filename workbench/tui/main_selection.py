"""What the tree's cursor stands on, and the runs of it."""

from __future__ import annotations

from workbench.tui.main_panes import PanesScreen
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.run_record import CaseKey, RunRecord
from workbench.tui.state.runnable import runnable_below
from workbench.tui.state.runs import RunBook
from workbench.tui.state.selection import case_of
from workbench.tui.state.tree import Row, TreeState


class SelectionScreen(PanesScreen):
    """Knows what is selected; showing it is for the screen that is made of this one."""

    def __init__(self, book: RunBook) -> None:
        super().__init__()
        self.suites = TreeState((), ())
        self.book = book
        self.chosen_run = 0
        """Which of the latest runs of the selected case is shown."""

    @property
    def selected_suite(self) -> OpenSuite | None:
        """The suite that the tree's cursor is on or in."""
        row = self.suites.selected
        return row.open if row is not None else None

    @property
    def whole(self) -> Row | None:
        """The suite or folder that the tree's cursor is on or in."""
        return self.suites.whole

    def runnable_below(self, row: Row) -> list[tuple[OpenSuite, tuple[str, ...]]]:
        """The cases at or below a row that can run and are not running already."""
        return runnable_below(self.suites, row, self.book)

    @property
    def selected_case(self) -> CaseKey | None:
        """The case under the tree's cursor."""
        return case_of(self.suites.selected)

    @property
    def runs_shown(self) -> list[RunRecord]:
        """The latest runs of the selected case."""
        case = self.selected_case
        return self.book.runs_of(case) if case is not None else []

    @property
    def run_shown(self) -> RunRecord | None:
        """The run that the run pane shows."""
        runs = self.runs_shown
        self.chosen_run = min(self.chosen_run, max(len(runs) - 1, 0))
        return runs[self.chosen_run] if runs else None

    @property
    def call_meant(self) -> str | None:
        """The id of the call that the run's cursor is on, else of the one that the run is held at."""
        run, place = self.run_shown, self.run_pane.run_list.place
        if place is not None and place.call_id is not None:
            return place.call_id
        return run.paused.call_id if run is not None and run.paused is not None else None
