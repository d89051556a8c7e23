"""The lists of completions and of problems beside an edited text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.geometry import Region
from textual.message import Message

from workbench.authoring.form.completions import Completion
from workbench.show.spans import EMPTY, Line, Span, cut, cut_middle, padded
from workbench.suite.problems import Problem
from workbench.tui.kit.edited_text import problem_lines
from workbench.tui.kit.line_view import LineView
from workbench.tui.terminal.theme import Ground

MAX_ROWS = 6
MIN_WIDTH_CELLS = 16
MAX_WIDTH_CELLS = 60


class CompletionList(LineView, can_focus=False):
    """A list of completions above the pane's content. The edited field keeps the focus."""

    DEFAULT_CSS = """
    CompletionList { position: absolute; display: none; height: 1; }
    CompletionList.open { display: block; }
    """
    GROUND: ClassVar[Ground] = "panel"
    RESTING_GROUND: ClassVar[Ground] = "cursor"

    class Chosen(Message):
        """Posted when a completion is clicked."""

        def __init__(self, completion: Completion) -> None:
            super().__init__()
            self.completion = completion

    def __init__(self) -> None:
        super().__init__()
        self.found: tuple[Completion, ...] = ()
        self._most_rows = MAX_ROWS
        self.marked = False
        """Whether a completion is marked. Enter then inserts the completion."""

    @property
    def has_cursor(self) -> bool:
        return self.marked

    @property
    def is_open(self) -> bool:
        return self.has_class("open")

    @property
    def current(self) -> Completion | None:
        """The marked completion, `None` if none is marked or the list is closed."""
        if self.is_open and self.marked and self.cursor < len(self.found):
            return self.found[self.cursor]
        return None

    def offer(self, found: tuple[Completion, ...], mark: int | None, rows: int = MAX_ROWS) -> None:
        """Show completions, at most `rows` of them at once. The completion with the index `mark` is marked."""
        self._most_rows = rows
        self.found, self.marked = found, mark is not None
        self.top = 0
        self.set_class(bool(found), "open")
        self.cursor = mark or 0
        self.move_cursor(self.cursor)
        self.refresh(layout=True)

    def close(self) -> None:
        self.found = ()
        self.set_class(False, "open")

    def place(self, field: Region, pane: Region) -> None:
        """Move the list below a field, or above it if it fits only there. The regions are relative to the pane."""
        below, above = pane.height - field.bottom, field.y
        height = min(len(self.found), self._most_rows, max(below, above))
        width = MIN_WIDTH_CELLS
        for completion in self.found:
            width = max(width, cell_len(completion.label) + cell_len(completion.detail) + 5)
        width = min(width, MAX_WIDTH_CELLS, pane.width)
        x = max(min(field.x, pane.width - width), 0)
        y = field.bottom
        if height > below and above > below:
            y = field.y - height
        self.styles.offset = (x, y)
        self.styles.width, self.styles.height = width, max(height, 1)

    def step(self, offset: int) -> None:
        """Mark the next (1) or previous (-1) completion. If none is marked, begin at the top (1) or the bottom (-1)."""
        at = self.cursor + offset
        if not self.marked:
            at = 0 if offset > 0 else -1
        self.marked = True
        self.move_cursor(at % max(len(self.found), 1))

    def line_count(self) -> int:
        return len(self.found)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(len(self.found), 1)

    def line_at(self, index: int) -> Line:
        if index >= len(self.found):
            return EMPTY
        one = self.found[index]
        names = min(max(cell_len(each.label) for each in self.found), self.text_width - 2)
        if self._most_rows > MAX_ROWS:  # in a search, descriptions are more useful than the ends of names
            names = min(names, max(self.text_width * 2 // 5, MIN_WIDTH_CELLS))
        left = self.text_width - names - 3
        detail = (Span(" " + cut(one.detail, left), "muted"),) if left > 4 else EMPTY
        return (Span(f" {padded(cut_middle(one.label, names), names)} "), *detail)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        # Without this call, Textual would call the handler of the base class, too.
        event.prevent_default()
        index = self.top + event.y
        if index < len(self.found):
            self.post_message(self.Chosen(self.found[index]))


class ProblemList(LineView, can_focus=False):
    """The list of a text's problems. It takes at most a third of the height, and is hidden without problems."""

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
        self._problem_of_line: list[int] = []
        self._laid_out_at = -1

    def show(self, problems: Sequence[Problem]) -> None:
        if tuple(problems) == self.problems:
            return
        # A layout redraws the whole pane, so it is requested only if the number of lines changed.
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
            self._lines, self._problem_of_line = problem_lines(self.problems, self.text_width)
        return len(self._lines)

    def line_at(self, index: int) -> Line:
        if index < self.line_count():
            return self._lines[index]
        return EMPTY

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return max(len(problem_lines(self.problems, max(width - 1, 1))[0]), 1)

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y
        if event.x < self.size.width - 1 and index < self.line_count():
            self.post_message(self.Chosen(self.problems[self._problem_of_line[index]]))
        else:
            super().on_click(event)
