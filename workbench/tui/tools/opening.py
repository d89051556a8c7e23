"""The screen of tools: opening it, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench
    from workbench.tui.tools.call_form import CallForm
    from workbench.tui.tools.screen import ToolsScreen


class ToolsCommands:
    """The methods of `actions.tools`. The screen is imported when it is first opened; what was typed for calls by hand
    is kept until the program ends."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._forms: dict[tuple[Path, str], CallForm] = {}
        of_screen: dict[str, Callable[[ToolsScreen], object]] = {
            "show": lambda tools: tools.show(),
            "start": lambda tools: tools.serve("start"),
            "stop": lambda tools: tools.serve("stop"),
            "renew": lambda tools: tools.serve("renew"),
            "call": lambda tools: tools.call(),
            "copy": lambda tools: copy_text(app, *tools.text_to_copy(), tools.announce),
            "filter": lambda tools: tools.open_filter(),
            "other": lambda tools: tools.other_column(),
            "back": lambda tools: tools.back(),
        }
        self.methods = {"tools": self._open, **on_beside(app, "tools", of_screen)}

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.tools.screen import ToolsScreen

        suites, place = screen.selection.suites_below()
        files = [suite.file for suite in suites]
        # The form names and checks tools as they are known: servers may have listed others meanwhile.
        self._app.push_screen(ToolsScreen(self._app, files, place, self._forms), lambda _: screen.show_selected())
