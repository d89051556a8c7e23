"""The command palette, filled from the registry of actions."""

from __future__ import annotations

from functools import partial

from textual import events
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList

from workbench.tui.actions import Action, ScreenName, offered_actions
from workbench.tui.closing import ClosesOnce
from workbench.tui.painting import keymap_of


class Palette(ClosesOnce[None], CommandPalette):
    """Textual's palette, for fingers that are quicker than its list is filled and closed."""

    async def _on_message(self, message: Message) -> None:
        chooses = isinstance(message, OptionList.OptionSelected | Input.Submitted | events.Click)
        if self.is_current or not chooses:  # a second choice would do a second command
            await super()._on_message(message)

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:  # else Textual has counted no lines
            super()._action_command_list(action)


class ActionCommands(Provider):
    """Offers every action of the screen it was opened on; one that cannot be taken now says why when it is chosen."""

    async def discover(self) -> Hits:
        for action in self._offered():
            yield DiscoveryHit(self._title(action), partial(self._do, action.id), action.title, None)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._offered():
            if (score := matcher.match(action.title)) > 0:
                yield Hit(score, self._title(action), partial(self._do, action.id), action.title, None)

    def _offered(self) -> list[Action]:
        screen: ScreenName | None = getattr(self.screen, "NAME", None)
        return offered_actions(screen)

    def _title(self, action: Action) -> Content:
        keys = keymap_of(self.screen).names(action)
        return Content(f"{action.title}  {keys}" if keys else action.title)

    async def _do(self, action_id: str) -> None:
        if self.screen in self.screen.app.screen_stack:  # else it was closed meanwhile
            await self.screen.run_action(f"screen.do('{action_id}')")
