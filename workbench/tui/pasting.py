"""Pasted text, without what would be a command to a terminal."""

from __future__ import annotations

import re

from textual.message import Message

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteCleaned(Message, verbose=True):
    """Follows a paste that has lost so many control characters, or its end; `behind` when it came the way of the keys,
    so that all that were read before it have been taken."""

    def __init__(self, left_out: int, *, was_cut: bool = False, behind: bool = False) -> None:
        super().__init__()
        self.left_out = left_out
        self.was_cut = was_cut
        self.behind = behind


def harmless(text: str) -> str:
    """Pasted text with its line ends as newlines, and without control characters other than these and tabs."""
    return _CONTROLS.sub("", _with_newlines(text))


def lost_in(text: str) -> int:
    """How many characters `harmless` leaves out."""
    return len(_CONTROLS.findall(_with_newlines(text)))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
