"""The selection: the row of the tree, a run, the models, and the runnable cases below a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench.authoring.case_list import CaseKey
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import OpenSuites
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.variants import NO_VARIANTS, Variants
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.summaries import deciding_run
from workbench.tui.tree.state import Row, TreeState

if TYPE_CHECKING:
    from workbench.analysis.over_time import LastResult
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


def runnable_below(tree: TreeState, row: Row, book: RunBook) -> list[tuple[OpenSuite, tuple[str, ...]]]:
    """Return the cases at or below a row that can be run and are not running, by suite."""
    below = []
    for suite, keys in tree.cases_below(row):
        if free := tuple(_inactive_cases(suite, keys, book)):
            below.append((suite, free))
    return below


def any_runnable_below(tree: TreeState, row: Row, book: RunBook) -> bool:
    """Return whether `runnable_below` would return any case. Stops at the first case."""
    return any(next(_inactive_cases(suite, keys, book), None) is not None for suite, keys in tree.cases_below(row))


def can_run(suite: OpenSuite, key: str) -> bool:
    """Return whether a case and the settings of its suite are free of errors."""
    return suite.file.suite is not None or key in _cases_without_errors(suite)


def _inactive_cases(suite: OpenSuite, keys: tuple[str, ...], book: RunBook) -> Iterator[str]:
    if suite.file.suite is None:
        sound = _cases_without_errors(suite)
        keys = tuple(key for key in keys if key in sound)
    return (key for key in keys if not book.active_runs((suite.path, key)))


def _cases_without_errors(suite: OpenSuite) -> frozenset[str]:
    """Return the keys of runnable cases of a suite in which other cases have errors."""
    # Cases with errors are cut out of the text that runs, which is possible only for `[[cases]]` blocks.
    if not suite.document.in_blocks:
        return frozenset()
    if any(not problem.where.startswith("cases[") for problem in suite.file.errors):
        return frozenset()
    broken = suite.broken_cases
    return frozenset(case.key for case in suite.run_cases if case.index not in broken)


def _one_per_case(cases: Iterable[tuple[OpenSuite, tuple[str, ...]]]) -> list[tuple[OpenSuite, str]]:
    return [(suite, key) for suite, keys in cases for key in keys]


SelectionChange: TypeAlias = Literal["row", "run"]
"""A change of the selected row, or of the selected run of its case."""


class Selection:
    """The selected row, run, models and variants. Calls the registered functions on a change."""

    def __init__(
        self, open_suites: OpenSuites, book: RunBook, *, models: tuple[str, ...] = (), models_for_now: bool = False
    ) -> None:
        self.open_suites = open_suites
        self.book = book
        self.tree = TreeState()
        self.models = models
        """The models to run on. If empty, each suite uses its own models."""
        self.models_for_now = models_for_now
        """Whether the models come from the command line. Such models are not remembered."""
        self.variants: Variants = NO_VARIANTS
        """The variants to run, and whether the suites also run as written."""
        self.variants_for_now = False
        """Whether the variants come from the start of the app. Such variants are not remembered for the project."""
        self.chosen_run = 0
        """The index of the selected run in the latest runs of the case."""
        self._followers: list[Callable[[SelectionChange], object]] = []

    def follow(self, follower: Callable[[SelectionChange], object]) -> None:
        """Register a function to call at every change of the selection, except when only the tree's cursor moves."""
        self._followers.append(follower)

    # Selected items

    @property
    def row(self) -> Row | None:
        return self.tree.selected

    @property
    def suite(self) -> OpenSuite | None:
        row = self.row
        if row is None:
            return None
        return row.open

    @property
    def outline(self) -> CaseOutline | None:
        """The selected case as the suite file has it, `None` if no case is selected."""
        row = self.row
        if row is None:
            return None
        return row.case

    @property
    def case(self) -> CaseKey | None:
        """The key of the selected case in `RunBook`: the suite's path and the key of the case in the suite."""
        row = self.row
        if row is None or row.case is None:
            return None
        return row.key.path, row.case.id

    @property
    def last_result(self) -> LastResult | None:
        """The last result of the selected case in the history, if the case has no run of this session."""
        row = self.row
        if row is None or row.case is None:
            return None
        return self.tree.remembered.shown((row.key.path, row.case.key), self.book)

    @property
    def title(self) -> str:
        """The name of the selected row."""
        row = self.row
        if row is None:
            return ""
        if row.case is not None:
            return row.case.name
        if row.open is not None:
            return row.open.path.name
        return row.label

    def suites_below(self) -> tuple[list[OpenSuite], str]:
        """Return the selected suite, or all suites in the selected folder, and a name for them."""
        row = self.row
        if row is not None and row.open is not None:
            return [row.open], one_line(row.open.path.name)
        folder, name = Path(), self.open_suites.workspace.place
        if row is not None:
            folder, name = row.key.path, row.label
        return [suite for suite in self.open_suites.suites if suite.path.is_relative_to(folder)], name

    def runnable_below(self, row: Row | None) -> list[tuple[OpenSuite, tuple[str, ...]]]:
        """Return the cases at or below a row that can be run and are not running, by suite."""
        if row is not None:
            return runnable_below(self.tree, row, self.book)
        return []

    def cases_around(self) -> tuple[list[tuple[OpenSuite, str]], range]:
        """Return all displayed cases with their suites, and the index range of cases at or below the selected row."""
        cases: list[tuple[OpenSuite, str]] = []
        below: list[tuple[OpenSuite, str]] = []
        for row in self.tree.rows:
            if row.depth == 0:
                cases += _one_per_case(self.tree.cases_below(row))
        if self.row is not None:
            below = _one_per_case(self.tree.cases_below(self.row))
        start = cases.index(below[0]) if below else 0
        return cases, range(start, start + len(below))

    # Runs

    @property
    def runs(self) -> list[RunRecord]:
        case = self.case
        if case is None:
            return []
        return self.book.runs_of(case)

    @property
    def run(self) -> RunRecord | None:
        runs = self.runs
        # The new batch may have fewer runs of the case than the batch before.
        self.chosen_run = min(self.chosen_run, max(len(runs) - 1, 0))
        if not runs:
            return None
        return runs[self.chosen_run]

    def choose_deciding_run(self) -> None:
        """Select the run that decides the status of the case."""
        self.chosen_run = deciding_run(self.runs)

    # Selecting

    def select(self, path: Path, case: str | None = None) -> None:
        """Select a suite or a case. `case` is the key of the case."""
        self.tree.select(path, case)
        self._notify("row")

    def choose_run(self, index: int) -> None:
        """Select a run of the case by its index in `runs`."""
        self.chosen_run = index
        self._notify("run")

    def find_run(self, run: RunRecord) -> bool:
        """Select a run, or its case if newer runs replaced the run. Return whether the case still exists."""
        suite = self.open_suites.at(run.path)
        if suite is None:
            return False
        for case in suite.run_cases:
            if case.id == run.case_id:
                self.select(run.path, case.key)
                self.choose_run(next((at for at, other in enumerate(self.runs) if other is run), self.chosen_run))
                return True
        return False

    def notify_all(self) -> None:
        """Call all registered functions as if another row was selected, so everything is shown again."""
        self._notify("row")

    def _notify(self, news: SelectionChange) -> None:
        for follower in self._followers:
            follower(news)


def go_to_run(selection: Selection, panes: MainScreen, app: Workbench, run: RunRecord) -> None:
    """Select a run and go to the run pane. If the case of the run is gone, announce that."""
    if selection.find_run(run):
        panes.go_to("run")
        return
    text = f"{run.case_name} is no longer in its suite"
    if run.result is None:
        text += "; its run is under way, and X stops it with all others"
    app.announce(text, "warned", GLYPHS.warned)
