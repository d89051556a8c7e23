"""The command palette, filled from the registry of actions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from workbench.tui.actions import ACTIONS, Action
from workbench.tui.painting import keymap_of


class ActionCommands(Provider):
    """Offers every listed action; one that cannot be taken now says why when it is chosen."""

    async def discover(self) -> Hits:
        for action in _listed():
            yield DiscoveryHit(self._title(action), partial(self._do, action.id), action.title, None)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in _listed():
            if (score := matcher.match(action.title)) > 0:
                yield Hit(score, self._title(action), partial(self._do, action.id), action.title, None)

    def _title(self, action: Action) -> Content:
        keys = keymap_of(self.screen).names(action)
        return Content(f"{action.title}  {keys}" if keys else action.title)

    async def _do(self, action_id: str) -> None:
        await self.screen.run_action(f"screen.do('{action_id}')")


def _listed() -> Iterator[Action]:
    return (action for action in ACTIONS if action.listed)
