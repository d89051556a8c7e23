"""The selected case, or the head of its suite, as coloured TOML."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from workbench.tui.actions import bindings_for
from workbench.tui.state.source import Excerpt, Message, excerpt_lines, message_lines
from workbench.tui.state.spans import EMPTY, Line
from workbench.tui.widgets.line_view import LineView


class CaseView(LineView):
    """Lines of a suite file. It has no cursor: the keys move the window."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for("case")

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.excerpt: Excerpt | None = None
        self._message: Message = ()
        self._lines: list[Line] = []
        self._starts: dict[int, int] = {}
        self._laid_out_at = -1

    def show(self, excerpt: Excerpt | None, message: Message = (), line: int | None = None) -> None:
        """Show an excerpt, or a message where there is none; begin near a line of the file when one is given."""
        if excerpt != self.excerpt or message != self._message:
            self.excerpt, self._message = excerpt, message
            self._laid_out_at = -1
            self.top = 0
        if line is not None:
            self._lay_out()
            self.top = max(self._starts.get(line, 0) - self.size.height // 3, 0)
        self.repaint()

    @property
    def has_cursor(self) -> bool:
        return False

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
            self._lines, self._starts = excerpt_lines(self.excerpt, self.text_width)
        else:
            self._lines, self._starts = message_lines(self._message, self.text_width), {}
