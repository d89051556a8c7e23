"""The failed runs of suites by cause: what to do about each, which tools were mixed up, and the way to each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message

from workbench.reports.visible import one_line
from workbench.suite.numerals import counted
from workbench.tui.failures.actions import FEATURE
from workbench.tui.failures.confusion import ConfusionTable
from workbench.tui.failures.lines import detail_lines, list_message, row_line
from workbench.tui.failures.state import FailureList
from workbench.tui.kit.actions import bindings_for
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.dialogs import ReadLines
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.painting import Bar
from workbench.tui.kit.rows import KeptRows
from workbench.tui.kit.side_screen import ListScreen
from workbench.tui.kit.stage import Stage
from workbench.tui.lines.prose import title_line
from workbench.tui.lines.spans import EMPTY, Line, Span
from workbench.tui.run_book.record import RunRecord
from workbench.tui.terminal.theming import Ground


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


class FailuresScreen(ListScreen[RunRecord]):
    """What failed, as it was when the screen was opened. Its answer is the run to go to."""

    DEFAULT_CSS = "FailuresScreen #list-column { width: 42%; }"
    TWO_COLUMNS_CELLS = 76
    FEATURE = FEATURE
    NAME = "failures"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(FEATURE.at(NAME))
    AUTO_FOCUS = "#failures-list"

    def __init__(self, stage: Stage, state: FailureList, place: str) -> None:
        super().__init__(stage)
        self.state: FailureList = state
        self._place = place
        self._whole_table = ConfusionTable(state.failures.confusion)
        self._short_table = ConfusionTable(state.failures.confusion.without_sure_ones)
        self._first_column = 0

    def compose(self) -> ComposeResult:
        yield Bar("failures-title")
        with Horizontal(id="columns"):
            with Vertical(id="list-column"):
                yield FailureRows(self.state, "failures-list")
                yield FilterField(placeholder="words of case, model, tool or parameter")
            with Vertical(id="detail-column"):
                yield FailureDetail(self._lines, "failures-detail")
        yield KeyBar("failures-keys")

    def on_mount(self) -> None:
        self._show_bars()

    # What is there

    @property
    def _list(self) -> FailureRows:
        return self.query_one("#failures-list", FailureRows)

    @property
    def _detail(self) -> FailureDetail:
        return self.query_one("#failures-detail", FailureDetail)

    def _lines(self, width: int) -> Sequence[Line]:
        row = self.state.selected
        if row is None:
            return ()
        table = self._whole_table if row.kind == "table" else self._short_table
        self._first_column = min(self._first_column, table.last_first(width))
        return detail_lines(self.state, row, table, self._first_column, width)

    def _show_state(self, *, moved: bool = True) -> None:
        self._list.move_cursor(self.state.cursor)
        self._detail.show_anew(from_top=moved)
        self._show_bars()

    def _show_bars(self) -> None:
        state = self.state
        failed = f"{len(state.failures.runs):,} of {counted(state.failures.graded, 'graded run')} failed "
        going: Line = (Span(f"{state.under_way:,} not over yet  ", "running"),) if state.under_way else EMPTY
        right: Line = (*going, Span(failed, "failed"))
        left: Line = (Span(" Failures ", "badge"), Span(f" {one_line(self._place)}{self._filter_said}"))
        self.query_one("#failures-title", Bar).say(lambda width: title_line(left, (right,), width))
        super()._show_bars()

    @on(FailureRows.Moved)
    def _moved(self) -> None:
        self._show_state()

    @on(FailureRows.Opened)
    def _opened(self) -> None:
        self.action_do("failures.open")

    # What can be done

    def do_open(self) -> None:
        """Go to the run under the cursor; fold or unfold a cause; show the table."""
        row = self.state.selected
        if self.state.record is not None:
            self.dismiss(self.state.record)
        elif row is not None and row.group is not None and self.column == "list":
            self._fold(not self.state.is_folded(row.group))
        else:
            self._go_to("detail")

    def do_left(self) -> None:
        """Fold the cause; in the other column, scroll the table back."""
        self._sideways(-1)

    def do_right(self) -> None:
        """Unfold the cause; in the other column, scroll the table."""
        self._sideways(1)

    def do_copy(self) -> None:
        """Copy all of it as text."""
        self.stage.copy(self.state.as_text(), "the failures", self.announce)

    def _sideways(self, step: int) -> None:
        if self.column == "detail":
            self._scroll_table(step)
        elif not self._fold(step < 0) and step > 0:
            self._go_to("detail")

    @on(FailureDetail.Sideways)
    def _turned(self, event: FailureDetail.Sideways) -> None:
        self._scroll_table(event.step)

    def _scroll_table(self, step: int) -> None:
        if self._first_column + step < 0:
            self._go_to("list")
        else:
            self._first_column += step
            self._detail.show_anew(from_top=False)

    def _fold(self, folded: bool) -> bool:
        changed = self.state.fold(folded)
        if changed:
            self._show_state()
        return changed
