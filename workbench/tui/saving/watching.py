"""Detects external changes of open suites, on keys and when the terminal regains the focus."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.open_suites import OpenSuites
from workbench.suite.saving import FileState, state_of
from workbench.tui.kit.stage import Stage
from workbench.tui.saving.reading import Reader
from workbench.tui.saving.saver import Saver
from workbench.tui.tree.selection import Selection


class Watch:
    """The last known states of the files of open suites. A check costs one `stat`."""

    def __init__(
        self, stage: Stage, open_suites: OpenSuites, selection: Selection, reader: Reader, saver: Saver
    ) -> None:
        self._stage = stage
        self._open_suites = open_suites
        self._selection = selection
        self._reader = reader
        self._saver = saver
        self._seen: dict[Path, FileState | None] = {}
        self._is_looking = False

    def at_key(self) -> None:
        """Check the selected suite."""
        suite = self._selection.suite
        if self._stage.shows_main and suite is not None and not self._is_looking and self._is_changed(suite):
            self._found([suite])

    def at_return(self) -> None:
        """Check all suites, in a thread."""
        self._stage.work(self._look(self._open_suites.suites), group="look")

    async def _look(self, suites: Sequence[OpenSuite]) -> None:
        changed = await asyncio.to_thread(lambda: [suite for suite in suites if self._is_changed(suite)])
        if self._stage.shows_main:
            self._found(changed)

    def _found(self, changed: Sequence[OpenSuite]) -> None:
        """Reload unedited suites, and ask about edited ones, but not during typing."""
        touched = [suite for suite in changed if suite.dirty]
        if len(touched) < len(changed):
            name = next(suite.path.name for suite in changed if not suite.dirty)
            others = f" and {len(changed) - len(touched) - 1} more" if len(changed) - len(touched) > 1 else ""
            self._reader.read_soon(said=f"{name}{others} changed on disk: reloaded", gently=True)
        elif touched and self._reader.is_typing():
            seen = {suite.path: self._seen.get(suite.path) for suite in touched}
            self._reader.put_off({path: state.hash if state is not None else "" for path, state in seen.items()})
        elif touched:
            self._is_looking = True
            self._stage.work(self._settle(touched), group="ask")

    async def _settle(self, touched: Sequence[OpenSuite]) -> None:
        try:
            await self._saver.settle(touched)
        finally:
            self._is_looking = False

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
