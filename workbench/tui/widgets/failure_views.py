"""What the screen of failures consists of: the list of causes and runs, and the advice on the one chosen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.message import Message

from workbench.tui.state.failure_lines import list_message, row_line
from workbench.tui.state.failures import FailureList
from workbench.tui.theming import Ground
from workbench.tui.widgets.dialogs import ReadLines
from workbench.tui.widgets.history_views import KeptRows


class FailureRows(KeptRows):
    """Causes and the runs below them, one row each."""

    def __init__(self, state: FailureList, widget_id: str) -> None:
        super().__init__(
            state,
            lambda index, width: row_line(state, state.rows[index], width),
            lambda: list_message(state),
            widget_id,
        )


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
