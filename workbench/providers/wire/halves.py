"""Characters outside of the Basic Multilingual Plane whose two halves come apart: servers that count in UTF-16 cut a
text wherever their piece is full."""

from __future__ import annotations

import re

_HALF = re.compile("[\ud800-\udfff]")


def mended(text: str) -> str:
    """The text with halves that stand side by side put together."""
    if _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextPieces:
    """The pieces of one text, each without the half of a character at its end, which goes before the next one."""

    def __init__(self) -> None:
        self._half = ""

    def next(self, piece: str) -> str:
        """What can be shown with this piece, which is not empty."""
        if not self._half and not "\ud800" <= piece[-1] <= "\udbff":
            return piece
        piece = self._half + piece
        self._half = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
        return mended(piece.removesuffix(self._half))
