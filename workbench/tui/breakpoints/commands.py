"""Setting breakpoints, and the list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.engine.breakpoint_text import breakpoint_line
from workbench.engine.breakpoints import Breakpoint
from workbench.tui.breakpoints.here import NOTHING_IN_FORM, NOTHING_IN_RUN, breakpoint_in_form, breakpoint_in_run
from workbench.tui.case.form.view import FormView
from workbench.tui.kit.stage import Announce
from workbench.tui.lines.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class BreakingCommands:
    """The methods of `actions.breaking`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {"break.here": self._here, "break.list": self._list}

    def _here(self, screen: MainScreen) -> None:
        found: Breakpoint | str
        if screen.pane == "run":
            run = screen.run_pane.run_list
            found = breakpoint_in_run(run.item, run.place, run.line_at(run.cursor))
        elif screen.pane == "case" and screen.case_pane.view == "form":
            page = screen.query_one("#form", FormView).page
            row = page.current
            found = breakpoint_in_form(page.source.table, row.place) if page.source and row else NOTHING_IN_FORM
        else:
            found = f"in the run, {NOTHING_IN_RUN}; in the form of a case, {NOTHING_IN_FORM}"
        self._switch(found, screen.announce)

    def turn_at_tool(self, tool: str, announce: Announce) -> None:
        """Set a breakpoint at calls of a tool, or take it away."""
        self._switch(Breakpoint("tool", tool), announce)

    def _switch(self, found: Breakpoint | str, say: Announce) -> None:
        try:
            line = found if isinstance(found, str) else breakpoint_line(found)
        except ValueError as error:
            found = line = str(error)
        if isinstance(found, str):
            say(f"No breakpoint was set: {found}", "warned", GLYPHS.warned)
            return
        done = self._app.breaking.all.switch(found)
        if self._app.breaking.all.problem is not None:
            return
        doubt = self._app.breaking.doubt(found) if done != "taken away" else None
        if doubt is not None:
            say(f"Breakpoint {done}: {line}; but {doubt}", "warned", GLYPHS.warned)
        else:
            say(f"Breakpoint {done}: {line}; {self._keys} lists all", "text", GLYPHS.breakpoint)

    @property
    def _keys(self) -> str:
        from workbench.tui.shell.registry import BY_ID

        return self._app.keymap.names(BY_ID["break.list"]) or "Breakpoints, among all commands,"

    def _list(self, screen: MainScreen) -> None:
        from workbench.tui.breakpoints.screen import BreakpointsScreen

        self._app.push_screen(BreakpointsScreen(self._app, self._app.breaking))
