"""Joins the surrogate pairs of characters that arrive in two pieces: servers may cut a text anywhere."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def joined_surrogates(text: str) -> str:
    """Returns the text with adjacent surrogates of one pair joined to their character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextPieces:
    """Streams a text in pieces. A high surrogate at the end of a piece is held back for the next one."""

    def __init__(self) -> None:
        self._pending = ""

    def next(self, piece: str) -> str:
        """Returns what is complete with this piece, which must not be empty."""
        if not self._pending and not "\ud800" <= piece[-1] <= "\udbff":
            return piece
        piece = self._pending + piece
        self._pending = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
        return joined_surrogates(piece.removesuffix(self._pending))
