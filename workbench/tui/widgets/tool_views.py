"""What the tools screen consists of: the list of servers and tools, and everything about the one chosen."""

from __future__ import annotations

from typing import ClassVar

from textual.message import Message

from workbench.tui.state.source import message_lines
from workbench.tui.state.spans import Line
from workbench.tui.state.tool_lines import list_message, row_line
from workbench.tui.state.tool_shelves import ToolShelves
from workbench.tui.theming import Ground
from workbench.tui.widgets.dialogs import ReadLines
from workbench.tui.widgets.line_view import LineView


class ToolList(LineView):
    """Suites, servers and tools, one row each."""

    class Moved(Message):
        """The cursor is on another row."""

    class Opened(Message):
        """A row was clicked once more."""

    def __init__(self, state: ToolShelves, widget_id: str) -> None:
        super().__init__(widget_id)
        self.state = state
        self.cursor = state.cursor
        self.loading_tools = True
        """Whether it is not known yet what there is."""

    def line_count(self) -> int:
        return len(self.state.rows) or len(self._message())

    @property
    def has_cursor(self) -> bool:
        return bool(self.state.rows)

    def line_at(self, index: int) -> Line:
        if not self.state.rows:
            return self._message()[index]
        return row_line(self.state, self.state.rows[index], self.text_width)

    def moved(self) -> None:
        self.state.move_to(self.cursor)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def _message(self) -> tuple[Line, ...]:
        return () if self.loading_tools else message_lines(list_message(self.state), self.text_width)


class ToolDetail(ReadLines):
    """Everything about the row that the list's cursor is on."""

    GROUND: ClassVar[Ground] = "background"
