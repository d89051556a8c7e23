"""Keys in turn: each is passed on once what the one before it did is done, however many of them arrive together.

Textual gives a key to what has the keyboard when it arrives. Over a slow link, or from somebody who types quickly, the
letters behind the key that opens a dialog arrive before the dialog has a field, and would be lost.
"""

from __future__ import annotations

import asyncio
from collections import deque

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from workbench.tui.terminal.pasting import refuses

LOOK_AGAIN_S = 0.02
"""Keys that wait are looked after this often."""

PATIENCE_S = 0.5
"""So long a key waits at most: what was to tell that its turn has come can be gone together with a dialog."""

ROUNDS = 2
"""So often the way of a key is gone before the next key has its turn."""


class KeyHandled(Message, verbose=True):
    """Goes behind a key, of this number, the way that the key goes; in the next round behind what the key led to, such
    as the message that a field was submitted."""

    def __init__(self, number: int, rounds: int = ROUNDS) -> None:
        super().__init__()
        self.number = number
        self.rounds = rounds


class KeysInTurnApp(App[int]):
    """An app that takes one key, or one pasted text, at a time."""

    def __init__(self, driver_class: type[Driver] | None = None, *, ansi_color: bool | None = None) -> None:
        super().__init__(driver_class=driver_class, ansi_color=ansi_color)
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._under_way: Screen[object] | None = None
        """The screen that has the key which is not done with."""
        self._had_turn: Screen[object] | None = None
        """The screen that had the last key."""
        self._number = 0
        self._looking: Timer | None = None
        self._looked = 0

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._waiting.append(event)
            await self._pass_on()
        else:
            await super().on_event(event)

    async def on_key_handled(self, event: KeyHandled) -> None:
        if event.number != self._number:
            return
        await asyncio.sleep(0)  # for what the key has begun beside the app's own messages
        if event.rounds == 1 or not self._behind.post_message(KeyHandled(event.number, event.rounds - 1)):
            self._under_way = None
            await self._pass_on()

    @property
    def message_queue_size(self) -> int:
        """How many messages, and keys whose turn has not come, wait for the app."""
        return super().message_queue_size + len(self._waiting)

    @property
    def _behind(self) -> Widget:
        return self.focused or self.screen

    async def _pass_on(self) -> None:
        """Pass on what waits, as far as its turn has come."""
        while self._waiting and self._has_turn():
            event = self._waiting.popleft()
            self._looked = 0
            if isinstance(event, events.Paste) and refuses(self.focused, event):
                continue
            if self._is_for_field(event):
                await super().on_event(event)
                continue
            self._under_way, self._number = self.screen, self._number + 1
            behind = self._behind
            await super().on_event(event)
            if not behind.post_message(KeyHandled(self._number)):
                self._under_way = None
        if self._waiting and self._looking is None:
            self._looking = self.set_timer(LOOK_AGAIN_S, self._look_again)

    def _has_turn(self) -> bool:
        if not self.screen_stack:
            return False
        # A screen that came or went is what the last key did; one that came has a field, or lines, a little later.
        screen = self.screen
        has_come = screen is self._had_turn or screen.focused is not None
        if (has_come and screen is not self._under_way) or self._looked * LOOK_AGAIN_S >= PATIENCE_S:
            self._had_turn = screen
            return True
        return False

    def _is_for_field(self, event: events.Key | events.Paste) -> bool:
        """Whether it is a letter that goes into a field, after which nothing else is to be waited for."""
        field = self.focused
        if field is None or not isinstance(event, events.Key) or not event.is_printable:
            return False
        return field.check_consume_key(event.key, event.character)

    async def _look_again(self) -> None:
        self._looking = None
        self._looked += 1
        await self._pass_on()
