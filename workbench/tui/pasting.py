"""What is pasted, told apart from what is typed: everything between the marks of a bracketed paste is text, and nothing
in it is ever a key."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual.message import Message

START, END = "\x1b[200~", "\x1b[201~"

_SURE = 3
"""So many characters of a mark at the end of what was read are no key by themselves."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class PasteCleaned(Message, verbose=True):
    """Follows a paste that has lost so many control characters; `behind` when it came the way of the keys, so that all
    that were read before it have been taken."""

    def __init__(self, left_out: int, *, behind: bool = False) -> None:
        super().__init__()
        self.left_out = left_out
        self.behind = behind


class Pastes:
    """Splits input as it is read. Textual's parser takes escape sequences inside of a paste for keys, and then all that
    follows them: a pasted colour code would make commands of a pasted text."""

    def __init__(self) -> None:
        self._pasting = False
        self._pasted: list[str] = []
        self._kept = ""
        self.left_out = 0
        """How many control characters the last paste has lost."""

    def split(self, text: str, *, more: bool) -> Iterator[tuple[str, bool]]:
        """Pieces of input, each with whether it is a whole pasted text. With `more` the rest is there to be read."""
        text, self._kept = self._kept + text, ""
        while text:
            mark = END if self._pasting else START
            before, found, text = text.partition(mark)
            if not found:
                cut = len(before) - _begun(before, mark, 1 if more or self._pasting else _SURE)
                before, self._kept = before[:cut], before[cut:]
            if self._pasting:
                self._pasted.append(before)
            elif before:
                yield before, False
            if found and self._pasting:
                pasted = _with_newlines("".join(self._pasted))
                self._pasted.clear()
                text_only, self.left_out = _CONTROLS.subn("", pasted)
                yield text_only, True
            if found:
                self._pasting = not self._pasting


def harmless(text: str) -> str:
    """Pasted text with its line ends as newlines, and without control characters other than these and tabs."""
    return _CONTROLS.sub("", _with_newlines(text))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _begun(text: str, mark: str, least: int) -> int:
    """How many characters at the end of `text` may be the beginning of `mark`, at least `least`, else 0."""
    return next((size for size in range(len(mark) - 1, least - 1, -1) if text.endswith(mark[:size])), 0)
