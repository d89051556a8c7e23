"""Text that grows while it is shown. Wrapping costs only what was added."""

from __future__ import annotations

from workbench.reports.visible import visible
from workbench.tui.lines.spans import wrap

DISPLAY_LIMIT = 100_000
"""The characters of one text that are shown. The rest is counted, but still copied."""

TAB = "    "


def safe_lines(text: str, limit: int = DISPLAY_LIMIT) -> list[str]:
    """Split a text into visible logical lines, cut after `limit` characters."""
    return visible(text[:limit].replace("\r\n", "\n").replace("\t", TAB)).split("\n")


class GrowingText:
    """A text and its rows at the last requested width. Characters beyond `limit` have no rows."""

    def __init__(self, text: str = "", limit: int = DISPLAY_LIMIT) -> None:
        self._limit = limit
        self._raw = [text] if text else []
        self._length = len(text)
        self._logical = safe_lines(text, limit)
        self._width = 0
        self._rows: list[str] = []
        self._wrapped_lines = 0
        self._tail_start = 0

    @property
    def text(self) -> str:
        """The whole text, unchanged."""
        if len(self._raw) > 1:
            self._raw = ["".join(self._raw)]
        return self._raw[0] if self._raw else ""

    @property
    def hidden(self) -> int:
        """The number of characters beyond the display limit."""
        return max(self._length - self._limit, 0)

    @property
    def blank(self) -> bool:
        return not any(line.strip() for line in self._logical)

    def append(self, text: str) -> None:
        """Append a piece."""
        self._raw.append(text)
        room = self._limit - self._length
        self._length += len(text)
        if room <= 0:
            return
        first, *others = safe_lines(text, room)
        self._logical[-1] += first
        self._logical.extend(others)

    def rows(self, width: int) -> list[str]:
        """Return the rows at a width. Only the last logical line and new lines are wrapped again."""
        if width != self._width:
            self._width, self._rows, self._wrapped_lines, self._tail_start = width, [], 0, 0
        del self._rows[self._tail_start :]
        first = max(self._wrapped_lines - 1, 0)
        for line in self._logical[first:]:
            self._tail_start = len(self._rows)
            self._rows.extend(wrap(line, width))
        self._wrapped_lines = len(self._logical)
        return self._rows
