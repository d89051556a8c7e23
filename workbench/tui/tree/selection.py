"""What the tree's cursor stands on, which run of it is looked at, and the models to run on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from workbench.authoring.case_now import CaseKey
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.open_suites import OpenSuites
from workbench.reports.visible import one_line
from workbench.tui.kit.stage import Panes, Stage
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.summaries import deciding_run
from workbench.tui.tree.runnable import runnable_below
from workbench.tui.tree.state import Row, TreeState

SelectionNews: TypeAlias = Literal["row", "run"]
"""What is another one now: the row under the tree's cursor, or the run of it that is looked at."""


class Selection:
    """What is selected, as data. Whoever shows it follows it."""

    def __init__(
        self, open_suites: OpenSuites, book: RunBook, *, models: tuple[str, ...] = (), models_for_now: bool = False
    ) -> None:
        self.open_suites = open_suites
        self.book = book
        self.tree = TreeState()
        self.models = models
        """The models to run on; empty: each suite's own."""
        self.models_for_now = models_for_now
        """Whether the command line says which they are: for this start only, until others are chosen."""
        self.chosen_run = 0
        """Which of the latest runs of the selected case is looked at."""
        self._followers: list[Callable[[SelectionNews], object]] = []

    def follow(self, follower: Callable[[SelectionNews], object]) -> None:
        """Call a function whenever something else was selected from elsewhere than the tree on the screen."""
        self._followers.append(follower)

    # What is selected

    @property
    def row(self) -> Row | None:
        """The row under the tree's cursor."""
        return self.tree.selected

    @property
    def suite(self) -> OpenSuite | None:
        """The suite that the cursor is on or in."""
        row = self.row
        return row.open if row is not None else None

    @property
    def outline(self) -> CaseOutline | None:
        """The case under the cursor, as it is written."""
        row = self.row
        return row.case if row is not None else None

    @property
    def case(self) -> CaseKey | None:
        """The case under the cursor, as its runs know it."""
        row = self.row
        return (row.key.path, row.case.id) if row is not None and row.case is not None else None

    @property
    def title(self) -> str:
        """What to call what is under the cursor."""
        row = self.row
        if row is None:
            return ""
        if row.case is not None:
            return row.case.name
        return row.open.path.name if row.open is not None else row.label

    def suites_below(self) -> tuple[list[OpenSuite], str]:
        """Returns the suite that the cursor is in, or all those in its folder, and what to call them."""
        row = self.row
        if row is not None and row.open is not None:
            return [row.open], one_line(row.open.path.name)
        folder = row.key.path if row is not None else Path()
        suites = [suite for suite in self.open_suites.suites if suite.path.is_relative_to(folder)]
        return suites, row.label if row is not None else self.open_suites.workspace.place

    def runnable_below(self, row: Row | None) -> list[tuple[OpenSuite, tuple[str, ...]]]:
        """Returns the cases at or below a row that can run and are not running already, by suite."""
        return runnable_below(self.tree, row, self.book) if row is not None else []

    # Runs

    @property
    def runs(self) -> list[RunRecord]:
        """The latest runs of the selected case."""
        case = self.case
        return self.book.runs_of(case) if case is not None else []

    @property
    def run(self) -> RunRecord | None:
        """The run of the selected case that is looked at."""
        runs = self.runs
        self.chosen_run = min(self.chosen_run, max(len(runs) - 1, 0))
        return runs[self.chosen_run] if runs else None

    def choose_deciding_run(self) -> None:
        """Look at the run that decides what is shown of the selected case."""
        self.chosen_run = deciding_run(self.runs)

    # Selecting

    def select(self, path: Path, case: str | None = None) -> None:
        """Put the cursor on a suite or, by its key, on a case."""
        self.tree.select(path, case)
        self._tell("row")

    def choose_run(self, index: int) -> None:
        """Look at another run of the selected case, by its place among `runs`."""
        self.chosen_run = index
        self._tell("run")

    def find_run(self, run: RunRecord) -> bool:
        """Select a run, or what has come in its place since. Returns whether its case is still there."""
        suite = self.open_suites.at(run.path)
        case = next((case for case in suite.cases if case.id == run.case_id), None) if suite is not None else None
        if case is None:
            return False
        self.select(run.path, case.key)
        self.choose_run(next((at for at, other in enumerate(self.runs) if other is run), self.chosen_run))
        return True

    def show_again(self) -> None:
        """Let everything be shown anew that depends on what is selected."""
        self._tell("row")

    def _tell(self, news: SelectionNews) -> None:
        for follower in self._followers:
            follower(news)


def go_to_run(selection: Selection, panes: Panes, stage: Stage, run: RunRecord) -> None:
    """Select a run and go to the run pane, or announce that its case is gone."""
    if selection.find_run(run):
        panes.go_to("run")
        return
    way = "" if run.result is not None else "; its run is under way, and X stops it with all others"
    stage.announce(f"{run.case_name} is gone from its suite{way}", "warned", GLYPHS.warned)
