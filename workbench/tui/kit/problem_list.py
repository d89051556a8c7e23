"""The list of problems below a text that is being edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.message import Message

from workbench.suite.problems import Problem
from workbench.tui.kit.line_view import LineView
from workbench.tui.lines.marks import problem_lines
from workbench.tui.lines.spans import EMPTY, Line
from workbench.tui.terminal.theming import Ground


class ProblemList(LineView, can_focus=False):
    """Problems, at most a third of the height. Hidden if there are none."""

    DEFAULT_CSS = "ProblemList { height: auto; max-height: 33%; }"
    GROUND: ClassVar[Ground] = "panel"

    class Chosen(Message):
        """Posted when a problem is clicked."""

        def __init__(self, problem: Problem) -> None:
            super().__init__()
            self.problem = problem

    def __init__(self, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.problems: tuple[Problem, ...] = ()
        self._lines: list[Line] = []
        self._about: list[int] = []
        self._laid_out_at = -1

    def show(self, problems: Sequence[Problem]) -> None:
        """Replace the problems."""
        if tuple(problems) == self.problems:
            return
        before = len(self._lines)
        self.problems = tuple(problems)
        self._laid_out_at = -1
        self.display = bool(self.problems)
        self.repaint()
        if self.line_count() != before:
            self.refresh(layout=True)

    @property
    def has_cursor(self) -> bool:
        return False

    def line_count(self) -> int:
        if self._laid_out_at != self.text_width:
            self._laid_out_at = self.text_width
            self._lines, self._about = problem_lines(self.problems, self.text_width)
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        return self._lines[index] if index < self.line_count() else EMPTY

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(len(problem_lines(self.problems, max(width - 1, 1))[0]), 1)

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y
        if event.x < self.size.width - 1 and index < self.line_count():
            self.post_message(self.Chosen(self.problems[self._about[index]]))
        else:
            super().on_click(event)
