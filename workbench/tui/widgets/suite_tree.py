"""The suite tree on screen: rows of `TreeState`, signs and scores of `RunBook`."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from workbench.tui.actions import bindings_for
from workbench.tui.state.runs import RunBook
from workbench.tui.state.source import message_lines
from workbench.tui.state.spans import EMPTY, Line, Role
from workbench.tui.state.tree import TreeState
from workbench.tui.state.tree_lines import fold_cell, tree_line
from workbench.tui.widgets.line_view import LineView


class SuiteTree(LineView):
    """Folders, suites and cases. Posts `Moved` when the cursor stands on another row."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for("suites")

    class Moved(Message):
        """The cursor stands on another row."""

    class Opened(Message):
        """The row under the cursor was clicked again."""

    def __init__(self, state: TreeState, book: RunBook, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.state = state
        self.book = book
        self.message: tuple[tuple[str, Role], ...] = ()
        """What stands here while there are no rows."""

    @property
    def has_cursor(self) -> bool:
        return bool(self.state.rows)

    def line_count(self) -> int:
        return len(self.state.rows) or len(message_lines(self.message, self.text_width))

    def line_at(self, index: int) -> Line:
        if not self.state.rows:
            rows = message_lines(self.message, self.text_width)
            return rows[index] if index < len(rows) else EMPTY
        return tree_line(self.state, self.state.rows[index], self.book, self.text_width)

    def moved(self) -> None:
        if self.state.rows and self.state.cursor != self.cursor:
            self.state.move_to(self.cursor)
            self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        """A click on the sign that folds does so, wherever the cursor is."""
        index = self.top + event.y
        row = self.state.rows[index] if index < len(self.state.rows) else None
        if row is not None and self.state.is_foldable(row) and event.x == fold_cell(row):
            event.prevent_default()
            self.state.move_to(index)
            self.state.fold(row, not self.state.is_folded(row))
            self.follow_state()

    def follow_state(self) -> None:
        """Show the tree as it is now: after folding, filtering or reading again."""
        self.move_cursor(self.state.cursor)
        self.post_message(self.Moved())
