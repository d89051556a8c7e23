"""Pasted text without control characters."""

from __future__ import annotations

import re

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteCleaned(Message, verbose=True):
    """Reports that a paste lost control characters or its end. `behind` is true if the message went through the queue
    of keys, after all keys read before it."""

    def __init__(self, left_out: int, *, was_cut: bool = False, behind: bool = False) -> None:
        super().__init__()
        self.left_out = left_out
        self.was_cut = was_cut
        self.behind = behind


LONGEST_PASTE = 60_000
"""Longer pastes would block the app in Textual's fields."""


class PasteRefused(Message):
    """Reports that a text was too long to be pasted into a field."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


def refuses(field: Widget | None, event: events.Paste) -> bool:
    """Return whether a text is too long for the focused field. If so, a message reports it."""
    if len(event.text) <= LONGEST_PASTE or field is None or not field.check_consume_key("a", "a"):
        return False  # short enough, or no text field
    if getattr(field, "TAKES_LONG_PASTES", False):
        return False
    takes_one_line = isinstance(field, Input) and not getattr(field, "TAKES_LINES", False)
    if takes_one_line and event.text.find("\n", 0, LONGEST_PASTE) >= 0:
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
