"""Reloading suites from disk, on request and because files changed; a long search is shown, and stops at a key."""

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
from workbench.authoring.workspace import Workspace, lost, read_again
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


SHOWN_AFTER_S = 1.0
_SHOWN_EVERY_S = 0.5

Found = TypeVar("Found")


class Searches:
    """Runs searches in threads.

    At most one of them is shown, which `stop` ends."""

    def __init__(self, stage: Workbench) -> None:
        self._stage = stage
        self._shown: Search | None = None
        self._notice = ""

    async def run(self, search: Search, find: Callable[[], Found]) -> Found:
        """Return the result of `find`, which uses a search, from a thread."""
        showing = asyncio.create_task(self._show(search))
        try:
            found = await asyncio.to_thread(find)
        except asyncio.CancelledError:
            search.stop()  # otherwise the end of the app would wait for the thread
            raise
        finally:
            showing.cancel()
        self._stage.end_notice(self._notice)
        return found

    def stop(self) -> bool:
        """Stop the search that is shown, and return whether there was one: its result may already be read."""
        if self._shown is None or self._shown.folder is None:
            return False
        self._shown.stop()
        return True

    async def _show(self, search: Search) -> None:
        await asyncio.sleep(SHOWN_AFTER_S)
        self._shown = search
        try:
            while True:
                if (message := search.progress_message) is not None:
                    self._notice = f"{key_for('back')} stops: {message}"
                    self._stage.announce(self._notice, "muted", gently=True)
                await asyncio.sleep(_SHOWN_EVERY_S)
        finally:
            self._shown = None


class StoppedError(Exception):
    """The user stopped the search for suites."""


class Reader:
    """Reloads the open suites in a thread."""

    def __init__(
        self,
        stage: Workbench,
        selection: Selection,
        saver: Saver,
        models: ModelBook,
        searches: Searches,
        is_typing: Callable[[], bool],
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._open_suites = selection.open_suites
        self._saver = saver
        self._models = models
        self._searches = searches
        self._is_typing = is_typing
        """Returns whether letters are text now, so that no question may appear."""
        self._waiting: set[Path] = set()
        """Suites that changed here and on disk, and cannot be merged during typing."""
        self._left: tuple[Path, str, RowKey] | None = None
        """The case that had the cursor before its file lost it, and the row that has it since."""

    def read_soon(
        self,
        failure: str | None = None,
        *,
        notice: str | Callable[[], str] = "Reloaded from disk",
        gently: bool = False,
    ) -> None:
        """Reload all suites and announce it, or the given failure.

        A notice that has to be made is made in a thread after reading. With `gently`, it does not replace a different
        one. Does nothing before the first reading."""
        open_suites = self._open_suites
        if not open_suites.workspace.roots:
            return

        async def again() -> None:  # not a coroutine yet, because a newer request may replace it before it starts
            gone = await asyncio.to_thread(lost, open_suites.workspace)
            try:
                conflicts = await self.read()
            except StoppedError:
                self._stage.announce("The search for suites was stopped: nothing was reloaded", "warned", GLYPHS.warned)
                return
            made = tuple(suite.path for suite in open_suites.suites if suite.is_new and suite.dirty)
            said = notice if isinstance(notice, str) else await asyncio.to_thread(notice)
            text, role, sign = _outcome(open_suites.workspace, gone, made, said)
            if failure is not None:
                text, role, sign = failure, "error", GLYPHS.error
            self._stage.announce(text + open_suites.and_moved, role, sign, gently=gently)
            self.settle_soon(conflicts)

        self._stage.work(again, group="read", exclusive=True)

    def add_samples(self) -> None:
        """Open the bundled samples beside everything else."""
        workspace = self._open_suites.workspace
        self._open_suites.workspace = replace(workspace, roots=(*workspace.roots, bundled("sample_suites")))
        self.read_soon(notice="These are the samples. r runs the case, R its suite")

    async def read(self) -> tuple[OpenSuite, ...]:
        """Reload all suites and show them.

        Returns those that were edited here and changed on disk. Raises StoppedError if the user stopped the search for
        them."""
        open_suites = self._open_suites
        while True:
            before = open_suites.workspace
            search = Search()
            found = await self._searches.run(search, partial(read_again, before, self._models, search))
            if search.is_stopped:
                raise StoppedError
            # If something was saved, deleted or opened meanwhile, this result is out of date.
            if open_suites.workspace is before:
                row = self._selection.row
                conflicts = open_suites.read(found)
                self._return_to(row)
                return conflicts

    def _return_to(self, before: Row | None) -> None:
        """Move the cursor back to the case that a file had lost, for example while it was being written."""
        now = self._selection.row
        if now is None:
            return
        if self._left is not None and now.key == self._left[2]:
            path, case, _ = self._left
            suite = self._open_suites.at(path)
            if suite is not None and any(outline.key == case for outline in suite.cases):
                self._left = None
                self._selection.select(path, case)
        elif before is not None and before.case is not None and now.key != before.key:
            self._left = (before.key.path, before.case.key, now.key)

    async def catch_up(self) -> None:
        """Reload all suites, and ask about those that were edited here and changed on disk.

        If the user stops the search for suites, all stay as they are."""
        with suppress(StoppedError):
            await self._saver.settle(await self.read())

    def settle_soon(self, suites: Sequence[OpenSuite]) -> Worker[object] | None:
        """Merge suites that changed here and on disk, or ask about them.

        During typing, and while their text here is not TOML, this waits."""
        ready = []
        for suite in suites:
            if suite.document.is_sound and not self._is_typing():
                ready.append(suite)
        self._waiting.difference_update(suite.path for suite in ready)
        waiting = []
        for suite in suites:
            if suite not in ready and suite.path not in self._waiting:
                waiting.append(suite)
        self._waiting.update(suite.path for suite in waiting)
        if waiting:
            until = "you stop typing" if self._is_typing() else "your text is TOML"
            text = f"{waiting[0].path.name} changed on disk too: it is merged once {until}"
            self._stage.announce(text, "warned", GLYPHS.warned)
        if ready:
            return self._stage.work(self._saver.settle(ready), group="ask")
        return None


def _outcome(workspace: Workspace, gone: Sequence[Path], made: Sequence[Path], notice: str) -> tuple[str, Role, str]:
    """Return the notice after reloading: `notice` if all is well.

    Suites `made` here are not on disk yet."""
    broken = sum(file.suite is None and file.path not in (*gone, *made) for file in workspace.files)
    if gone:
        are_gone = f"{gone[0].name} no longer exists" if len(gone) == 1 else f"{len(gone)} suites no longer exist"
        return are_gone + (f"; {broken} cannot run" if broken else ""), "warned", GLYPHS.warned
    if broken:
        return f"{notice}; {broken} cannot run", "error", GLYPHS.error
    return notice, "passed", GLYPHS.passed
