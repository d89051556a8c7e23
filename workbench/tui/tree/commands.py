"""The keys of the suite tree: filter, fold, open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from workbench.tui.kit.stage import Panes
from workbench.tui.tree.selection import Selection
from workbench.tui.tree.view import FilterBox, SuiteTree


class TreeCommands:
    """Handles the actions of `actions.tree`."""

    def __init__(
        self,
        selection: Selection,
        panes: Panes,
        view: SuiteTree,
        filter_box: FilterBox,
        search_run: Callable[[], object],
        begin: Callable[[], object],
    ) -> None:
        self._selection = selection
        self._panes = panes
        self._view = view
        self._filter_box = filter_box
        self._search_run = search_run
        self._begin = begin
        self.methods: dict[str, Callable[[], object]] = {
            "tree.filter": self._find,
            "tree.open": self._open,
            "tree.fold": partial(self._fold, True),
            "tree.unfold": partial(self._fold, False),
        }

    def _find(self) -> None:
        if self._panes.pane == "run" and self._selection.runs:
            self._search_run()
        else:
            self._filter_box.begin()

    def _open(self) -> None:
        row, tree = self._selection.row, self._selection.tree
        if row is None:
            if not tree.filter:
                self._begin()
            return
        if row.case is None and tree.is_foldable(row) and (row.open is None or row.open.cases):
            self._fold(not tree.is_folded(row))
        else:
            self._panes.go_to("run" if self._selection.runs else "case")

    def _fold(self, folded: bool) -> None:
        row, tree = self._selection.row, self._selection.tree
        if row is None:
            return
        if folded and (not tree.is_foldable(row) or tree.is_folded(row)):
            tree.move_to(tree.parent(tree.cursor))
        else:
            tree.fold(row, folded)
        self._view.follow_state()
