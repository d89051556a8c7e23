"""Searches for suites, and reloads them from disk on request or after their files changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.worker import Worker

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import Workspace, missing_files, reread_workspace
from workbench.config.folders import bundled
from workbench.config.model_book import ModelBook
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.suite.project import Search
from workbench.tui.kit.actions import key_for
from workbench.tui.storage.saver import Saver
from workbench.tui.tree.rows import Row, RowKey
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


ANNOUNCE_AFTER_S = 1.0
"""The time in seconds after which a search is announced with its progress."""

_PROGRESS_INTERVAL_S = 0.5
"""The time in seconds between updates of a search's progress."""

Found = TypeVar("Found")


class Searches:
    """Searches for suites in threads. A slow search is announced. `stop` ends the announced search."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._shown: Search | None = None
        self._notice = ""

    async def run(self, search: Search, find: Callable[[], Found]) -> Found:
        """Run `find` in a thread and return its result.

        `find` searches for suites, reports its progress in `search`, and returns early if `search` is stopped."""
        showing = asyncio.create_task(self._show(search))
        try:
            found = await asyncio.to_thread(find)
        except asyncio.CancelledError:
            # The end of the app waits for the thread, so the search is stopped.
            search.stop()
            raise
        finally:
            showing.cancel()
        self._app.end_notice(self._notice)
        return found

    def stop(self) -> bool:
        """Stop the announced search. Return `False` if there is none."""
        if self._shown is None or self._shown.folder is None:
            # Without a folder, the search has ended and the suites are being read.
            return False
        self._shown.stop()
        return True

    async def _show(self, search: Search) -> None:
        await asyncio.sleep(ANNOUNCE_AFTER_S)
        self._shown = search
        try:
            while True:
                if (message := search.progress_message) is not None:
                    self._notice = f"{key_for('back')} stops: {message}"
                    self._app.announce(self._notice, "muted", keep_warning=True)
                await asyncio.sleep(_PROGRESS_INTERVAL_S)
        finally:
            self._shown = None


class SearchStoppedError(Exception):
    """Raised when the user stopped the search for suites."""


class SuiteReader:
    """Reloads the open suites, in a thread."""

    def __init__(
        self,
        app: Workbench,
        selection: Selection,
        saver: Saver,
        models: ModelBook,
        searches: Searches,
        is_typing: Callable[[], bool],
    ) -> None:
        self._app = app
        self._selection = selection
        self._open_suites = selection.open_suites
        self._saver = saver
        self._models = models
        self._searches = searches
        self._is_typing = is_typing
        """Returns whether the user is typing. No question may appear then."""
        self._pending_paths: set[Path] = set()
        """The paths of suites that changed here and on disk. They are merged when the user stops typing."""
        self._lost_selection: tuple[Path, str, RowKey] | None = None
        """The path and key of the case that vanished from its file under the cursor, and the row with the cursor
        afterwards."""

    def read_soon(
        self,
        failure: str | None = None,
        *,
        notice: str | Callable[[], str] = "Reloaded from disk",
        keep_warning: bool = False,
    ) -> None:
        """Reload all suites in the background, and announce `notice` or a `failure`.

        If `notice` is a function, it is called in a thread after reading. With `keep_warning`, the notice does not
        replace a warning. Does nothing before the suites were read for the first time."""
        open_suites = self._open_suites
        if not open_suites.workspace.roots:
            return

        # `work` gets a function, not a coroutine, because a newer request may replace the work before it starts.
        async def again() -> None:
            missing = await asyncio.to_thread(missing_files, open_suites.workspace)
            try:
                conflicts = await self.read()
            except SearchStoppedError:
                self._app.announce("The search for suites was stopped: nothing was reloaded", "warned", GLYPHS.warned)
                return
            made = tuple(suite.path for suite in open_suites.suites if suite.is_new and suite.dirty)
            announced = notice if isinstance(notice, str) else await asyncio.to_thread(notice)
            text, role, sign = _outcome(open_suites.workspace, missing, made, announced)
            if failure is not None:
                text, role, sign = failure, "error", GLYPHS.error
            self._app.announce(text + open_suites.moved_grades_text, role, sign, keep_warning=keep_warning)
            self.merge_changed_soon(conflicts)

        self._app.work(again, group="read", exclusive=True)

    def add_samples(self) -> None:
        """Open the bundled samples in addition to the open suites."""
        workspace = self._open_suites.workspace
        self._open_suites.workspace = replace(workspace, roots=(*workspace.roots, bundled("sample_suites")))
        self.read_soon(notice="These are the samples. r runs the case, R its suite")

    async def read(self) -> tuple[OpenSuite, ...]:
        """Reload and show all suites. Return the suites that changed both here and on disk.

        Raises:
            SearchStoppedError: The user stopped the search for suites."""
        open_suites = self._open_suites
        while True:
            before = open_suites.workspace
            search = Search()
            found = await self._searches.run(search, partial(reread_workspace, before, self._models, search))
            if search.is_stopped:
                raise SearchStoppedError
            # If a suite was saved, deleted or opened during the reading, the result is outdated.
            if open_suites.workspace is before:
                row = self._selection.row
                conflicts = open_suites.read(found)
                self._return_to(row)
                return conflicts

    def _return_to(self, before: Row | None) -> None:
        """If the cursor's case vanished from its file and came back, move the cursor back to the case."""
        # A program that writes a file may empty the file first. The cursor then moves to another row.
        now = self._selection.row
        if now is None:
            return
        if self._lost_selection is not None and now.key == self._lost_selection[2]:
            path, case, _ = self._lost_selection
            suite = self._open_suites.at(path)
            if suite is not None and any(outline.key == case for outline in (*suite.cases, *suite.run_cases)):
                self._lost_selection = None
                self._selection.select(path, case)
        elif before is not None and before.case is not None and now.key != before.key:
            self._lost_selection = (before.key.path, before.case.key, now.key)

    async def catch_up(self) -> None:
        """Reload all suites. Ask about suites that changed both here and on disk.

        If the user stops the search for suites, the suites stay unchanged."""
        with suppress(SearchStoppedError):
            await self._saver.merge_changed(await self.read())

    def merge_changed_soon(self, suites: Sequence[OpenSuite]) -> Worker[object] | None:
        """Merge suites that changed both here and on disk, or ask about them.

        While the user types, or while the text of a suite in the app is not TOML, announce that the suite is merged
        later."""
        ready, waiting = [], []
        for suite in suites:
            if suite.document.is_sound and not self._is_typing():
                ready.append(suite)
                self._pending_paths.discard(suite.path)
            elif suite.path not in self._pending_paths:
                waiting.append(suite)
                self._pending_paths.add(suite.path)
        if waiting:
            until = "you stop typing" if self._is_typing() else "your text is TOML"
            text = f"{waiting[0].path.name} changed on disk too: it is merged once {until}"
            self._app.announce(text, "warned", GLYPHS.warned)
        if ready:
            return self._app.work(self._saver.merge_changed(ready), group="ask")
        return None


def _outcome(workspace: Workspace, gone: Sequence[Path], unsaved: Sequence[Path], notice: str) -> tuple[str, Role, str]:
    """Return the announcement after reloading: `notice`, or that suites are `gone` or have errors.

    The paths in `unsaved` are new suites of the app without a file, so they are not errors."""
    broken = sum(file.suite is None and file.path not in (*gone, *unsaved) for file in workspace.files)
    if gone:
        text = f"{gone[0].name} no longer exists" if len(gone) == 1 else f"{len(gone)} suites no longer exist"
        if broken:
            text += f"; {broken} cannot run"
        return text, "warned", GLYPHS.warned
    if broken:
        return f"{notice}; {broken} cannot run", "error", GLYPHS.error
    return notice, "passed", GLYPHS.passed
