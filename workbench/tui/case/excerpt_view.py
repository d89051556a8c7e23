"""A read-only view of coloured TOML: the selected case, the head of its suite, or a whole file."""

from __future__ import annotations

from bisect import bisect_right
from types import MappingProxyType
from typing import ClassVar

from textual.message import Message as TextualMessage

from workbench.tui.case.excerpt import Excerpt, excerpt_lines
from workbench.tui.kit.line_view import LineView
from workbench.tui.lines.prose import Found, Message, message_lines
from workbench.tui.lines.spans import EMPTY, Line
from workbench.tui.terminal.theming import Ground

_NOTHING: Found = MappingProxyType({})


class CaseView(LineView):
    """Lines of a suite file, with a cursor where typing would begin."""

    RESTING_GROUND: ClassVar[Ground] = "background"

    class Chosen(TextualMessage):
        """Posted when the line under the cursor is clicked."""

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.excerpt: Excerpt | None = None
        self._message: Message = ()
        self._found: Found = _NOTHING
        self._lines: list[Line] = []
        self._starts: dict[int, int] = {}
        self._laid_out_at = -1

    def show(self, excerpt: Excerpt | None, message: Message = (), line: int | None = None) -> None:
        """Show an excerpt, or a message if there is none, near a line of the file if given."""
        if excerpt != self.excerpt or message != self._message:
            kept = self.line if excerpt is not None and self.excerpt is not None else 0
            other = excerpt is None or self.excerpt is None or excerpt.first != self.excerpt.first
            self.excerpt, self._message = excerpt, message
            self._laid_out_at = -1
            self.top = self.cursor = 0
            if not other:
                self.go_to(kept)
        if line is not None and self.excerpt is not None:
            self.go_to(line - self.excerpt.first)
        self.repaint()

    def highlight(self, found: Found) -> None:
        """Mark the matches of a search."""
        if found != self._found:
            self._found, self._laid_out_at = found, -1
            self.repaint()

    @property
    def line(self) -> int:
        """The line of the excerpt, from 0, under the cursor."""
        self._lay_out()
        return max(bisect_right(list(self._starts.values()), self.cursor) - 1, 0)

    def go_to(self, line: int) -> None:
        """Move the cursor to a line of the excerpt, from 0, with some lines above it."""
        self._lay_out()
        starts = list(self._starts.values())
        row = starts[min(max(line, 0), len(starts) - 1)] if starts else 0
        if not self.top <= row < self.top + self.size.height:
            self.top = max(row - self.size.height // 3, 0)
        self.move_cursor(row)

    @property
    def has_cursor(self) -> bool:
        return self.excerpt is not None

    def chosen(self, index: int) -> None:
        self.post_message(self.Chosen())

    def line_count(self) -> int:
        self._lay_out()
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        self._lay_out()
        return self._lines[index] if index < len(self._lines) else EMPTY

    def _lay_out(self) -> None:
        if self._laid_out_at == self.text_width:
            return
        self._laid_out_at = self.text_width
        if self.excerpt is not None:
            self._lines, self._starts = excerpt_lines(self.excerpt, self.text_width, self._found)
        else:
            self._lines, self._starts = list(message_lines(self._message, self.text_width)), {}
