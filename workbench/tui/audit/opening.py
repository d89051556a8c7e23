"""The screen of the audit: opening it, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside

if TYPE_CHECKING:
    from workbench.tui.audit.lines import Target
    from workbench.tui.audit.screen import AuditScreen
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class AuditCommands:
    """The methods of `actions.audit`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        of_screen: dict[str, Callable[[AuditScreen], object]] = {
            "open": lambda audit: audit.open(),
            "copy": lambda audit: copy_text(app, audit.text, "the audit", audit.announce),
            "back": lambda audit: audit.dismiss(None),
        }
        self.methods = {"audit": self._open, **on_beside(app, "audit", of_screen)}

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.audit.screen import AuditScreen

        suites, place = screen.selection.suites_below()
        files = [suite.file for suite in suites]
        row = screen.suites.selected
        begin_at = (row.open.path, row.case.id) if row is not None and row.open is not None and row.case else None

        def go(target: Target | None) -> None:
            if target is None:
                screen.show_selected()
                return
            path, case_id = target
            suite = screen.desk.at(path)
            cases = suite.cases if suite is not None else ()
            screen.selection.select(path, next((case.key for case in cases if case.id == case_id), None))

        self._app.push_screen(AuditScreen(self._app, files, place, begin_at), go)
