"""The screen of tools: opening it, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.tui.commands.beside import on_beside
from workbench.tui.copying import copy_text

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.screens.tools import ToolsScreen
    from workbench.tui.state.call_form import CallForm
    from workbench.tui.workbench import Workbench


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
        from workbench.tui.screens.tools import ToolsScreen

        files, place = below_cursor(screen)
        # The form names and checks tools as they are known: servers may have listed others meanwhile.
        self._app.push_screen(ToolsScreen(self._app, files, place, self._forms), lambda _: screen.show_selected())


def below_cursor(screen: MainScreen) -> tuple[Sequence[SuiteFile], str]:
    """The suite that the tree's cursor is in, or all those in its folder, and what to call them."""
    row = screen.suites.selected
    if row is not None and row.open is not None:
        return [row.open.file], one_line(row.open.path.name)
    folder = row.key.path if row is not None else Path()
    files = [suite.file for suite in screen.desk.suites if suite.path.is_relative_to(folder)]
    return files, row.label if row is not None else screen.workspace.place
