"""The screen of the audit: opening it, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.commands.tools import below_cursor
from workbench.tui.copying import copy_text

if TYPE_CHECKING:
    from workbench.tui.screens.audit import AuditScreen
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.state.audit_lines import Target
    from workbench.tui.workbench import Workbench


class AuditCommands:
    """The methods of `actions.audit`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "audit": self._open,
            "audit.open": self._on_audit(lambda audit: audit.open()),
            "audit.copy": self._on_audit(lambda audit: copy_text(app, audit.text, "the audit", audit.announce)),
            "audit.back": self._on_audit(lambda audit: audit.dismiss(None)),
            "audit.help": self._on_audit(lambda audit: audit.help()),
            "audit.quit": self._on_audit(self._quit),
        }

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.screens.audit import AuditScreen

        files, place = below_cursor(screen)
        row = screen.suites.selected
        begin_at = (row.open.path, row.case.id) if row is not None and row.open is not None and row.case else None

        def go(target: Target | None) -> None:
            if target is None:
                screen.show_selected()
                return
            path, case_id = target
            suite = screen.desk.at(path)
            cases = suite.cases if suite is not None else ()
            screen.select(path, next((case.key for case in cases if case.id == case_id), None))

        self._app.push_screen(AuditScreen(self._app, files, place, begin_at), go)

    def _on_audit(self, do: Callable[[AuditScreen], object]) -> Callable[[MainScreen], object]:
        def perform(_: MainScreen) -> None:
            from workbench.tui.screens.audit import AuditScreen

            if isinstance(audit := self._app.screen, AuditScreen):
                do(audit)

        return perform

    def _quit(self, audit: AuditScreen) -> None:
        """Quit by way of the main screen, where there may be something to ask."""
        audit.dismiss(None)
        self._app.main.call_after_refresh(self._app.ask_to_quit)
