"""Opens the audit, and goes from it to a case."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tools.listings import Listings
from workbench.tui.kit.stage import Stage
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.audit.lines import Target


class AuditCommands:
    """Opens the screen of the audit."""

    def __init__(self, stage: Stage, selection: Selection, listings: Listings) -> None:
        self._stage = stage
        self._selection = selection
        self._listings = listings
        self.methods: dict[str, Callable[[], object]] = {"audit": self._open}

    def _open(self) -> None:
        from workbench.tui.audit.screen import AuditScreen

        selection = self._selection
        suites, place = selection.suites_below()
        begin_at = (selection.suite.path, selection.outline.id) if selection.suite and selection.outline else None
        screen = AuditScreen(self._stage, [suite.file for suite in suites], place, begin_at, self._listings)
        self._stage.show(screen, self._go)

    def _go(self, target: Target | None) -> None:
        if target is None:
            self._selection.show_again()
            return
        path, case_id = target
        suite = self._selection.open_suites.at(path)
        cases = suite.cases if suite is not None else ()
        self._selection.select(path, next((case.key for case in cases if case.id == case_id), None))
