"""Passes on keys and pastes one at a time: each waits until the effects of the one before it are done."""

from __future__ import annotations

import asyncio
import re
from collections import deque

from textual import events
from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from workbench.limits import MAX_FIELD_CHARS

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteCleaned(Message, verbose=True):
    """Reports that a paste lost control characters or its end.

    `behind` is true if the message went through the queue of keys, after all keys read before it."""

    def __init__(self, left_out: int, *, was_cut: bool = False, behind: bool = False) -> None:
        super().__init__()
        self.left_out = left_out
        self.was_cut = was_cut
        self.behind = behind


class PasteRefused(Message):
    """Reports that a text was too long to be pasted into a field."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


def refuses(field: Widget | None, event: events.Paste) -> bool:
    """Return whether a text is too long for the focused field.

    If so, a message reports it."""
    if len(event.text) <= MAX_FIELD_CHARS or field is None or not field.check_consume_key("a", "a"):
        return False  # short enough, or no text field
    if getattr(field, "TAKES_LONG_PASTES", False):
        return False
    takes_one_line = isinstance(field, Input) and not getattr(field, "TAKES_LINES", False)
    if takes_one_line and event.text.find("\n", 0, MAX_FIELD_CHARS) >= 0:
        return False
    field.post_message(PasteRefused(len(event.text)))
    return True


def harmless(text: str) -> str:
    """Return pasted text with normalised line ends and without control characters, tabs excepted."""
    return _CONTROLS.sub("", _with_newlines(text))


def lost_in(text: str) -> int:
    """Return how many characters `harmless` removes."""
    return len(_CONTROLS.findall(_with_newlines(text)))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


LOOK_AGAIN_S = 0.02
"""How often a screen is looked for that opened or closed while keys wait."""

ROUNDS = 2
"""How many message rounds to wait for the effects of a key, or of a change of the screen, before the next key."""


class KeyHandled(Message, verbose=True):
    """Follows the key with this number through the message queues.

    In the next round, it follows the messages that the key caused, such as a field's submission. It follows a change
    of the screen, too, which is then `of_screen`."""

    def __init__(self, number: int, rounds: int = ROUNDS, *, of_screen: bool = False) -> None:
        super().__init__()
        self.number = number
        self.rounds = rounds
        self.of_screen = of_screen


class KeyQueueApp(App[int]):
    """An app that handles one key or paste at a time."""

    def __init__(self, driver_class: type[Driver] | None = None, *, ansi_color: bool | None = None) -> None:
        super().__init__(driver_class=driver_class, ansi_color=ansi_color)
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._carrier: Widget | None = None
        """The widget that has to handle a `KeyHandled` before the next key."""
        self._followed: Screen[object] | None = None
        """The screen that handled the last key, or came since and is waited for."""
        self._number = 0
        self._is_text = False
        """Whether the key that is being passed on is a character for a text field."""
        self.sequences: frozenset[str] = frozenset()
        """Keys that are two characters, typed one after the other, such as `gg`."""
        self._begun = ""
        """The first character of such a key."""
        self._looking: Timer | None = None

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._waiting.append(event)
            await self._pass_on()
        else:
            if isinstance(event, events.MouseDown):
                self._begun = ""
            await super().on_event(event)

    async def on_key_handled(self, event: KeyHandled) -> None:
        if event.number != self._number:
            return
        await asyncio.sleep(0)  # lets callbacks run that the key started outside the message queues
        if event.rounds > 1:
            self._follow(event.rounds - 1, of_screen=event.of_screen)
        else:
            self._carrier = None
        await self._pass_on()

    @property
    def message_queue_size(self) -> int:
        """The number of waiting messages and keys."""
        return super().message_queue_size + len(self._waiting)

    def _follow(self, rounds: int = ROUNDS, *, of_screen: bool) -> None:
        """Wait for so many message rounds of the receiver of keys.

        A screen that is being opened handles no message before it is mounted."""
        self._number += 1
        carriers = (carrier for carrier in (self.focused, self.screen) if carrier)
        handled = KeyHandled(self._number, rounds, of_screen=of_screen)
        self._carrier = next((carrier for carrier in carriers if carrier.post_message(handled)), None)

    async def _pass_on(self) -> None:
        """Pass on waiting keys whose turn has come."""
        while self._waiting and self._has_turn():
            event = self._waiting.popleft()
            if isinstance(event, events.Paste) and refuses(self.focused, event):
                continue
            if self._is_for_field(event):
                self._begun, self._is_text = "", True
                try:
                    await super().on_event(event)
                finally:
                    self._is_text = False
                self.key_passed_on()
                continue
            if (whole := self._with_begun(event)) is None:
                continue
            event = whole
            behind = self.focused or self.screen
            await super().on_event(event)
            self._number += 1
            self._carrier = behind
            if not behind.post_message(KeyHandled(self._number)):
                self._follow(of_screen=False)
            self.key_passed_on()
        if self._waiting and self._looking is None:
            self._looking = self.set_timer(LOOK_AGAIN_S, self._look_again)

    def key_passed_on(self) -> None:
        """Follow each key and paste, once its effect has begun."""

    def _with_begun(self, event: events.Key | events.Paste) -> events.Key | events.Paste | None:
        """Return the key that an event completes, otherwise the event, or `None` if it begins a key of two characters.

        A beginning that is not completed does nothing."""
        begun, self._begun = self._begun, ""
        if not isinstance(event, events.Key):
            return event
        if begun + event.key in self.sequences:
            return events.Key(begun + event.key, None)
        if any(key[0] == event.key for key in self.sequences):
            self._begun = event.key
            return None
        return event

    async def performs(self, key: str) -> bool:
        """Perform the binding of a key at the focus, and return whether there is one."""
        return await self._check_bindings(key)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        return not (priority and self._is_text) and await super()._check_bindings(key, priority)

    def _has_turn(self) -> bool:
        if not self.screen_stack:
            return False
        # A changed screen is an effect of the last key. What was opened gets its field a little later, and what is
        # below something that closed may be about to open a field for the answer.
        if self.screen is not self._followed or (self._carrier is not None and not self._carrier.is_attached):
            self._followed = self.screen
            self._follow(of_screen=True)
        # A screen that failed while it was opened handles nothing any more.
        return self._carrier is None or (self._carrier.is_mounted and not self._carrier.is_running)

    def _is_for_field(self, event: events.Key | events.Paste) -> bool:
        """Return whether the event is a character for a text field, which needs no waiting."""
        field = self.focused
        if field is None or not isinstance(event, events.Key) or not event.is_printable:
            return False
        return field.check_consume_key(event.key, event.character)

    async def _look_again(self) -> None:
        self._looking = None
        await self._pass_on()


async def act_at_once(field: Widget, event: events.Key) -> None:
    """Run the binding of a field's own key, such as Backspace, at once.

    Textual would run it after letters that follow in the same burst."""
    for binding in field._bindings.key_to_bindings.get(event.key, ()):
        if not binding.priority:
            taken(event)
            await field.run_action(binding.action)
            return


def taken(event: events.Key | events.Paste) -> None:
    """Stop an event completely.

    Textual would offer it to every class of a widget, and then to its parents."""
    event.stop()
    event.prevent_default()


def bind_here(widget: Widget, key: str, action: str) -> None:
    """Bind a key on this one widget, not on its class."""
    widget._bindings.bind(key, action)
