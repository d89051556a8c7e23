"""The breakpoints of the app: stored with the project, applied to runs, and marked at calls and in forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.document import HEAD
from workbench.authoring.known_tools import KnownTools
from workbench.authoring.open_suites import OpenSuites
from workbench.config.program import Program
from workbench.config.project import project_folder
from workbench.engine.breakpoint_doubts import doubt_about
from workbench.tui.breakpoints.state import BreakpointFile, Breakpoints
from workbench.tui.kit.stage import Stage
from workbench.tui.lines.glyphs import GLYPHS

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.trajectory.messages import ToolDefinition


class Breaking:
    """The breakpoints of the open project, or those given for this session, which are not stored."""

    def __init__(
        self,
        stage: Stage,
        open_suites: OpenSuites,
        known_tools: KnownTools,
        program: Program,
        for_this_time: Sequence[Breakpoint] | None = None,
    ) -> None:
        self._stage = stage
        self._open_suites = open_suites
        self._known_tools = known_tools
        self._program = program
        self._followers: list[Callable[[Breakpoints], object]] = []
        self.given = for_this_time is not None
        """Whether they were given on the command line."""
        self.all = Breakpoints(for_this_time or (), secrets=program.secrets)
        self.all.changed = self.tell

    def follow(self, *followers: Callable[[Breakpoints], object]) -> None:
        """Call these functions with the breakpoints on every change."""
        self._followers += followers

    def find(self, opened: Path) -> tuple[Breakpoints, str | None]:
        """Return the stored breakpoints for the project of a file or folder, and problems with their file. Reads
        files."""
        if self.given:
            return self.all, None
        program, folder = self._program, opened if opened.is_dir() else opened.parent
        file = BreakpointFile(program.folders.breakpoints, project_folder(folder, program.environment.home))
        points, problem = file.read()
        return Breakpoints(points, file, program.secrets), problem

    def take(self, found: Breakpoints) -> None:
        """Apply these breakpoints from now on."""
        self.all = found
        found.changed = self.tell
        self.tell()

    def tools(self) -> list[ToolDefinition]:
        """Return all known tools of the open suites."""
        suites, known = self._open_suites.suites, self._known_tools
        return [tool for suite in suites for tool in known.of(suite.document.table(HEAD), suite.path)]

    def doubt(self, point: Breakpoint) -> str | None:
        """Return why a breakpoint may never hold, if so."""
        return doubt_about(point, self.tools())

    def tell(self) -> None:
        """Notify all followers, and announce if the breakpoints are not stored."""
        for follower in self._followers:
            follower(self.all)
        if self.all.problem is not None:
            self._stage.announce(self.all.problem, "warned", GLYPHS.warned)
