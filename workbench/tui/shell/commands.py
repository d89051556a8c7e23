"""What each action does: one method for each, by area, on the app and its main screen."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.tui.shell.areas import Areas
    from workbench.tui.shell.workbench import Workbench


class Commands:
    """All methods by the ids of their actions."""

    def __init__(self, app: Workbench) -> None:
        self._app = app

    @property
    def known(self) -> tuple[str, ...]:
        """The ids of all actions that can be performed."""
        return tuple(self.areas.methods)

    def perform(self, action_id: str) -> None:
        """Do what an action says; whether it can be done was asked before."""
        if not action_id.endswith("quit"):
            self._app.leaving.something_else()
        self.areas.perform(action_id)

    @cached_property
    def areas(self) -> Areas:
        """The areas, imported when they are first wanted."""
        from workbench.tui.shell.areas import Areas

        return Areas(self._app)
