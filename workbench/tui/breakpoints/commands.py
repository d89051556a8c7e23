"""Setting breakpoints, and listing them."""

from __future__ import annotations

from collections.abc import Callable

from workbench.engine.breakpoints import Breakpoint, breakpoint_line
from workbench.show.glyphs import GLYPHS
from workbench.tui.breakpoints.lines import NOTHING_IN_FORM, NOTHING_IN_RUN, breakpoint_in_form
from workbench.tui.breakpoints.project import ProjectBreakpoints
from workbench.tui.case.pane import CasePane
from workbench.tui.kit.stage import Announce, Panes, Stage


class BreakpointCommands:
    """Sets breakpoints, and opens the screen with the list."""

    def __init__(
        self,
        stage: Stage,
        panes: Panes,
        project: ProjectBreakpoints,
        case_pane: CasePane,
        *,
        in_run: Callable[[], Breakpoint | str],
        key_name: Callable[[str], str],
    ) -> None:
        self._stage = stage
        self._panes = panes
        self._project = project
        self._case_pane = case_pane
        self._in_run = in_run
        """Returns the breakpoint for the cursor in the run, or why there is none."""
        self._key_name = key_name
        """Returns the names of an action's keys, empty if it has none."""
        self.methods: dict[str, Callable[[], object]] = {"break.here": self._here, "break.list": self._list}

    def _here(self) -> None:
        found: Breakpoint | str
        if self._panes.pane == "run":
            found = self._in_run()
        elif self._panes.pane == "case" and self._case_pane.view == "form":
            page = self._case_pane.form.page
            row = page.current
            found = breakpoint_in_form(page.source.table, row.place) if page.source and row else NOTHING_IN_FORM
        else:
            found = f"in the run, {NOTHING_IN_RUN}; in the form of a case, {NOTHING_IN_FORM}"
        self._switch(found, self._stage.announce)

    def turn_at_tool(self, tool: str, announce: Announce) -> None:
        """Set or remove a breakpoint on calls of a tool."""
        self._switch(Breakpoint("tool", tool), announce)

    def _switch(self, found: Breakpoint | str, say: Announce) -> None:
        try:
            line = found if isinstance(found, str) else breakpoint_line(found)
        except ValueError as error:
            found = line = str(error)
        if isinstance(found, str):
            say(f"No breakpoint was set: {found}", "warned", GLYPHS.warned)
            return
        done = self._project.all.switch(found)
        if self._project.all.problem is not None:
            return
        doubt = self._project.doubt(found) if done != "removed" else None
        if doubt is not None:
            say(f"Breakpoint {done}: {line}; but {doubt}", "warned", GLYPHS.warned)
        else:
            say(f"Breakpoint {done}: {line}; {self._keys} lists all", "text", GLYPHS.breakpoint)

    @property
    def _keys(self) -> str:
        return self._key_name("break.list") or "Breakpoints, among all commands,"

    def _list(self) -> None:
        from workbench.tui.breakpoints.screen import BreakpointsScreen

        self._stage.show(BreakpointsScreen(self._stage, self._project))
