"""Reading suites again: what comes from the disk is taken over unless something was changed from here meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.workspace import Workspace, lost, read_again
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class Reader:
    """Reads the suites that are open again, off the loop."""

    def __init__(self, app: Workbench) -> None:
        self._app = app

    def read_soon(self, failure: str | None, *, said: str, gently: bool) -> None:
        """Read all suites and say so; a failure before that is said instead. `gently`: nothing is said in the place of
        something else. Before the suites were read for the first time, there is nothing to read again."""
        main = self._app.main
        if not main.workspace.roots:
            return

        async def again() -> None:  # not a coroutine yet, for it may give way to another before it has begun
            gone = await asyncio.to_thread(lost, main.workspace)
            conflicts = await self.read()
            made = tuple(suite.path for suite in main.desk.suites if suite.is_new and suite.dirty)
            text, role, sign = _outcome(main.workspace, gone, made, said)
            if failure is not None:
                text, role, sign = failure, "error", GLYPHS.error
            main.announce(text + main.and_moved, role, sign, gently=gently)
            if conflicts and self.is_typing:
                self.put_off({suite.path: _hash_in(main.workspace, suite) for suite in conflicts})
            elif conflicts:
                self._app.run_worker(self._app.saver.settle(conflicts), group="ask")

        self._app.run_worker(again, group="read", exclusive=True)  # type: ignore[arg-type]  # its type is told apart badly

    async def read(self) -> tuple[OpenSuite, ...]:
        """Read all suites and show them; those are returned that were edited here and are others on the disk."""
        main = self._app.main
        while True:
            before = main.workspace
            found = await asyncio.to_thread(read_again, before, self._app.program.models)
            # Whatever was saved, deleted or opened meanwhile made another workspace, of which this may know nothing.
            if main.workspace is before:
                return main.open(found)

    @property
    def is_typing(self) -> bool:
        """Whether letters are text now, so that a question must not come up under them."""
        focused = self._app.focused
        return focused is not None and focused.check_consume_key("a", "a")

    def put_off(self, found: Mapping[Path, str]) -> None:
        """Leave it to saving to ask about suites that changed here and on the disk; `found` has the hash of each file,
        empty when it is gone."""
        self._app.saver.put_off.update(found)
        name = next(iter(found)).name
        self._app.main.announce(f"{name} changed on the disk too: saving asks", "warned", GLYPHS.warned)


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
