"""The breakpoints of a project: stored in a file, applied to runs, and marked at calls and in forms."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.authoring.document import HEAD
from workbench.authoring.known_tools import KnownTools
from workbench.authoring.workspace import OpenSuites
from workbench.config.folders import project_folder
from workbench.config.program import Program
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.engine.breakpoints import Breakpoint, BreakpointError, breakpoint_line, breakpoint_of, doubt_about
from workbench.limits import MAX_STATE_FILE_BYTES
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.trust import write_atomically
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.stage import Announce

if TYPE_CHECKING:
    from workbench.trajectory.events import ToolDefinition
    from workbench.tui.shell.workbench import Workbench


_log = logging.getLogger(__name__)

_OFF = "off "
_NOT_KEPT = "a breakpoint with a secret in its condition is not saved: it works until you quit"

Switched = Literal["set", "switched on", "removed"]


class BreakpointFile:
    """The file with the breakpoints of one project.

    If two programs write it, the last one wins."""

    def __init__(self, folder: Path, project: Path) -> None:
        stem = re.sub(r"[^\w-]+", "-", project.name)[:40].strip("-") or "project"
        digest = hashlib.sha256(str(project).encode("utf-8", errors="surrogateescape")).hexdigest()[:12]
        self.path = folder / f"{stem}-{digest}.txt"
        self._project = project

    def read(self) -> tuple[tuple[Breakpoint, ...], str | None]:
        """Read the breakpoints, and a notice for the user, if any.

        A damaged file is renamed; its readable lines are kept."""
        try:
            if self.path.stat().st_size > MAX_STATE_FILE_BYTES:
                return (), self._set_aside(())
            content = self.path.read_bytes()
        except FileNotFoundError:
            return (), None
        except OSError as error:
            return (), f"{self.path} cannot be read ({error.strerror}): none of its breakpoints is set"
        points: list[Breakpoint] = []
        damaged = False
        for line in content.split(b"\n"):
            try:
                text = line.decode("utf-8").strip()
                if text and not text.startswith("#"):
                    point = breakpoint_of(text.removeprefix(_OFF))
                    points.append(replace(point, enabled=not text.startswith(_OFF)))
            except (UnicodeDecodeError, BreakpointError):
                damaged = True
        return tuple(points), self._set_aside(points) if damaged else None

    def write(self, points: Sequence[Breakpoint]) -> str | None:
        """Replace the content.

        Returns why not, if that fails."""
        lines = [f"# Breakpoints of {one_line(str(self._project))}", *map(_stored_line, points)]
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self.path, "".join(f"{line}\n" for line in lines).encode("utf-8", errors="replace"))
        except OSError as error:
            _log.warning("%s cannot be written: %s", self.path, error)
            return f"breakpoints cannot be saved in {self.path} ({error.strerror}): they work until you quit"
        return None

    def _set_aside(self, readable: Sequence[Breakpoint]) -> str:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            return f"{self.path} is damaged and cannot be moved ({error.strerror})"
        left = f"{len(readable)} of its breakpoints could be read" if readable else "no breakpoint is set"
        return self.write(readable) or f"{self.path} was damaged and renamed to {aside.name}: {left}"


def _stored_line(point: Breakpoint) -> str:
    return f"{'' if point.enabled else _OFF}{breakpoint_line(point)}"


class Breakpoints:
    """All breakpoints, in the order in which they were set.

    Without a `file`, they are for this session only.

    Every change is stored at once and reported to `changed`. `problem` is why that failed. A breakpoint with a secret
    in its condition is not written.
    """

    def __init__(
        self,
        points: Sequence[Breakpoint] = (),
        file: BreakpointFile | None = None,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._secrets = secrets
        self.points: tuple[Breakpoint, ...] = tuple(points)
        self.file = file
        self.problem: str | None = None
        self.changed: Callable[[], object] = lambda: None

    @property
    def tools(self) -> frozenset[str]:
        """The tools with enabled breakpoints on their calls or results."""
        return frozenset(point.tool for point in self.points if point.enabled and point.tool is not None)

    def index_of(self, point: Breakpoint) -> int | None:
        """Return the index of the breakpoint at the same place, if there is one."""
        return next((index for index, known in enumerate(self.points) if known.same_place(point)), None)

    def switch(self, point: Breakpoint) -> Switched:
        """Set a breakpoint.

        If it is already set, remove it, or enable it if it was disabled."""
        index = self.index_of(point)
        if index is None:
            self._become((*self.points, point))
            return "set"
        if self.points[index].enabled:
            self.remove(index)
            return "removed"
        self.toggle(index)
        return "switched on"

    def put(self, point: Breakpoint, index: int | None = None) -> int:
        """Set a breakpoint, replacing the one at an index if given.

        Returns its index. One that exists already is enabled instead of duplicated."""
        points = list(self.points)
        if index is not None and index < len(points):
            point = replace(point, enabled=points[index].enabled)
            points[index] = point
        elif (known := self.index_of(point)) is not None:
            points[known] = point
        else:
            points.append(point)
        self._become([each for at, each in enumerate(points) if not any(each.same_place(one) for one in points[:at])])
        return self.index_of(point) or 0

    def toggle(self, index: int) -> None:
        """Enable or disable a breakpoint."""
        points = list(self.points)
        points[index] = replace(points[index], enabled=not points[index].enabled)
        self._become(points)

    def remove(self, index: int) -> None:
        """Remove a breakpoint."""
        self._become((*self.points[:index], *self.points[index + 1 :]))

    def enable_all(self, enabled: bool) -> None:
        """Enable or disable all breakpoints."""
        self._become([replace(point, enabled=enabled) for point in self.points])

    def _become(self, points: Sequence[Breakpoint]) -> None:
        self.points = tuple(points)
        if self.file is not None:
            storable = []
            for point in self.points:
                if not self._is_secret(point):
                    storable.append(point)
            self.problem = self.file.write(storable) or (_NOT_KEPT if len(storable) < len(self.points) else None)
        self.changed()

    def _is_secret(self, point: Breakpoint) -> bool:
        line = breakpoint_line(point)
        return self._secrets.redact(line) is not line


class ProjectBreakpoints:
    """The breakpoints of the open project, or those given for this session, which are not stored."""

    def __init__(
        self,
        stage: Workbench,
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
        """Return the stored breakpoints for the project of a file or folder, and problems with their file.

        Reads files."""
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

    def switch(self, found: Breakpoint | str, announce: Announce) -> None:
        """Set or remove a breakpoint, and announce it.

        A text instead of a breakpoint says why none was found."""
        try:
            line = found if isinstance(found, str) else breakpoint_line(found)
        except ValueError as error:
            found = line = str(error)
        if isinstance(found, str):
            announce(f"No breakpoint was set: {found}", "warned", GLYPHS.warned)
            return
        done = self.all.switch(found)
        if self.all.problem is not None:
            return
        doubt = self.doubt(found) if done != "removed" else None
        if doubt is not None:
            announce(f"Breakpoint {done}: {line}; but {doubt}", "warned", GLYPHS.warned)
        else:
            announce(f"Breakpoint {done}: {line}; {key_for('break.list')} lists all", "text", GLYPHS.breakpoint)

    def tell(self) -> None:
        """Notify all followers, and announce if the breakpoints are not stored."""
        for follower in self._followers:
            follower(self.all)
        if self.all.problem is not None:
            self._stage.announce(self.all.problem, "warned", GLYPHS.warned)
