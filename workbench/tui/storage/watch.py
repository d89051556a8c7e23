"""Watches the files of suites for changes by other programs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import Worker

from workbench.authoring.file_watch import FolderWatch, Stamp
from workbench.authoring.merge import changes_summary
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.suite.files import FileState, state_of
from workbench.suite.project import is_suite
from workbench.suite.suite_file import SuiteFile
from workbench.tui.storage.reload import SuiteReader
from workbench.tui.storage.saver import Saver
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


CHECK_INTERVAL_S = 1.0
"""The time in seconds between two checks of the files. Unlike events of the system, checks work on network file
systems."""

PAUSE_FACTOR = 200
"""The minimum pause between two checks, as a multiple of the last check's duration. Checks take at most 0.5 % of the
time."""

STABLE_S = 0.15
"""The time in seconds without a change after which a file is complete. Programs empty, write and rename a file in
several steps."""


@dataclass(frozen=True)
class _CheckResult:
    """The result of a check: changed suites, states of their files, and suite files that are not open."""

    changed: tuple[OpenSuite, ...] = ()
    states: tuple[FileState | None, ...] = ()
    new: tuple[tuple[Path, Stamp], ...] = ()


class Watch:
    """Watches the files of open suites, and their folders for new suites. A check takes one `stat` per file."""

    def __init__(self, app: Workbench, selection: Selection, reader: SuiteReader, saver: Saver) -> None:
        self._app = app
        self._selection = selection
        self._open_suites = selection.open_suites
        self._reader = reader
        self._saver = saver
        self._seen: dict[Path, FileState | None] = {}
        self._folders = FolderWatch()
        self._passed: dict[Path, Stamp] = {}
        """TOML files that are not open: files of other programs, and announced suites."""
        self._rows: dict[Path, tuple[SuiteFile, tuple[tuple[int, int] | None, ...]]] = {}
        """By suite, the file as it was read, and the state of its files of rows."""
        self._merge_worker: Worker[object] | None = None

    def begin(self) -> None:
        """Begin to check the files at intervals until the app ends."""
        self._app.work(self._check_regularly, group="watch")

    def check_selected(self) -> None:
        """Check the file of the selected suite. Called after each key."""
        suite = self._selection.suite
        if suite is not None and self._may_act and self._is_changed(suite):
            self._found(_CheckResult((suite,)))

    def check_now(self) -> None:
        """Check all files now. Called when the terminal regains the focus."""
        self._app.work(self._check_once, group="look")

    async def _check_regularly(self) -> None:
        took_s = 0.0
        while True:
            await asyncio.sleep(max(CHECK_INTERVAL_S, took_s * PAUSE_FACTOR))
            took_s = await self._check_once()

    async def _check_once(self) -> float:
        """Check the files once, and act on changes once they are stable. Return the seconds taken by the check."""
        began = time.perf_counter()
        seen = await self._check()
        took_s = time.perf_counter() - began
        while seen != _CheckResult():
            await asyncio.sleep(STABLE_S)
            before, seen = seen, await self._check()
            if seen == before:
                if self._may_act:
                    self._found(seen)
                break
        return took_s

    @property
    def _may_act(self) -> bool:
        is_settling = self._merge_worker is not None and not self._merge_worker.is_finished
        return self._app.shows_main and not is_settling

    async def _check(self) -> _CheckResult:
        if not self._may_act:
            return _CheckResult()
        suites, roots = self._open_suites.suites, self._open_suites.workspace.roots
        try:
            return await asyncio.to_thread(self._check_all, suites, roots)
        except asyncio.CancelledError:
            # The end of the app waits for this thread, so the search is stopped.
            self._folders.stop()
            raise

    def _check_all(self, suites: Sequence[OpenSuite], roots: Sequence[Path]) -> _CheckResult:
        changed = tuple(suite for suite in suites if self._is_changed(suite))
        files, known = self._folders.scan(roots), {suite.path for suite in suites}
        # A file that was no suite may have become a suite, so it is checked again after a change.
        self._passed = {path: stamp for path, stamp in self._passed.items() if files.get(path) == stamp}
        come = []
        for path, stamp in files.items():
            if path in known or path in self._passed:
                continue
            if path.is_file() and is_suite(path):
                come.append((path, stamp))
            else:
                self._passed[path] = stamp
        states = tuple(self._seen.get(suite.path) for suite in changed)
        return _CheckResult(changed, states, tuple(come))

    def _found(self, result: _CheckResult) -> None:
        """React to a check: reload the changed suites without unsaved changes, and open new suites.

        If all changed suites have unsaved changes and none is new, merge the changes."""
        for suite in result.changed:
            self._rows.pop(suite.path, None)
        touched = [suite for suite in result.changed if suite.dirty]
        if result.new or len(touched) < len(result.changed):
            self._passed |= dict(result.new)
            before = [(suite, suite.disk) for suite in result.changed if not suite.dirty]
            self._reader.read_soon(notice=lambda: _notice(before, [path for path, _ in result.new]), keep_warning=True)
        elif touched:
            self._merge_worker = self._reader.merge_changed_soon(touched)

    def _is_changed(self, suite: OpenSuite) -> bool:
        if suite.is_recording:
            return False
        try:
            state = state_of(suite.path, self._seen.get(suite.path, suite.on_disk))
        except OSError:
            # The next use of the file reports the error.
            return False
        self._seen[suite.path] = state
        if not suite.dirty and self._rows_changed(suite):
            return True
        found = state.hash if state is not None else ""
        before = suite.on_disk.hash if suite.on_disk is not None else ""
        return found not in (before, self._saver.postponed.get(suite.path, before))

    def _rows_changed(self, suite: OpenSuite) -> bool:
        """Return whether a file with data rows of a suite changed since the suite was read or first checked."""
        file = suite.disk
        if not file.row_files:
            return False
        now = tuple(_stamp(file.path.parent / name) for name in file.row_files)
        known = self._rows.get(suite.path)
        if known is None or known[0] is not file:
            self._rows[suite.path] = (file, now)
            return False
        return known[1] != now


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return the size of a file in bytes and its time of change. Return `None` if the file cannot be read."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def _notice(before: Sequence[tuple[OpenSuite, SuiteFile]], new: Sequence[Path]) -> str:
    others = len(before) + len(new) - 1
    more = f" and {others} more" if others else ""
    if not before:
        return f"{new[0].name}{more} new on disk: opened"
    suite, file = before[0]
    if not others and suite.disk.text == file.text:
        return f"the rows of {suite.path.name} changed on disk: read again"
    if others or file.parts is None or suite.disk.parts is None:
        return f"{suite.path.name}{more} changed on disk: reloaded"
    return f"{suite.path.name} changed on disk: {changes_summary(file.parts, suite.disk.parts)}"
