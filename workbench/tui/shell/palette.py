"""The command palette, filled from the registry of actions."""

from __future__ import annotations

from functools import partial

from textual import events
from textual.app import ComposeResult
from textual.command import CommandInput, CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, LoadingIndicator, OptionList

from workbench.tui.kit.actions import Action
from workbench.tui.kit.painting import keymap_of
from workbench.tui.kit.stage import ClosesOnce
from workbench.tui.shell.registry import BY_ID, offered_actions


class _Listed(CommandList):
    """A list that tolerates clicks where an option has just disappeared."""

    async def _on_click(self, event: events.Click) -> None:
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class Palette(ClosesOnce[None], CommandPalette):
    """Textual's palette, robust against input that is faster than its list."""

    async def _on_message(self, message: Message) -> None:
        chooses = isinstance(message, OptionList.OptionSelected | Input.Submitted | events.Click)
        if self.is_current or not chooses:  # a second choice would run a second command
            await super()._on_message(message)

    def _on_click(self, event: events.Click) -> None:  # type: ignore[override]  # as Textual's own
        if not self.region.contains(event.screen_x, event.screen_y):
            event.prevent_default()

    def compose(self) -> ComposeResult:
        with Vertical(id="--container"):
            with Horizontal(id="--input"):
                yield CommandInput(placeholder=self._placeholder, select_on_focus=False)
            with Vertical(id="--results"):
                yield _Listed()
                yield LoadingIndicator()

    def _watch__list_visible(self) -> None:
        if self.query(CommandList):
            super()._watch__list_visible()

    async def _watch__show_busy(self) -> None:
        if self.query(CommandList):
            await super()._watch__show_busy()

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:  # otherwise Textual has not counted lines yet
            super()._action_command_list(action)


class ActionCommands(Provider):
    """Offers every action of the screen below. If one is unavailable, choosing it announces why."""

    async def discover(self) -> Hits:
        for action in self._offered():
            yield DiscoveryHit(self._title(action), partial(self._do, action.id), action.title, None)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._offered():
            if (score := matcher.match(action.title)) > 0:
                yield Hit(score, self._title(action), partial(self._do, action.id), action.title, None)

    def _offered(self) -> list[Action]:
        screen: str | None = getattr(self.screen, "NAME", None)
        return offered_actions(screen)

    def _title(self, action: Action) -> Content:
        keys = keymap_of(self.screen).names(action)
        return Content(f"{action.title}  {keys}" if keys else action.title)

    async def _do(self, action_id: str) -> None:
        if self.screen in self.screen.app.screen_stack:  # otherwise it was closed meanwhile
            own = getattr(self.screen, "NAME", None)
            # On a side screen the palette also offers actions of the program.
            of_screen = own is None or BY_ID[action_id].where == own
            # Not of the screen that is shown by now, but of the one that it was offered for.
            await self.screen.run_action(f"{'' if of_screen else 'app.'}do('{action_id}')")
