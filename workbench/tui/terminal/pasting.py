"""Pasted text, without what would be a command to a terminal."""

from __future__ import annotations

import re

from textual import events
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteCleaned(Message, verbose=True):
    """Follows a paste that has lost so many control characters, or its end; `behind` when it came the way of the keys,
    so that all that were read before it have been taken."""

    def __init__(self, left_out: int, *, was_cut: bool = False, behind: bool = False) -> None:
        super().__init__()
        self.left_out = left_out
        self.was_cut = was_cut
        self.behind = behind


LONGEST_PASTE = 60_000
"""Fields of Textual's take no longer paste: it would hold the app up."""


class PasteRefused(Message):
    """A text was too long to be pasted into a field."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length


def refuses(field: Widget | None, event: events.Paste) -> bool:
    """Whether a text is too long for the field that has the keyboard, which is said then."""
    if len(event.text) <= LONGEST_PASTE or field is None or not field.check_consume_key("a", "a"):
        return False  # short enough, or nothing is typed there
    if getattr(field, "TAKES_LONG_PASTES", False):
        return False
    takes_one_line = isinstance(field, Input) and not getattr(field, "TAKES_LINES", False)
    if takes_one_line and event.text.find("\n", 0, LONGEST_PASTE) >= 0:
        return False
    field.post_message(PasteRefused(len(event.text)))
    return True


def harmless(text: str) -> str:
    """Pasted text with its line ends as newlines, and without control characters other than these and tabs."""
    return _CONTROLS.sub("", _with_newlines(text))


def lost_in(text: str) -> int:
    """How many characters `harmless` leaves out."""
    return len(_CONTROLS.findall(_with_newlines(text)))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
