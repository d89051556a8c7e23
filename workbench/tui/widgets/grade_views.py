"""What the screen of grades consists of: the list of graders, and everything about the grade chosen."""

from __future__ import annotations

from typing import ClassVar

from textual.message import Message

from workbench.tui.state.grade_lines import ROWS, list_line
from workbench.tui.state.grades import GradesState
from workbench.tui.state.spans import Line
from workbench.tui.theming import Ground
from workbench.tui.widgets.dialogs import ReadLines
from workbench.tui.widgets.line_view import LineView, Motion


class GradeList(LineView):
    """The graders, some rows each; the cursor goes from one to the next."""

    class Moved(Message):
        """The cursor is on another grader."""

    class Opened(Message):
        """A grader was clicked once more."""

    def __init__(self, state: GradesState, widget_id: str) -> None:
        super().__init__(widget_id)
        self.state = state
        self.cursor = self.line_of(state.cursor)

    def line_count(self) -> int:
        return len(self.state.grades) * ROWS

    def first_of(self, index: int) -> int:
        return index // ROWS * ROWS

    def line_of(self, grader: int) -> int:
        """The first row of a grader."""
        return grader * ROWS

    def line_at(self, index: int) -> Line:
        return list_line(self.state, index, self.text_width)

    def move_cursor(self, index: int) -> None:
        first = self.first_of(min(max(index, 0), self.line_count() - 1))
        super().move_cursor(first + ROWS - 1)  # so that its last row is in sight
        super().move_cursor(first)

    def action_move(self, motion: Motion) -> None:
        if motion in ("up", "down"):
            self.move_cursor(self.cursor + (ROWS if motion == "down" else -ROWS))
            self.moved()
        else:
            super().action_move(motion)

    def moved(self) -> None:
        self.state.move_to(self.cursor // ROWS)
        self.post_message(self.Moved())

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())


class GradeDetail(ReadLines):
    """Everything about the grade that the list's cursor is on."""

    GROUND: ClassVar[Ground] = "background"
