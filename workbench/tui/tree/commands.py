"""The suite tree: filter, fold, open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.tree.view import SuiteTree

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class TreeCommands:
    """The methods of `actions.tree`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "tree.filter": self._find,
            "tree.open": self._open,
            "tree.fold": lambda screen: self._fold(screen, True),
            "tree.unfold": lambda screen: self._fold(screen, False),
        }

    def _find(self, screen: MainScreen) -> None:
        if screen.pane == "run" and screen.runs_shown:
            screen.run_pane.search()
        else:
            screen.filter_box.begin()

    def _open(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None:
            return
        if row.case is None and screen.suites.is_foldable(row) and (row.open is None or row.open.cases):
            self._fold(screen, not screen.suites.is_folded(row))
        else:
            screen.go_to("run" if screen.runs_shown else "case")

    def _fold(self, screen: MainScreen, folded: bool) -> None:
        suites = screen.suites
        row = suites.selected
        if row is None:
            return
        if folded and (not suites.is_foldable(row) or suites.is_folded(row)):
            suites.move_to(suites.parent(suites.cursor))
        else:
            suites.fold(row, folded)
        screen.query_one("#suites", SuiteTree).follow_state()
