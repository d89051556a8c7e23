"""The breakpoints of the app: where they are kept, told to whatever runs, and shown at calls and in forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.document import HEAD
from workbench.config.project import project_folder
from workbench.engine.breakpoint_doubts import doubt_about
from workbench.tui.breakpoints.state import BreakpointFile, Breakpoints
from workbench.tui.case.form.view import FormView
from workbench.tui.lines.glyphs import GLYPHS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.engine.breakpoints import Breakpoint
    from workbench.trajectory.messages import ToolDefinition
    from workbench.tui.shell.workbench import Workbench


class Breaking:
    """The breakpoints of the project that is opened, or those that are given for this time and kept nowhere."""

    def __init__(self, app: Workbench, for_this_time: Sequence[Breakpoint] | None = None) -> None:
        self._app = app
        self.given = for_this_time is not None
        """Whether they were given on the command line."""
        self.all = Breakpoints(for_this_time or (), secrets=app.program.secrets)
        self.all.changed = self.tell

    def find(self, opened: Path) -> tuple[Breakpoints, str | None]:
        """The breakpoints kept for the project of a file or folder, and what is wrong with their file. Reads files."""
        if self.given:
            return self.all, None
        program, folder = self._app.program, opened if opened.is_dir() else opened.parent
        file = BreakpointFile(program.folders.breakpoints, project_folder(folder, program.environment.home))
        points, problem = file.read()
        return Breakpoints(points, file, program.secrets), problem

    def take(self, found: Breakpoints) -> None:
        """Hold runs at these from now on."""
        self.all = found
        found.changed = self.tell
        self.tell()

    def tools(self) -> list[ToolDefinition]:
        """All tools that the open suites are known to have."""
        main = self._app.main
        return [
            tool for suite in main.desk.suites for tool in main.known_tools.of(suite.document.table(HEAD), suite.path)
        ]

    def doubt(self, point: Breakpoint) -> str | None:
        """Why one may never hold, if anything speaks against it."""
        return doubt_about(point, self.tools())

    def tell(self) -> None:
        """Tell runs and panes what the breakpoints are now."""
        main, tools = self._app.main, self.all.tools
        self._app.runner.hold_at(self.all.points)
        run_list, form = main.run_pane.run_list, main.query_one("#form", FormView)
        run_list.breakpoints = form.breakpoints = tools
        run_list.repaint()
        form.repaint()
        if self.all.problem is not None:
            main.announce(self.all.problem, "warned", GLYPHS.warned)
