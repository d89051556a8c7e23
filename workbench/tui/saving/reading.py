"""Reading suites again: what comes from the disk is taken over unless something was changed from here meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.open_suites import OpenSuites
from workbench.authoring.workspace import Workspace, lost, read_again
from workbench.config.model_book import ModelBook
from workbench.tui.kit.stage import Stage
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role
from workbench.tui.saving.saver import Saver


class Reader:
    """Reads the suites that are open again, off the loop."""

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
        """Returns whether letters are text now, so that a question must not come up under them."""

    def read_soon(
        self, failure: str | None = None, *, said: str = "Read again from disk", gently: bool = False
    ) -> None:
        """Read all suites and say so; a failure before that is said instead. `gently`: nothing is said in the place of
        something else. Before the suites were read for the first time, there is nothing to read again."""
        open_suites = self._open_suites
        if not open_suites.workspace.roots:
            return

        async def again() -> None:  # not a coroutine yet, for it may give way to another before it has begun
            gone = await asyncio.to_thread(lost, open_suites.workspace)
            conflicts = await self.read()
            made = tuple(suite.path for suite in open_suites.suites if suite.is_new and suite.dirty)
            text, role, sign = _outcome(open_suites.workspace, gone, made, said)
            if failure is not None:
                text, role, sign = failure, "error", GLYPHS.error
            self._stage.announce(text + open_suites.and_moved, role, sign, gently=gently)
            if conflicts and self.is_typing():
                self.put_off({suite.path: _hash_in(open_suites.workspace, suite) for suite in conflicts})
            elif conflicts:
                self._stage.work(self._saver.settle(conflicts), group="ask")

        self._stage.work(again, group="read", exclusive=True)

    async def read(self) -> tuple[OpenSuite, ...]:
        """Read all suites and show them; those are returned that were edited here and are others on the disk."""
        open_suites = self._open_suites
        while True:
            before = open_suites.workspace
            found = await asyncio.to_thread(read_again, before, self._models)
            # Whatever was saved, deleted or opened meanwhile made another workspace, of which this may know nothing.
            if open_suites.workspace is before:
                return open_suites.read(found)

    async def catch_up(self) -> None:
        """Read all suites, and ask about those that were edited here and say something else on the disk."""
        await self._saver.settle(await self.read())

    def put_off(self, found: Mapping[Path, str]) -> None:
        """Leave it to saving to ask about suites that changed here and on the disk; `found` has the hash of each file,
        empty when it is gone."""
        self._saver.put_off.update(found)
        name = next(iter(found)).name
        self._stage.announce(f"{name} changed on disk too: saving asks", "warned", GLYPHS.warned)


def _hash_in(workspace: Workspace, suite: OpenSuite) -> str:
    return next((file.hash for file in workspace.files if file.path == suite.path), "")


def _outcome(workspace: Workspace, gone: Sequence[Path], made: Sequence[Path], said: str) -> tuple[str, Role, str]:
    """What is said after suites were read again: `said` when all is well. Those `made` here are not on the disk yet."""
    broken = sum(file.suite is None and file.path not in (*gone, *made) for file in workspace.files)
    if gone:
        are_gone = f"{gone[0].name} is gone" if len(gone) == 1 else f"{len(gone)} suites are gone"
        return are_gone + (f"; {broken} cannot run" if broken else ""), "warned", GLYPHS.warned
    if broken:
        return f"{said}; {broken} cannot run", "error", GLYPHS.error
    return said, "passed", GLYPHS.passed
