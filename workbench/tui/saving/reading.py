"""Reloading suites from disk: on request, and when files change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.open_suites import OpenSuites
from workbench.authoring.workspace import Workspace, lost, read_again
from workbench.config.model_book import ModelBook
from workbench.config.resources import bundled
from workbench.suite.saving import FileState, state_of
from workbench.tui.kit.stage import Stage
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role
from workbench.tui.saving.saver import Saver
from workbench.tui.tree.selection import Selection


class Reader:
    """Reloads the open suites in a thread."""

    def __init__(
        self,
        stage: Stage,
        open_suites: OpenSuites,
        saver: Saver,
        models: ModelBook,
        is_typing: Callable[[], bool],
    ) -> None:
        self._stage = stage
        self._open_suites = open_suites
        self._saver = saver
        self._models = models
        self.is_typing = is_typing
        """Returns whether letters are text now, so that no question may appear."""

    def read_soon(
        self, failure: str | None = None, *, notice: str = "Reloaded from disk", gently: bool = False
    ) -> None:
        """Reload all suites and announce it, or the given failure. With `gently`, the notice does not replace a
        different one. Does nothing before the first reading."""
        open_suites = self._open_suites
        if not open_suites.workspace.roots:
            return

        async def again() -> None:  # not a coroutine yet, because a newer request may replace it before it starts
            gone = await asyncio.to_thread(lost, open_suites.workspace)
            conflicts = await self.read()
            made = tuple(suite.path for suite in open_suites.suites if suite.is_new and suite.dirty)
            text, role, sign = _outcome(open_suites.workspace, gone, made, notice)
            if failure is not None:
                text, role, sign = failure, "error", GLYPHS.error
            self._stage.announce(text + open_suites.and_moved, role, sign, gently=gently)
            if conflicts and self.is_typing():
                self.put_off({suite.path: _hash_in(open_suites.workspace, suite) for suite in conflicts})
            elif conflicts:
                self._stage.work(self._saver.settle(conflicts), group="ask")

        self._stage.work(again, group="read", exclusive=True)

    def add_samples(self) -> None:
        """Open the bundled samples beside everything else."""
        workspace = self._open_suites.workspace
        self._open_suites.workspace = replace(workspace, roots=(*workspace.roots, bundled("sample_suites")))
        self.read_soon(notice="These are the samples. r runs the case, R its suite")

    async def read(self) -> tuple[OpenSuite, ...]:
        """Reload all suites and show them. Returns those that were edited here and changed on disk."""
        open_suites = self._open_suites
        while True:
            before = open_suites.workspace
            found = await asyncio.to_thread(read_again, before, self._models)
            # If something was saved, deleted or opened meanwhile, this result is out of date.
            if open_suites.workspace is before:
                return open_suites.read(found)

    async def catch_up(self) -> None:
        """Reload all suites, and ask about those that were edited here and changed on disk."""
        await self._saver.settle(await self.read())

    def put_off(self, found: Mapping[Path, str]) -> None:
        """Leave the question about suites that changed here and on disk to saving. `found` has the hash of each file,
        empty if it is gone."""
        self._saver.put_off.update(found)
        name = next(iter(found)).name
        self._stage.announce(f"{name} changed on disk too: you are asked when you save", "warned", GLYPHS.warned)


def _hash_in(workspace: Workspace, suite: OpenSuite) -> str:
    return next((file.hash for file in workspace.files if file.path == suite.path), "")


def _outcome(workspace: Workspace, gone: Sequence[Path], made: Sequence[Path], notice: str) -> tuple[str, Role, str]:
    """Return the notice after reloading: `notice` if all is well. Suites `made` here are not on disk yet."""
    broken = sum(file.suite is None and file.path not in (*gone, *made) for file in workspace.files)
    if gone:
        are_gone = f"{gone[0].name} no longer exists" if len(gone) == 1 else f"{len(gone)} suites no longer exist"
        return are_gone + (f"; {broken} cannot run" if broken else ""), "warned", GLYPHS.warned
    if broken:
        return f"{notice}; {broken} cannot run", "error", GLYPHS.error
    return notice, "passed", GLYPHS.passed


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
            self._reader.read_soon(notice=f"{name}{others} changed on disk: reloaded", gently=True)
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
