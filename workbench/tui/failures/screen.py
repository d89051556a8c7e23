"""The screen of failures by cause, with advice for each cause and the table of confused tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.message import Message as TextualMessage

from workbench.numerals import count_text, counted_of
from workbench.show.spans import EMPTY, Line, Message, Span
from workbench.show.views.failures import ConfusionTable
from workbench.show.visible import one_line
from workbench.tui.failures.state import FailureList, detail_lines, list_message, row_line
from workbench.tui.kit.actions import action
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.rows import Detail
from workbench.tui.kit.side_screen import ActionOverride

if TYPE_CHECKING:
    from workbench.tui.run_book.record import RunRecord  # noqa: F401 (the base class names it)
    from workbench.tui.shell.workbench import Workbench


class FailureDetail(Detail):
    """The details of the selected row. The mouse wheel scrolls the table sideways."""

    class Sideways(TextualMessage):
        """Posted when the mouse wheel scrolls to the left (-1) or right (1)."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.post_message(self.Sideways(-1))

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.post_message(self.Sideways(1))


class FailuresScreen(ListScreen["RunRecord", FailureList]):
    """Lists the failures as they were when the screen opened. Returns the run that the user chose."""

    LIST_SHARES = (0.3, 0.5)
    TWO_COLUMNS_CELLS = 76
    CAN_STACK = False
    NAME = "failures"
    TITLE_IN_TEXT = "the failures"
    ACTION_OVERRIDES = (ActionOverride("other", label="advice"),)
    AUTO_FOCUS = "#failures-list"

    def __init__(self, app: Workbench, state: FailureList, place: str) -> None:
        super().__init__(app, state)
        self._place = place
        self._whole_table = ConfusionTable(state.failures.confusion)
        self._short_table = ConfusionTable(state.failures.confusion.without_correct_tools)
        self._first_column = 0

    def _detail_view(self) -> FailureDetail:
        return FailureDetail(self._detail_lines, "failures-detail")

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width)

    def _message(self) -> Message:
        return list_message(self.state)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        row = self.state.selected
        if row is None:
            return ()
        table = self._whole_table if row.kind == "table" else self._short_table
        # A wider pane shows more columns, so the table may be scrolled too far.
        self._first_column = min(self._first_column, table.last_first(width))
        return detail_lines(self.state, row, table, self._first_column, width)

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        failed = f"{counted_of(len(state.failures.runs), state.failures.graded, 'graded run')} failed "
        active: Line = EMPTY
        if state.under_way:
            active = (Span(f"{count_text(state.under_way)} still running  ", "running"),)
        left: Line = (Span(" Failures ", "badge"), Span(f" {one_line(self._place)}{self._filter_text}"))
        return left, ((*active, Span(failed, "failed")),)

    @action("enter", "Go to the run; fold a cause", label="go to run")
    def do_open(self) -> None:
        """Close the screen, and show the run at the cursor.

        If the cursor is on a cause, fold or unfold it. If it is on the table of confused tools, go to the details."""
        row = self.state.selected
        if self.state.record is not None:
            self.dismiss(self.state.record)
        elif row is not None and row.group is not None and self.column == "list":
            self._fold(not self.state.is_folded(row.group.cause))
        else:
            self._go_to("detail")

    @action("left", "Fold the cause, or scroll the table back")
    def do_left(self) -> None:
        """Fold the cause. In the details, scroll the table to the left."""
        self._sideways(-1)

    @action("right", "Unfold the cause, or scroll the table")
    def do_right(self) -> None:
        """Unfold the cause. In the details, scroll the table to the right."""
        self._sideways(1)

    @action("y", "Copy everything as text", label="copy")
    def do_copy(self) -> None:
        self.workbench.copy(self.state.as_text(), "the failures", self.announce)

    def _sideways(self, step: int) -> None:
        if self.column == "detail":
            self._scroll_table(step)
        elif not self._fold(step < 0) and step > 0:
            self._go_to("detail")

    @on(FailureDetail.Sideways)
    def _turned(self, event: FailureDetail.Sideways) -> None:
        self._scroll_table(event.step)

    def _scroll_table(self, step: int) -> None:
        # A step to the left from the first column leads to the list.
        if self._first_column + step < 0:
            self._go_to("list")
        else:
            self._first_column += step
            self._detail.rebuild_lines(from_top=False)

    def _fold(self, folded: bool) -> bool:
        changed = self.state.fold(folded)
        if changed:
            self._show_state()
        return changed
