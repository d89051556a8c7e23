"""The screen of tools: opening it, and what its keys do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
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
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "tools": self._open,
            "tools.show": self._on_tools(lambda tools: tools.show()),
            "tools.start": self._on_tools(lambda tools: tools.serve("start")),
            "tools.stop": self._on_tools(lambda tools: tools.serve("stop")),
            "tools.renew": self._on_tools(lambda tools: tools.serve("renew")),
            "tools.call": self._on_tools(lambda tools: tools.call()),
            "tools.copy": self._on_tools(self._copy),
            "tools.filter": self._on_tools(lambda tools: tools.open_filter()),
            "tools.other": self._on_tools(lambda tools: tools.other_column()),
            "tools.back": self._on_tools(lambda tools: tools.back()),
            "tools.help": self._on_tools(lambda tools: tools.help()),
            "tools.quit": self._on_tools(self._quit),
        }

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.screens.tools import ToolsScreen

        files, place = below_cursor(screen)
        # The form names and checks tools as they are known: servers may have listed others meanwhile.
        self._app.push_screen(ToolsScreen(self._app, files, place, self._forms), lambda _: screen.show_selected())

    def _on_tools(self, do: Callable[[ToolsScreen], object]) -> Callable[[MainScreen], object]:
        def perform(_: MainScreen) -> None:
            from workbench.tui.screens.tools import ToolsScreen

            if isinstance(tools := self._app.screen, ToolsScreen):
                do(tools)

        return perform

    def _quit(self, tools: ToolsScreen) -> None:
        """Quit by way of the main screen, where there may be something to ask."""
        tools.dismiss()
        self._app.main.call_after_refresh(self._app.ask_to_quit)

    def _copy(self, tools: ToolsScreen) -> None:
        copy_text(self._app, *tools.text_to_copy(), tools.announce)


def below_cursor(screen: MainScreen) -> tuple[Sequence[SuiteFile], str]:
    """The suite that the tree's cursor is in, or all those in its folder, and what to call them."""
    row = screen.suites.selected
    if row is not None and row.open is not None:
        return [row.open.file], one_line(row.open.path.name)
    folder = row.key.path if row is not None else Path()
    files = [suite.file for suite in screen.desk.suites if suite.path.is_relative_to(folder)]
    return files, row.label if row is not None else screen.workspace.place
