"""Saving suites."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.stepping.commands import keep_typed

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class SavingCommands:
    """The methods of `actions.saving`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "save": self._save,
            "save.all": lambda screen: self._app.saver.save_soon(screen.desk.dirty),
            "save.as": self._save_as,
        }

    def _save(self, screen: MainScreen) -> None:
        suite = screen.selected_suite
        if screen.run_pane.typing is not None:
            self._app.run_worker(keep_typed(self._app, screen), group="step")
        elif suite is not None and suite.untaken_said is not None and not suite.dirty:
            screen.announce(f"Nothing to save but {suite.untaken_said}", "warned", GLYPHS.warned)
        elif suite is not None:
            self._app.saver.save_soon((suite,))

    def _save_as(self, screen: MainScreen) -> None:
        if (suite := screen.selected_suite) is not None:
            self._app.saver.save_as_soon(suite)
