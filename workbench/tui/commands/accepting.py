"""Accepting what a model did as what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench


class AcceptingCommands:
    """The methods of the actions that accept."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "accept": lambda screen: self._accept(screen, whole=screen.pane != "run"),
            "accept.run": lambda screen: self._accept(screen, whole=True),
        }

    def _accept(self, screen: MainScreen, *, whole: bool) -> None:
        from workbench.tui.accepting import accept  # on first use: it grades, which takes a while to import

        accept(self._app, screen, whole=whole)
