"""Text that grows while it is shown: wrapping costs what was added, not what is there already."""

from __future__ import annotations

from workbench.reports.visible import visible
from workbench.tui.lines.spans import wrap

DISPLAY_LIMIT = 100_000
"""Characters of one text that are shown; the rest is counted, and copied whole."""

TAB = "    "


def safe_lines(text: str, limit: int = DISPLAY_LIMIT) -> list[str]:
    """A text as visible logical lines, cut at `limit` characters."""
    return visible(text[:limit].replace("\r\n", "\n").replace("\t", TAB)).split("\n")


class GrowingText:
    """A text and its rows at the width last asked for; what is beyond `limit` characters has none."""

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
        """Everything, as it came."""
        if len(self._raw) > 1:
            self._raw = ["".join(self._raw)]
        return self._raw[0] if self._raw else ""

    @property
    def hidden(self) -> int:
        """Number of characters beyond the display limit."""
        return max(self._length - self._limit, 0)

    @property
    def blank(self) -> bool:
        return not any(line.strip() for line in self._logical)

    def append(self, text: str) -> None:
        """Add a piece."""
        self._raw.append(text)
        room = self._limit - self._length
        self._length += len(text)
        if room <= 0:
            return
        first, *others = safe_lines(text, room)
        self._logical[-1] += first
        self._logical.extend(others)

    def rows(self, width: int) -> list[str]:
        """The rows at a width; only the last logical line and those after it are wrapped again."""
        if width != self._width:
            self._width, self._rows, self._wrapped_lines, self._tail_start = width, [], 0, 0
        del self._rows[self._tail_start :]
        first = max(self._wrapped_lines - 1, 0)
        for line in self._logical[first:]:
            self._tail_start = len(self._rows)
            self._rows.extend(wrap(line, width))
        self._wrapped_lines = len(self._logical)
        return self._rows
