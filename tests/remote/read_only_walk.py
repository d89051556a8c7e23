"""Tries everything in a read-only app: `python -m tests.remote.read_only_walk HISTORY PATH ...`.

Prints the names of the screens it reached, and the actions that change something but were not refused."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from textual.pilot import Pilot

from tests.tui.calm import wait_until_calm
from tests.tui.walk import Walk
from workbench.cli.redaction import create_program
from workbench.config.program import Program
from workbench.config.read_only import READ_ONLY_REASON, become_read_only
from workbench.tui.shell.actions import ALL_ACTIONS
from workbench.tui.shell.workbench import Workbench
from workbench.tui.terminal.environment import IN_BROWSER

LOOKS = {action.id for action in ALL_ACTIONS.values() if not action.changes}


class ReadOnlyWalk(Walk):
    """Records the actions that change something but were not refused."""

    def __init__(self, app: Workbench, pilot: Pilot[int]) -> None:
        super().__init__(app, pilot, keys=True)
        self.done: set[str] = set()

    async def look(self, done: str) -> None:
        if done not in LOOKS and READ_ONLY_REASON[1:] not in self._bottom():
            self.done.add(done)

    def _bottom(self) -> str:
        return "".join(segment.text for segment in self._app.screen._compositor.render_strips()[-1])


async def walk(history: Path, paths: Sequence[Path], program: Program) -> None:
    def open_runtime(_listener: object) -> object:
        from workbench.evaluation.runtime import Runtime

        return Runtime(lambda _event: None, program)

    app = Workbench(paths, open_runtime=open_runtime, program=program, terminal=IN_BROWSER, history=history)  # type: ignore[arg-type]
    async with app.run_test(size=(150, 45)) as pilot:
        walking = ReadOnlyWalk(app, pilot)
        while not app.open_suites.suites:
            await pilot.pause()
        await wait_until_calm()
        await pilot.press("down", "down")  # to a case that was run
        await walking.everything()
        dirty = [str(suite.path) for suite in app.open_suites.dirty]
        sys.stdout.write(json.dumps({"screens": sorted(walking.screens), "done": sorted(walking.done), "dirty": dirty}))
        for error in app.containment.recent:
            raise error


if __name__ == "__main__":
    own = create_program()
    become_read_only(own.folders.log)
    asyncio.run(walk(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]], own))
