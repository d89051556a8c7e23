"""A queue that passes keys and pastes to Textual one at a time, each after the effects of the previous one."""

# Textual handles a burst of keys without waiting for the messages and screens caused by each key. Without this queue, a
# field opened by a key would miss the text typed after the key. After each key, the queue sends a marker (`KeyHandled`)
# through the message queues of the widgets. When the marker comes back, the queue passes on the next key. Characters
# for a focused text field need no marker.

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
from textual.widgets import Input

from workbench.limits import MAX_FIELD_CHARS
from workbench.startup import late_pattern

_CONTROLS = late_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteCleaned(Message, verbose=True):
    """Posted when control characters were removed from a paste (`removed_controls`), or its end was cut off.

    The driver posts the message without `is_queued`. The app posts it again with `is_queued`, once all earlier keys are
    handled."""

    def __init__(self, removed_controls: int, *, is_truncated: bool = False, is_queued: bool = False) -> None:
        super().__init__()
        self.removed_controls = removed_controls
        self.is_truncated = is_truncated
        self.is_queued = is_queued


class PasteRefused(Message):
    """Posted when a paste of `length` characters was too long for a field."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


def refuses(field: Widget | None, event: events.Paste) -> bool:
    """Return whether a paste is too long for the focused field. If so, post `PasteRefused`."""
    if len(event.text) <= MAX_FIELD_CHARS or field is None or not field.check_consume_key("a", "a"):
        return False  # the paste is short enough, or the widget takes no text
    if getattr(field, "TAKES_LONG_PASTES", False):
        return False
    # A one-line field takes only the first line, which may be short enough.
    takes_one_line = isinstance(field, Input) and not getattr(field, "TAKES_LINES", False)
    if takes_one_line and event.text.find("\n", 0, MAX_FIELD_CHARS) >= 0:
        return False
    field.post_message(PasteRefused(len(event.text)))
    return True


def without_controls(text: str) -> str:
    """Return pasted text with line feeds as line ends and without control characters except tabs."""
    return _CONTROLS.sub("", _with_newlines(text))


def control_count(text: str) -> int:
    """Return the number of control characters that `without_controls` removes from a text."""
    return len(_CONTROLS.findall(_with_newlines(text)))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


SCREEN_POLL_S = 0.02
"""The interval in seconds of checks for an opened or closed screen while keys wait."""

MESSAGE_ROUNDS = 2
"""The message rounds between two keys: one for the key, one for the messages caused by the key."""


class KeyHandled(Message, verbose=True):
    """A marker that travels through the message queues behind a key, to find out when the key is handled.

    `number` is the number of the key. `rounds` is how many times the marker must still pass the queues. In a second
    round, it follows the messages that the key caused, such as the submission of a field. `of_screen` is set if the
    marker follows a change of the screen instead of a key."""

    def __init__(self, number: int, rounds: int = MESSAGE_ROUNDS, *, of_screen: bool = False) -> None:
        super().__init__()
        self.number = number
        self.rounds = rounds
        self.of_screen = of_screen


class KeyQueueApp(App[int]):
    def __init__(self, driver_class: type[Driver] | None = None, *, ansi_color: bool | None = None) -> None:
        super().__init__(driver_class=driver_class, ansi_color=ansi_color)
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._marker_target: Widget | None = None
        """The widget with the marker, if any. It must handle the marker before the next key."""
        self._last_screen: Screen[object] | None = None
        """The last known top screen: the screen that handled the last key, or a screen opened later."""
        self._number = 0
        self._is_text = False
        """Whether the current key is a character for a text field."""
        self.sequences: frozenset[str] = frozenset()
        """The keys that are sequences of two characters, such as `gg`."""
        self._begun = ""
        """The typed first character of a sequence."""
        self._poll_timer: Timer | None = None

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
        # Callbacks that the key scheduled directly on the event loop run during this `sleep`.
        await asyncio.sleep(0)
        if event.rounds > 1:
            self._follow(event.rounds - 1, of_screen=event.of_screen)
        else:
            self._marker_target = None
        await self._pass_on()

    @property
    def message_queue_size(self) -> int:
        """The number of waiting messages and keys."""
        return super().message_queue_size + len(self._waiting)

    def _follow(self, rounds: int = MESSAGE_ROUNDS, *, of_screen: bool) -> None:
        """Send a marker to the focused widget, or else to the screen.

        The next key waits until the marker has passed the message queues `rounds` times."""
        self._number += 1
        handled = KeyHandled(self._number, rounds, of_screen=of_screen)
        self._marker_target = None
        # A closing widget takes no message. An opening screen handles no message before it is mounted.
        for carrier in (self.focused, self.screen):
            if carrier is not None and carrier.post_message(handled):
                self._marker_target = carrier
                return

    async def _pass_on(self) -> None:
        """Pass on waiting keys, each after the effects of the previous key."""
        while self._waiting and self._is_ready():
            event = self._waiting.popleft()
            if isinstance(event, events.Paste) and refuses(self.focused, event):
                continue
            if self._is_for_field(event):
                self._begun, self._is_text = "", True
                try:
                    await super().on_event(event)
                finally:
                    self._is_text = False
                self.after_key()
                continue
            if (whole := self._complete_sequence(event)) is None:
                continue
            event = whole
            # This must come before the event is handled, because the key may move the focus.
            behind = self.focused or self.screen
            await super().on_event(event)
            self._number += 1
            self._marker_target = behind
            if not behind.post_message(KeyHandled(self._number)):
                self._follow(of_screen=False)
            self.after_key()
        if self._waiting and self._poll_timer is None:
            self._poll_timer = self.set_timer(SCREEN_POLL_S, self._poll_screen)

    def after_key(self) -> None:
        """React to a key or paste once its effect has begun. Subclasses may override this."""

    def _complete_sequence(self, event: events.Key | events.Paste) -> events.Key | events.Paste | None:
        """Combine keys into the key sequences that have bindings.

        Returns the whole sequence for its last key, `None` for its first key, and any other event unchanged. If another
        key follows the first, the first key has no effect."""
        begun, self._begun = self._begun, ""
        if not isinstance(event, events.Key):
            return event
        if begun + event.key in self.sequences:
            return events.Key(begun + event.key, None)
        if any(key[0] == event.key for key in self.sequences):
            self._begun = event.key
            return None
        return event

    async def perform_binding(self, key: str) -> bool:
        """Perform the binding of a key at the focused widget. Return `False` if there is none."""
        return await self._check_bindings(key)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        # A character typed into a text field must not trigger a priority binding.
        return not (priority and self._is_text) and await super()._check_bindings(key, priority)

    def _is_ready(self) -> bool:
        if not self.screen_stack:
            return False
        # If the last key changed the screen, a marker is sent through the new screen. A new screen creates its field a
        # little later. After a screen was closed, the screen below may be about to open a field for its answer.
        if self.screen is not self._last_screen or (
            self._marker_target is not None and not self._marker_target.is_attached
        ):
            self._last_screen = self.screen
            self._follow(of_screen=True)
        # A screen that failed to open handles no messages, so a marker sent through it would never come back.
        return self._marker_target is None or (self._marker_target.is_mounted and not self._marker_target.is_running)

    def _is_for_field(self, event: events.Key | events.Paste) -> bool:
        """Return whether an event is a character for the focused text field. The queue passes it on without waiting."""
        field = self.focused
        if field is None or not isinstance(event, events.Key) or not event.is_printable:
            return False
        return field.check_consume_key(event.key, event.character)

    async def _poll_screen(self) -> None:
        self._poll_timer = None
        await self._pass_on()


async def run_own_binding(field: Widget, event: events.Key) -> None:
    """Run a field's own binding of a key at once, for example of Backspace."""
    # Textual would run the binding after the letters that follow in the same burst.
    for binding in field._bindings.key_to_bindings.get(event.key, ()):
        if not binding.priority:
            mark_handled(event)
            await field.run_action(binding.action)
            return


def mark_handled(event: events.Key | events.Paste) -> None:
    """Mark a key or paste as used. No other handler gets it."""
    # Textual offers an event to the handler of each base class, then to the parents of the widget.
    event.stop()
    event.prevent_default()


def bind_on_widget(widget: Widget, key: str, action: str) -> None:
    """Bind a key on one widget. `BINDINGS` would bind the key on all widgets of the class."""
    widget._bindings.bind(key, action)
