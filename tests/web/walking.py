"""A process that only shows, in which everything is done that can be done: `python -m tests.web.walking SUITE HISTORY`.

Prints the names of the screens that it came by, and the actions that were not refused although they change something.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from textual.pilot import Pilot

from tests.tui.settling import wait_until_calm
from workbench.cli.door import begin_program
from workbench.config.program import Program
from workbench.config.read_only import WHY_NOT, become_read_only
from workbench.tui.kit.actions import PANES
from workbench.tui.kit.looking import LOOKS
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.shell.registry import ACTIONS, SCREEN_TITLES
from workbench.tui.shell.workbench import Workbench
from workbench.tui.terminal.environment import IN_BROWSER

LEAVING = ("quit", "suspend")


class Walk:
    """All actions, one after the other."""

    def __init__(self, app: Workbench, pilot: Pilot[int]) -> None:
        self._app = app
        self._pilot = pilot
        self.screens: set[str] = set()
        self.done: set[str] = set()
        """Actions that change something, and were not refused."""

    async def settle(self) -> None:
        await wait_until_calm()

    async def everything(self) -> None:
        main = self._app.main
        ours = [action for action in ACTIONS if action.where not in SCREEN_TITLES and action.where != "move"]
        await self._pilot.press("down", "down")  # to a case that was run
        for pane in PANES:
            own = {"suites": ("suites", "everywhere"), "case": ("form", "toml"), "run": ("run",)}[pane]
            for action in ours:
                if action.id in LEAVING or action.where not in own:
                    continue
                main.go_to(pane)
                main.action_do(action.id)
                await self._look_at(action.id)
                await self.leave(deep=pane == "suites")
            await self._pilot.press("enter", "x", "f4", "delete", "ctrl+z", "escape", "escape")
            await self.leave(deep=False)

    async def _look_at(self, done: str) -> None:
        await self.settle()
        if done not in LOOKS and WHY_NOT[1:] not in self._bottom():
            self.done.add(done)

    def _bottom(self) -> str:
        return "".join(segment.text for segment in self._app.screen._compositor.render_strips()[-1])

    async def leave(self, *, deep: bool) -> None:
        """Do all that the screen offers that has opened, if `deep`, and close it."""
        for _ in range(20):
            screen = self._app.screen
            if screen is self._app.main:
                return
            if deep and isinstance(screen, SideScreen) and screen.NAME not in self.screens:
                self.screens.add(screen.NAME)
                for action in screen.FEATURE.at(screen.NAME):
                    if action.id.endswith((".quit", ".back")) or screen is not self._app.screen:
                        continue
                    screen.action_do(action.id)
                    await self._look_at(action.id)
                    if screen is not self._app.screen:
                        await self.leave_to(screen)
                for of_program in ("picture", "suspend"):  # the palette has them here too
                    self._app.action_do(of_program)
                    await self._look_at(of_program)
            await self._pilot.press("escape")
            await self.settle()
        raise AssertionError(f"{self._app.screen} stays")

    async def leave_to(self, below: object) -> None:
        """Close what has opened over a screen."""
        for _ in range(10):
            if self._app.screen in (below, self._app.main):
                return
            if isinstance(self._app.screen, SideScreen):
                self.screens.add(self._app.screen.NAME)
            await self._pilot.press("escape")
            await self.settle()


async def walk(suite: Path, history: Path, program: Program) -> None:
    def open_runtime(_listener: object) -> object:
        from workbench.evaluation.runtime import Runtime

        return Runtime(lambda _event: None, program)

    app = Workbench([suite], open_runtime=open_runtime, program=program, terminal=IN_BROWSER, history=history)  # type: ignore[arg-type]
    async with app.run_test(size=(150, 45)) as pilot:
        walking = Walk(app, pilot)
        while not app.open_suites.suites:
            await pilot.pause()
        await walking.settle()
        await walking.everything()
        dirty = [str(suite.path) for suite in app.open_suites.dirty]
        sys.stdout.write(json.dumps({"screens": sorted(walking.screens), "done": sorted(walking.done), "dirty": dirty}))


if __name__ == "__main__":
    own = begin_program()
    become_read_only(own.folders.log)
    asyncio.run(walk(Path(sys.argv[1]), Path(sys.argv[2]), own))
