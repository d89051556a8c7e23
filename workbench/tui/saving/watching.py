"""Notices what others did to the files of open suites: at each key and when the terminal has the focus again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.open_suite import OpenSuite
from workbench.suite.saving import FileState, state_of

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class Watch:
    """What the files of open suites were when they were last looked at. A look costs one `stat`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._seen: dict[Path, FileState | None] = {}
        self._is_looking = False

    def at_key(self) -> None:
        """Look at the selected suite."""
        main = self._app.main
        suite = main.selected_suite
        if self._app.screen is main and suite is not None and not self._is_looking and self._is_changed(suite):
            self._found([suite])

    def at_return(self) -> None:
        """Look at all suites, off the loop."""
        self._app.run_worker(self._look(self._app.main.desk.suites), group="look")

    async def _look(self, suites: Sequence[OpenSuite]) -> None:
        changed = await asyncio.to_thread(lambda: [suite for suite in suites if self._is_changed(suite)])
        if self._app.screen is self._app.main:
            self._found(changed)

    def _found(self, changed: Sequence[OpenSuite]) -> None:
        """Suites that nobody touched here are read again; about the others the user is asked, but not while typing."""
        touched = [suite for suite in changed if suite.dirty]
        if len(touched) < len(changed):
            name = next(suite.path.name for suite in changed if not suite.dirty)
            others = f" and {len(changed) - len(touched) - 1} more" if len(changed) - len(touched) > 1 else ""
            self._app.read_again(said=f"{name}{others} changed on the disk: read again", gently=True)
        elif touched and self._app.reader.is_typing:
            seen = {suite.path: self._seen.get(suite.path) for suite in touched}
            self._app.reader.put_off({path: state.hash if state is not None else "" for path, state in seen.items()})
        elif touched:
            self._is_looking = True
            self._app.run_worker(self._settle(touched), group="ask")

    async def _settle(self, touched: Sequence[OpenSuite]) -> None:
        try:
            await self._app.saver.settle(touched)
        finally:
            self._is_looking = False

    def _is_changed(self, suite: OpenSuite) -> bool:
        if suite.is_recording:
            return False
        try:
            state = state_of(suite.path, self._seen.get(suite.path, suite.on_disk))
        except OSError:
            return False  # whatever is to be done with the file will say so
        self._seen[suite.path] = state
        found = state.hash if state is not None else ""
        before = suite.on_disk.hash if suite.on_disk is not None else ""
        return found not in (before, self._app.saver.put_off.get(suite.path, before))
