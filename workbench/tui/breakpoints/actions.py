"""The actions that set and list breakpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.tui.kit.actions import MainActions, action

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint


class BreakpointActions(MainActions):
    """The actions that set a breakpoint at the cursor and open the list of breakpoints."""

    GROUP = "Step by step"

    @action("b", "Set or remove a breakpoint at the cursor", name="break.here", label="break", changes=True)
    def here(self) -> None:
        from workbench.tui.breakpoints.screen import (
            NOTHING_IN_FORM,
            NOTHING_IN_RUN,
            breakpoint_in_form,
            breakpoint_in_run,
        )

        main = self.app.main
        found: Breakpoint | str
        if main.pane == "run":
            found = breakpoint_in_run(*main.run_pane.run_list.at_cursor)
        elif main.pane == "case" and main.case_pane.view == "form":
            page = main.case_pane.form.page
            row, found = page.current, NOTHING_IN_FORM
            if page.source and row:
                found = breakpoint_in_form(page.source.table, row.place)
        else:
            found = f"in the run, {NOTHING_IN_RUN}; in the form of a case, {NOTHING_IN_FORM}"
        self.app.services.breakpoints.switch(found, self.app.announce)

    @action("B", "Breakpoints: list, add, edit, enable or disable", name="break.list", words="debug debugger pause")
    def show_all(self) -> None:
        from workbench.tui.breakpoints.screen import BreakpointsScreen

        self.app.show(BreakpointsScreen(self.app, self.app.services.breakpoints))
