"""Setting breakpoints, and the list of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.engine.breakpoint_text import breakpoint_line
from workbench.engine.breakpoints import Breakpoint
from workbench.tui.breakpoints.here import NOTHING_IN_FORM, NOTHING_IN_RUN, breakpoint_in_form, breakpoint_in_run
from workbench.tui.case.form.view import FormView
from workbench.tui.kit.side_screen import on_beside
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role

if TYPE_CHECKING:
    from workbench.tui.breakpoints.screen import BreakpointsScreen
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


Say = Callable[[str, Role, str], object]


class BreakingCommands:
    """The methods of `actions.breaking`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        of_screen: dict[str, Callable[[BreakpointsScreen], object]] = {
            "switch": lambda screen: screen.switch(),
            "add": lambda screen: screen.type_new(),
            "edit": lambda screen: screen.type_anew(),
            "delete": lambda screen: screen.delete(),
            "off": lambda screen: screen.enable_all(False),
            "on": lambda screen: screen.enable_all(True),
            "complete": lambda screen: screen.complete(),
            "back": lambda screen: screen.back(),
        }
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "break.here": self._here,
            "break.list": self._list,
            "tools.break": self._at_tool,
            **on_beside(app, "breakpoints", of_screen),
        }

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

    def _at_tool(self, screen: MainScreen) -> None:
        from workbench.tui.tools.screen import ToolsScreen

        tools = self._app.screen
        if isinstance(tools, ToolsScreen) and (tool := tools.tool_here) is not None:
            self._switch(Breakpoint("tool", tool), tools.announce)

    def _switch(self, found: Breakpoint | str, say: Say) -> None:
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

        self._app.push_screen(BreakpointsScreen(self._app))
