"""What the tree's cursor stands on, and the runs of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_now import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord
from workbench.tui.shell.panes import PanesScreen
from workbench.tui.tree.runnable import runnable_below
from workbench.tui.tree.state import Row, TreeState

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen


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


def go_to_run(screen: MainScreen, run: RunRecord) -> None:
    """Put the tree's cursor on the case of a run and show that run, or what has come in its place since."""
    suite = screen.desk.at(run.path)
    case = next((case for case in suite.cases if case.id == run.case_id), None) if suite is not None else None
    if case is None:
        way = "" if run.result is not None else "; its run is under way, and X stops it with all others"
        screen.announce(f"{run.case_name} is gone from its suite{way}", "warned", GLYPHS.warned)
        return
    screen.select(run.path, case.key)
    runs = screen.runs_shown
    screen.chosen_run = next((at for at, other in enumerate(runs) if other is run), screen.chosen_run)
    screen.show_run()
    screen.go_to("run")


def suites_below_cursor(screen: MainScreen) -> tuple[list[OpenSuite], str]:
    """The suite that the tree's cursor is in, or all those in its folder, and what to call them."""
    row = screen.suites.selected
    if row is not None and row.open is not None:
        return [row.open], one_line(row.open.path.name)
    folder = row.key.path if row is not None else Path()
    suites = [suite for suite in screen.desk.suites if suite.path.is_relative_to(folder)]
    return suites, row.label if row is not None else screen.workspace.place


def below_cursor(screen: MainScreen) -> tuple[Sequence[SuiteFile], str]:
    """The suite that the tree's cursor is in, or all those in its folder, and what to call them."""
    row = screen.suites.selected
    if row is not None and row.open is not None:
        return [row.open.file], one_line(row.open.path.name)
    folder = row.key.path if row is not None else Path()
    files = [suite.file for suite in screen.desk.suites if suite.path.is_relative_to(folder)]
    return files, row.label if row is not None else screen.workspace.place


def case_of(row: Row | None) -> CaseKey | None:
    """The case under the cursor."""
    if row is None or row.case is None:
        return None
    return row.key.path, row.case.id


def case_title(row: Row | None) -> str:
    """What the case pane is about."""
    if row is None:
        return ""
    if row.case is not None:
        return row.case.name
    return row.open.path.name if row.open is not None else row.label
