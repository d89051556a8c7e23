"""A walk through the app that performs every action on every screen."""

from __future__ import annotations

import string
from collections.abc import Container
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from tests.tui.calm import wait_until_calm
from workbench.tui.kit.actions import PANES
from workbench.tui.kit.side_screen import SideScreen
from workbench.tui.shell.actions import ALL_ACTIONS, MAIN_ACTIONS
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.workbench import Workbench

OF_PROGRAM = ("picture", "suspend")
"""Actions of the main screen that the palette offers on every screen."""

_BOUND = {key for action in ALL_ACTIONS.values() for key in action.keys}
KEYS = tuple(
    key
    for key in (*map(chr, range(0x21, 0x7F)), *(f"ctrl+{letter}" for letter in string.ascii_lowercase), "space", "f12")
    if key not in _BOUND and key != "ctrl+q"
)
"""The keys to press in each pane: keys without an action, because actions are performed by name."""

EDITING_KEYS = ("enter", "space", "tab", "delete", "backspace", "ctrl+s", "ctrl+z", "f4")
"""The keys to press on each other screen: keys that may edit, run or write."""


class Walk:
    """Performs all actions except `left_out` on the main screen and on each screen that opens. With `keys`, also
    presses keys."""

    def __init__(self, app: Workbench, pilot: Pilot[int], *, left_out: Container[str] = (), keys: bool = False) -> None:
        self._app = app
        self._pilot = pilot
        self._left_out = left_out
        self._keys = keys
        self._left: dict[str, list[tuple[str, str]]] = {}
        """The remaining actions and keys by screen."""

    @property
    def screens(self) -> set[str]:
        """The screens above the main one that were reached."""
        return {*self._left}

    async def look(self, done: str) -> None:
        """Examine the effect of an action, once the app is calm."""

    async def everything(self) -> None:
        main = self._app.main
        ours = [action for action in MAIN_ACTIONS if action.id != "quit"]
        for pane in PANES:
            own = {"suites": ("suites", "everywhere"), "case": ("form", "toml"), "run": ("run",)}[pane]
            for action in ours:
                if action.id not in self._left_out and action.scope in own:
                    main.go_to(pane)
                    await self._do("action", action.id, main)
            main.go_to(pane)
            for key in KEYS if self._keys else ():
                await self._do("key", key, main)
        assert not any(self._left.values()), self._left

    async def _do(self, how: str, name: str, screen: MainScreen | SideScreen[Any]) -> None:
        """Perform an action or key again as long as a screen opens on which something remains to do. Some actions close
        their screen."""
        before = -1
        while screen in self._app.screen_stack and before != (left := sum(map(len, self._left.values()))):
            before = left
            if how == "key":
                await self._pilot.press(name)
            elif name in OF_PROGRAM:
                self._app.action_do(name)
            else:
                screen.action_do(name)
            await wait_until_calm()
            if how == "action":
                await self.look(name)
            await self._come_back(screen)

    async def _come_back(self, below: Screen[Any]) -> None:
        """Close the screens above a screen, after everything was done on them."""
        for _ in range(20):
            screen = self._app.screen
            if screen is below or below not in self._app.screen_stack:
                return
            if isinstance(screen, SideScreen):
                left = self._left.setdefault(screen.NAME, self._all_of(screen))
                while left and screen is self._app.screen:
                    await self._do(*left.pop(0), screen)
            if self._app.screen is not below:
                await self._pilot.press("escape")
                await wait_until_calm()
        raise AssertionError(f"{self._app.screen} stays over {below}")

    def _all_of(self, screen: SideScreen[Any]) -> list[tuple[str, str]]:
        here = [action.id for action in screen.ACTIONS if not action.id.endswith((".quit", ".back"))]
        actions = [("action", name) for name in (*here, *OF_PROGRAM) if name not in self._left_out]
        # The first mark needs a second one beside it.
        return [*actions, ("key", "down"), *actions, *(("key", key) for key in EDITING_KEYS if self._keys)]
