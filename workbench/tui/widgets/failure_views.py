"""What the screen of failures consists of: the list of causes and runs, and the advice on the one chosen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.message import Message

from workbench.tui.state.failure_lines import list_message, row_line
from workbench.tui.state.failures import FailureList
from workbench.tui.state.source import message_lines
from workbench.tui.state.spans import Line
from workbench.tui.theming import Ground
from workbench.tui.widgets.dialogs import ReadLines
from workbench.tui.widgets.line_view import LineView


class FailureRows(LineView):
    """Causes and the runs below them, one row each."""

    class Moved(Message):
        """The cursor is on another row."""

    class Opened(Message):
        """A row was clicked once more."""

    def __init__(self, state: FailureList, widget_id: str) -> None:
        super().__init__(widget_id)
        self._state = state
        self.cursor = state.cursor

    def line_count(self) -> int:
        return len(self._state.rows) or len(self._message())

    @property
    def has_cursor(self) -> bool:
        return bool(self._state.rows)

    def line_at(self, index: int) -> Line:
        rows = self._state.rows
        return row_line(self._state, rows[index], self.text_width) if rows else self._message()[index]

    def moved(self) -> None:
        self._state.move_to(self.cursor)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def _message(self) -> tuple[Line, ...]:
        return message_lines(list_message(self._state), self.text_width)


class FailureDetail(ReadLines):
    """Everything about the row that the list's cursor is on."""

    GROUND: ClassVar[Ground] = "background"

    class Sideways(Message):
        """The wheel was turned sideways, to the left (-1) or to the right (1)."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.post_message(self.Sideways(-1))

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.post_message(self.Sideways(1))
