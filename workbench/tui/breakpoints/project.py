"""The breakpoints of a project: the stored file, the changes, and the functions to call after a change."""

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
from workbench.engine.breakpoints import Breakpoint, BreakpointError, breakpoint_line, breakpoint_of, breakpoint_warning
from workbench.limits import MAX_STATE_FILE_BYTES
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.suite.files import write_atomically
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.stage import Announce

if TYPE_CHECKING:
    from workbench.trajectory.events import ToolDefinition
    from workbench.tui.shell.workbench import Workbench


_log = logging.getLogger(__name__)

_DISABLED_PREFIX = "off "
_NOT_KEPT = "a breakpoint with a secret in its condition is not saved: it works until you quit"

SwitchResult = Literal["set", "switched on", "removed"]


class BreakpointFile:
    """The file with the breakpoints of one project. If two programs write the file, the last write wins."""

    def __init__(self, folder: Path, project: Path) -> None:
        # The name is for people. The digest distinguishes projects of the same name.
        stem = re.sub(r"[^\w-]+", "-", project.name)[:40].strip("-") or "project"
        digest = hashlib.sha256(str(project).encode("utf-8", errors="surrogateescape")).hexdigest()[:12]
        self.path = folder / f"{stem}-{digest}.txt"
        self._project = project

    def read(self) -> tuple[tuple[Breakpoint, ...], str | None]:
        """Return the stored breakpoints, and a notice for the user (`None` if there was no problem).

        A damaged file is kept under another name. A new file with the readable lines replaces it."""
        try:
            if self.path.stat().st_size > MAX_STATE_FILE_BYTES:
                return (), self._replace_damaged(())
            content = self.path.read_bytes()
        except FileNotFoundError:
            return (), None
        except OSError as error:
            return (), f"{self.path} cannot be read ({error.strerror}): none of its breakpoints is set"
        points: list[Breakpoint] = []
        damaged = False
        # Each line is decoded separately, so that a damaged line does not make all others unreadable.
        for line in content.split(b"\n"):
            try:
                text = line.decode("utf-8").strip()
                if text and not text.startswith("#"):
                    point = breakpoint_of(text.removeprefix(_DISABLED_PREFIX))
                    points.append(replace(point, enabled=not text.startswith(_DISABLED_PREFIX)))
            except (UnicodeDecodeError, BreakpointError):
                damaged = True
        return tuple(points), self._replace_damaged(points) if damaged else None

    def write(self, points: Sequence[Breakpoint]) -> str | None:
        """Replace the stored breakpoints. Return the reason if that failed, otherwise `None`."""
        lines = [f"# Breakpoints of {one_line(str(self._project))}", *map(_stored_line, points)]
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self.path, "".join(f"{line}\n" for line in lines).encode("utf-8", errors="replace"))
        except OSError as error:
            _log.warning("%s cannot be written: %s", self.path, error)
            return f"breakpoints cannot be saved in {self.path} ({error.strerror}): they work until you quit"
        return None

    def _replace_damaged(self, readable: Sequence[Breakpoint]) -> str:
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            return f"{self.path} is damaged and cannot be moved ({error.strerror})"
        left = f"{len(readable)} of its breakpoints could be read" if readable else "no breakpoint is set"
        return self.write(readable) or f"{self.path} was damaged and renamed to {aside.name}: {left}"


def _stored_line(point: Breakpoint) -> str:
    line = breakpoint_line(point)
    if point.enabled:
        return line
    return f"{_DISABLED_PREFIX}{line}"


class Breakpoints:
    """The breakpoints of a project in the order in which they were set.

    Every change is stored at once, and then `changed` is called. Without a `file`, the breakpoints last only for this
    session. If storing failed, `problem` is the reason. A breakpoint whose condition contains a secret is not
    stored."""

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
        """The names of tools with enabled breakpoints on their calls or results."""
        return frozenset(point.tool for point in self.points if point.enabled and point.tool is not None)

    def index_of(self, point: Breakpoint) -> int | None:
        """Return the index of the existing breakpoint for the same place as `point`, `None` if there is none."""
        for index, known in enumerate(self.points):
            if known.holds_same_places(point):
                return index
        return None

    def switch(self, point: Breakpoint) -> SwitchResult:
        """Set a new breakpoint, enable a disabled breakpoint, or remove an enabled breakpoint."""
        index = self.index_of(point)
        if index is None:
            self._replace_all((*self.points, point))
            return "set"
        if self.points[index].enabled:
            self.remove(index)
            return "removed"
        self.toggle(index)
        return "switched on"

    def put(self, point: Breakpoint, index: int | None = None) -> int:
        """Set a breakpoint and return its index.

        Replaces the breakpoint at `index`, if given, or else an existing breakpoint at the same place."""
        points = list(self.points)
        if index is not None and index < len(points):
            point = replace(point, enabled=points[index].enabled)
            points[index] = point
        elif (known := self.index_of(point)) is not None:
            points[known] = point
        else:
            points.append(point)
        # After the change, two breakpoints may have the same place. The first one stays.
        distinct: list[Breakpoint] = []
        for each in points:
            if not any(map(each.holds_same_places, distinct)):
                distinct.append(each)
        self._replace_all(distinct)
        return self.index_of(point) or 0

    def toggle(self, index: int) -> None:
        points = list(self.points)
        points[index] = replace(points[index], enabled=not points[index].enabled)
        self._replace_all(points)

    def remove(self, index: int) -> None:
        self._replace_all((*self.points[:index], *self.points[index + 1 :]))

    def enable_all(self, enabled: bool) -> None:
        self._replace_all([replace(point, enabled=enabled) for point in self.points])

    def _replace_all(self, points: Sequence[Breakpoint]) -> None:
        self.points = tuple(points)
        if self.file is not None:
            storable = [point for point in self.points if not self._is_secret(point)]
            self.problem = self.file.write(storable)
            if self.problem is None and len(storable) < len(self.points):
                self.problem = _NOT_KEPT
        self.changed()

    def _is_secret(self, point: Breakpoint) -> bool:
        # `redact` returns the same object if it finds nothing.
        line = breakpoint_line(point)
        return self._secrets.redact(line) is not line


class ProjectBreakpoints:
    """The breakpoints of the open project, or those from the command line.

    Calls registered functions after each change."""

    def __init__(
        self,
        app: Workbench,
        open_suites: OpenSuites,
        known_tools: KnownTools,
        program: Program,
        for_this_time: Sequence[Breakpoint] | None = None,
    ) -> None:
        self._app = app
        self._open_suites = open_suites
        self._known_tools = known_tools
        self._program = program
        self._followers: list[Callable[[Breakpoints], object]] = []
        self.given = for_this_time is not None
        """Whether the breakpoints come from the command line. If so, they are never stored."""
        self.all = Breakpoints(for_this_time or (), secrets=program.secrets)
        self.all.changed = self.notify

    def follow(self, *followers: Callable[[Breakpoints], object]) -> None:
        """Register functions that are called with all breakpoints after every change."""
        self._followers += followers

    def find(self, opened: Path) -> tuple[Breakpoints, str | None]:
        """Return the breakpoints for the project of a file or folder, and a notice if their file has problems.

        Breakpoints from the command line replace the stored ones. Reads files, so call it in a thread."""
        if self.given:
            return self.all, None
        program, folder = self._program, opened if opened.is_dir() else opened.parent
        file = BreakpointFile(program.folders.breakpoints, project_folder(folder, program.environment.home))
        points, problem = file.read()
        return Breakpoints(points, file, program.secrets), problem

    def replace_all(self, found: Breakpoints) -> None:
        """Replace all breakpoints, and call the functions registered with `follow`."""
        self.all = found
        found.changed = self.notify
        self.notify()

    def tools(self) -> list[ToolDefinition]:
        """Return all known tools of the open suites."""
        found: list[ToolDefinition] = []
        for suite in self._open_suites.suites:
            found += self._known_tools.of(suite.document.table(HEAD), suite.path)
        return found

    def warning(self, point: Breakpoint) -> str | None:
        """Return why a breakpoint can never stop a run, such as an unknown tool. Return `None` if it can stop runs."""
        return breakpoint_warning(point, self.tools())

    def switch(self, found: Breakpoint | str, announce: Announce) -> None:
        """Set, enable or remove the breakpoint `found`, and announce the change.

        If there can be no breakpoint at the cursor, `found` is the reason, which is announced."""
        try:
            line = found if isinstance(found, str) else breakpoint_line(found)
        except ValueError as error:
            found = line = str(error)
        if isinstance(found, str):
            announce(f"No breakpoint was set: {found}", "warned", GLYPHS.warned)
            return
        # If storing failed, `notify` has announced that already. A second notice would hide it.
        done = self.all.switch(found)
        if self.all.problem is not None:
            return
        doubt = self.warning(found) if done != "removed" else None
        if doubt is not None:
            announce(f"Breakpoint {done}: {line}; but {doubt}", "warned", GLYPHS.warned)
        else:
            announce(f"Breakpoint {done}: {line}; {key_for('break.list')} lists all", "text", GLYPHS.breakpoint)

    def notify(self) -> None:
        """Call the registered functions with the breakpoints. If storing the breakpoints failed, announce why."""
        for follower in self._followers:
            follower(self.all)
        if self.all.problem is not None:
            self._app.announce(self.all.problem, "warned", GLYPHS.warned)
