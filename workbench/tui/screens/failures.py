"""The failed runs of suites by cause: what to do about each, which tools were mixed up, and the way to each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.tui.actions import BY_ID, ScreenName, Situation, bindings_for, shown_keys
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import Bar
from workbench.tui.screens.help import HelpScreen
from workbench.tui.state.confusion_lines import ConfusionTable
from workbench.tui.state.failure_lines import detail_lines
from workbench.tui.state.failures import FailureList
from workbench.tui.state.runs import RunRecord
from workbench.tui.state.spans import EMPTY, Line, Role, Span
from workbench.tui.state.tool_lines import title_line
from workbench.tui.state.words import many
from workbench.tui.widgets.bars import KeyBar
from workbench.tui.widgets.failure_views import FailureDetail, FailureRows
from workbench.tui.widgets.safe_input import SafeInput

if TYPE_CHECKING:
    from workbench.tui.workbench import Workbench

TWO_COLUMNS_CELLS = 76
"""From this width on list and advice stand side by side."""

Column = Literal["list", "detail"]


class FailuresScreen(Screen[RunRecord]):
    """What failed, as it was when the screen was opened. Its answer is the run to go to."""

    DEFAULT_CSS = """
    FailuresScreen { layout: vertical; background: $background; }
    FailuresScreen #columns { height: 1fr; }
    FailuresScreen #list-column { width: 42%; max-width: 60; height: 100%; }
    FailuresScreen #detail-column { width: 1fr; height: 100%; border-left: solid $border; }
    FailuresScreen.one #list-column { width: 1fr; max-width: 100%; }
    FailuresScreen.one #detail-column { border-left: none; }
    FailuresScreen #failures-filter { height: 1; border: none; padding: 0 1; background: $panel; }
    """
    NAME: ClassVar[ScreenName] = "failures"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for(NAME)
    AUTO_FOCUS = "#failures-list"

    def __init__(self, app: Workbench, state: FailureList, place: str) -> None:
        super().__init__()
        self._workbench = app
        self.state = state
        self._place = place
        self.column: Column = "list"
        self._whole_table = ConfusionTable(state.failures.confusion)
        self._short_table = ConfusionTable(state.failures.confusion.without_sure_ones)
        self._first_column = 0

    def compose(self) -> ComposeResult:
        yield Bar("failures-title")
        with Horizontal(id="columns"):
            with Vertical(id="list-column"):
                yield FailureRows(self.state, "failures-list")
                yield SafeInput(placeholder="words of case, model, tool or parameter", widget_id="failures-filter")
            with Vertical(id="detail-column"):
                yield FailureDetail(self._lines, "failures-detail")
        yield KeyBar("failures-keys")

    def on_mount(self) -> None:
        self._filter.display = False
        self._place_columns()
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

    def _show_state(self) -> None:
        self._list.move_cursor(self.state.cursor)
        self._detail.show_anew(from_top=True)
        self._show_bars()

    def _show_bars(self) -> None:
        state = self.state
        failed = f"{len(state.failures.runs):,} of {many(state.failures.graded, 'graded run')} failed "
        going: Line = (Span(f"{state.under_way:,} not over yet  ", "running"),) if state.under_way else EMPTY
        right: Line = (*going, Span(failed, "failed"))
        filtered = f"  /{one_line(state.filter)}" if state.filter and not self._filtering else ""
        left: Line = (Span(" Failures ", "badge"), Span(f" {one_line(self._place)}{filtered}"))
        self.query_one("#failures-title", Bar).say(lambda width: title_line(left, (right,), width))
        self.query_one("#failures-keys", KeyBar).offer(shown_keys(self.situation) if self.app.screen is self else ())

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Say something at the bottom, until the next key."""
        said = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        self.query_one("#failures-keys", KeyBar).announce((Span(said, role),))

    @on(FailureRows.Moved)
    def _moved(self) -> None:
        self._show_state()

    @on(FailureRows.Opened)
    def _opened(self) -> None:
        self.action_do("failures.open")

    # Columns

    def on_resize(self, event: events.Resize) -> None:
        self._place_columns()

    def _place_columns(self) -> None:
        one = self.app.size.width < TWO_COLUMNS_CELLS
        self.set_class(one, "one")
        self.query_one("#list-column").display = not one or self.column == "list"
        self.query_one("#detail-column").display = not one or self.column == "detail"

    def _go_to(self, column: Column) -> None:
        self.column = column
        self._place_columns()
        self.set_focus(self._list if column == "list" else self._detail)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget in (self._list, self._detail):
            self.column = "list" if event.widget is self._list else "detail"

    def on_screen_suspend(self) -> None:
        self.query_one("#failures-keys", KeyBar).offer(())

    def on_screen_resume(self) -> None:
        self._show_bars()

    # What can be done

    @property
    def situation(self) -> Situation:
        """What decides which actions can be taken."""
        return Situation(screen=self.NAME, has_text=True)

    def action_do(self, action_id: str) -> None:
        """Take an action of the registry, or say why it cannot be taken."""
        self.query_one("#failures-keys", KeyBar).clear_notice()
        why = BY_ID[action_id].why_not(self.situation)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self._workbench.main.commands.perform(action_id, self._workbench.main)

    def open(self) -> None:
        """Go to the run under the cursor; fold or unfold a cause; show the table."""
        row = self.state.selected
        if self.state.record is not None:
            self.dismiss(self.state.record)
        elif row is not None and row.group is not None and self.column == "list":
            self._fold(not self.state.is_folded(row.group))
        else:
            self._go_to("detail")

    def sideways(self, step: int) -> None:
        """Fold (-1) or unfold (1) a cause; in the other column, scroll the table."""
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

    def other_column(self) -> None:
        """Go to the other column."""
        self._go_to("detail" if self.column == "list" else "list")

    def back(self) -> None:
        """Leave the filter, then the advice, then the screen."""
        if self._filtering or self.state.filter:
            self._close_filter(keep=False)
        elif self.column == "detail":
            self._go_to("list")
        else:
            self.dismiss()

    def help(self) -> None:
        """Show the keys."""
        self.app.push_screen(HelpScreen(self.situation))

    # Filter

    @property
    def _filter(self) -> Input:
        return self.query_one("#failures-filter", Input)

    @property
    def _filtering(self) -> bool:
        return self.focused is self._filter

    def open_filter(self) -> None:
        """Type to filter the runs."""
        self._go_to("list")
        box = self._filter
        box.value, box.display = self.state.filter, True
        self.set_focus(box)

    @on(Input.Changed, "#failures-filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        if self._filtering:
            self.state.set_filter(event.value)
            self._show_state()

    @on(Input.Submitted, "#failures-filter")
    def _filter_submitted(self) -> None:
        self._close_filter(keep=True)

    def _close_filter(self, *, keep: bool) -> None:
        self._filter.display = False
        if not keep:
            self.state.set_filter("")
        self._go_to("list")
        self._show_state()
