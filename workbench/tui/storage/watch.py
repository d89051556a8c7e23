"""Notices changes of files while the app runs, without a key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import Worker

from workbench.authoring.file_watch import FolderWatch, Stamp
from workbench.authoring.merge import news
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.suite.files import FileState, state_of
from workbench.suite.project import is_suite
from workbench.suite.suite_file import SuiteFile
from workbench.tui.storage.reload import Reader
from workbench.tui.storage.saver import Saver
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


LOOK_S = 1.0
"""The time between two looks. Unlike events of the system, looks also notice changes on network file systems."""

REST_SHARE = 200
"""The pause between two looks is at least so many times the duration of the last one, however many files there are."""

STABLE_S = 0.15
"""A file that is the same after this time is complete: programs empty, write and rename it in several steps."""


@dataclass(frozen=True)
class _Seen:
    """Differences between disk and app: suites, the states of their files, and suite files that are not open."""

    changed: tuple[OpenSuite, ...] = ()
    states: tuple[FileState | None, ...] = ()
    new: tuple[tuple[Path, Stamp], ...] = ()


class Watch:
    """Looks at the files of open suites, and for new ones in their folders.

    A look costs one `stat` for each."""

    def __init__(self, stage: Workbench, selection: Selection, reader: Reader, saver: Saver) -> None:
        self._stage = stage
        self._selection = selection
        self._open_suites = selection.open_suites
        self._reader = reader
        self._saver = saver
        self._seen: dict[Path, FileState | None] = {}
        self._folders = FolderWatch()
        self._passed: dict[Path, Stamp] = {}
        """TOML files that are not open: other programs' settings, and suites that were announced."""
        self._settling: Worker[object] | None = None

    def begin(self) -> None:
        """Look again and again, until the app ends."""
        self._stage.work(self._keep_looking, group="watch")

    def at_key(self) -> None:
        """Check the selected suite."""
        suite = self._selection.suite
        if suite is not None and self._may_act and self._is_changed(suite):
            self._found(_Seen((suite,)))

    def at_return(self) -> None:
        """Check everything now, because the terminal has the focus again."""
        self._stage.work(self._look_once, group="look")

    async def _keep_looking(self) -> None:
        took_s = 0.0
        while True:
            await asyncio.sleep(max(LOOK_S, took_s * REST_SHARE))
            took_s = await self._look_once()

    async def _look_once(self) -> float:
        """Look, act on a finding once it is stable, and return how long a look took."""
        began = time.perf_counter()
        seen = await self._look()
        took_s = time.perf_counter() - began
        while seen != _Seen():
            await asyncio.sleep(STABLE_S)
            before, seen = seen, await self._look()
            if seen == before:
                if self._may_act:
                    self._found(seen)
                break
        return took_s

    @property
    def _may_act(self) -> bool:
        is_settling = self._settling is not None and not self._settling.is_finished
        return self._stage.shows_main and not is_settling

    async def _look(self) -> _Seen:
        if not self._may_act:
            return _Seen()
        suites, roots = self._open_suites.suites, self._open_suites.workspace.roots
        try:
            return await asyncio.to_thread(self._all_seen, suites, roots)
        except asyncio.CancelledError:
            self._folders.stop()  # the app ends, which would wait for the thread
            raise

    def _all_seen(self, suites: Sequence[OpenSuite], roots: Sequence[Path]) -> _Seen:
        changed = tuple(suite for suite in suites if self._is_changed(suite))
        files, known = self._folders.look(roots), {suite.path for suite in suites}
        self._passed = {path: stamp for path, stamp in self._passed.items() if files.get(path) == stamp}
        new = {}
        for path, stamp in files.items():
            if path not in known and path not in self._passed:
                new[path] = stamp
        suite_files = frozenset(path for path in new if path.is_file() and is_suite(path))
        self._passed |= {path: stamp for path, stamp in new.items() if path not in suite_files}
        come = tuple((path, stamp) for path, stamp in new.items() if path in suite_files)
        return _Seen(changed, tuple(self._seen.get(suite.path) for suite in changed), come)

    def _found(self, seen: _Seen) -> None:
        """Reload unedited suites and open new ones, and merge edited suites."""
        touched = [suite for suite in seen.changed if suite.dirty]
        if seen.new or len(touched) < len(seen.changed):
            self._passed |= dict(seen.new)
            before = []
            for suite in seen.changed:
                if not suite.dirty:
                    before.append((suite, suite.disk))
            self._reader.read_soon(notice=lambda: _notice(before, [path for path, _ in seen.new]), gently=True)
        elif touched:
            self._settling = self._reader.settle_soon(touched)

    def _is_changed(self, suite: OpenSuite) -> bool:
        if suite.is_recording:
            return False
        try:
            state = state_of(suite.path, self._seen.get(suite.path, suite.on_disk))
        except OSError:
            return False  # whatever uses the file next reports this
        self._seen[suite.path] = state
        found = state.hash if state is not None else ""
        before = suite.on_disk.hash if suite.on_disk is not None else ""
        return found not in (before, self._saver.put_off.get(suite.path, before))


def _notice(before: Sequence[tuple[OpenSuite, SuiteFile]], new: Sequence[Path]) -> str:
    """Return the changes on disk, as read by now."""
    if not before:
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        return f"{new[0].name}{more} new on disk: opened"
    suite, file = before[0]
    others = len(before) + len(new) - 1
    if others or file.parts is None or suite.disk.parts is None:
        return f"{suite.path.name}{f' and {others} more' if others else ''} changed on disk: reloaded"
    return f"{suite.path.name} changed on disk: {news(file.parts, suite.disk.parts)}"
