"""Panes, zoom, and copying what they show."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.actions import PANES
from workbench.tui.copying import copy_text
from workbench.tui.state.run_copy import copied_text
from workbench.tui.widgets.run_list import RunList

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench


class ViewingCommands:
    """The methods of `actions.viewing`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "copy": self._copy,
            "pane.suites": lambda screen: screen.go_to("suites"),
            "pane.case": lambda screen: screen.go_to("case"),
            "pane.run": lambda screen: screen.go_to("run"),
            "pane.next": lambda screen: self._next_pane(screen, 1),
            "pane.previous": lambda screen: self._next_pane(screen, -1),
            "zoom": self._zoom,
            "back": self._back,
        }

    def _copy(self, screen: MainScreen) -> None:
        text, what = self._text_to_copy(screen)
        copy_text(self._app, text, what, screen.announce)

    def _text_to_copy(self, screen: MainScreen) -> tuple[str, str]:
        if screen.pane == "run":
            item = screen.query_one("#run", RunList).item
            return copied_text(item) if item is not None else ("", "")
        if screen.pane == "case":
            return screen.case_pane.text_to_copy()
        row = screen.suites.selected
        if row is None:
            return "", ""
        if row.problem is not None:
            return str(row.problem), "the problem"
        return (row.case.id, "the case's id") if row.case is not None else (str(row.key.path), "the path")

    def _next_pane(self, screen: MainScreen, step: int) -> None:
        if screen.filter_box.typing:
            screen.filter_box.end(keep=True)
        screen.go_to(PANES[(PANES.index(screen.pane) + step) % len(PANES)])

    def _zoom(self, screen: MainScreen) -> None:
        screen.zoomed = not screen.zoomed
        screen.place_panes()
        screen.refresh_bars()

    def _back(self, screen: MainScreen) -> None:
        if screen.filter_box.typing or (screen.suites.filter and screen.pane == "suites"):
            screen.filter_box.end(keep=False)
        elif screen.pane == "run" and screen.run_pane.searching:
            screen.run_pane.end_search()
        elif screen.zoomed:
            self._zoom(screen)
        else:
            screen.go_to("suites")
