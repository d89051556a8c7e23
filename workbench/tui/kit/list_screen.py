"""A screen with a filtered list, and the details of the selected row beside or below the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from workbench.show.spans import Line, Message, natural_cells, title_line
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.rows import Detail, Head, ListState, MarkedState, RowsView
from workbench.tui.kit.side_screen import ColumnsScreen, FilterScreen
from workbench.tui.kit.stage import Answer
from workbench.tui.kit.strips import Bar

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

STACKED_ROWS = 18
"""The minimum screen height for details below a list without room beside it."""


HEAD_ROWS = 4
"""The maximum number of rows of the head on a low screen. On a higher screen, the head takes a quarter of the
height."""


MEASURED_ROWS = 500
"""The number of rows, from the first, measured to find the width of the list."""

State = TypeVar("State", bound=ListState[Any])
Row = TypeVar("Row")


class ListScreen(ColumnsScreen[Answer], FilterScreen[Answer], Generic[Answer, State]):
    """A filtered list with the details of the selected row.

    On a narrow screen, list and details share one place, and one of them is visible. With `CAN_STACK`, the details are
    below the list instead if the screen has at least `STACKED_ROWS` rows."""

    DEFAULT_CSS = """
    ListScreen Head { height: auto; }
    ListScreen #list-column { width: 58%; max-width: 100%; }
    ListScreen.stacked #columns { layout: vertical; }
    ListScreen.stacked #list-column { width: 100%; max-width: 100%; height: 1fr; }
    ListScreen.stacked #detail-column { width: 100%; height: 1fr; border-left: none; border-top: solid $border; }
    """
    TWO_COLUMNS_CELLS = 130
    LIST_SHARES: ClassVar[tuple[float, float]] = (0.45, 0.66)
    """The minimum and maximum share of the screen's width for the list. The rows decide the width in between."""
    CAN_STACK: ClassVar[bool] = True
    CLICK_ACTION: ClassVar[str] = "open"
    """The action of a click on the selected row, as an id without the name of the screen."""
    FILTER_PLACEHOLDER: ClassVar[str] = ""
    """The placeholder of the filter. It names the searched columns."""

    state: State

    def __init__(self, app: Workbench, state: State) -> None:
        super().__init__(app)
        self.state = state
        self._measured = (0, 0, 0)
        """The last measurement: screen width, number of rows, and the resulting width of the list."""

    def compose(self) -> ComposeResult:
        name = self.NAME
        yield Bar(f"{name}-title")
        yield Head(self._head_lines, f"{name}-head")
        with Horizontal(id="columns"):
            with Vertical(id="list-column"):
                yield RowsView(self.state, self._row_line, self._message, f"{name}-list")
                yield FilterField(placeholder=self.FILTER_PLACEHOLDER)
            with Vertical(id="detail-column"):
                yield self._detail_view()
        yield KeyBar(f"{name}-keys")

    def on_mount(self) -> None:
        self._show_bars()

    def _detail_view(self) -> Detail:
        return Detail(self._detail_lines, f"{self.NAME}-detail")

    def _row_line(self, index: int, width: int) -> Line:
        raise NotImplementedError

    def _row_cells(self, index: int, width: int) -> int:
        return natural_cells(self._row_line(index, width))

    def _message(self) -> Message:
        raise NotImplementedError

    def _detail_lines(self, width: int) -> Sequence[Line]:
        raise NotImplementedError

    def _head_lines(self, width: int) -> Sequence[Line]:
        return ()

    def _title(self) -> tuple[Line, Sequence[Line]]:
        """Return the left part of the title, and texts for its right part, longest first.

        The title shows the longest text that fits."""
        raise NotImplementedError

    def _refusals(self) -> Mapping[str, str]:
        """Return the actions that are unavailable on the selected row: the reason of each, by action id."""
        return {}

    @property
    def situation(self) -> Situation:
        return Situation(has_text=True, typing="a filter" if self._filtering else None, refusals=self._refusals())

    @property
    def _list(self) -> RowsView:
        return self.query_one(f"#{self.NAME}-list", RowsView)

    @property
    def _detail(self) -> Detail:
        return self.query_one(f"#{self.NAME}-detail", Detail)

    @property
    def _is_one_column(self) -> bool:
        return super()._is_one_column and not (self.CAN_STACK and self.app.size.height >= STACKED_ROWS)

    @property
    def _head_rows(self) -> int:
        return max(HEAD_ROWS, self.app.size.height // 4)

    def _place_columns(self) -> None:
        self.set_class(self.app.size.width < self.TWO_COLUMNS_CELLS and not self._is_one_column, "stacked")
        self.query_one(Head).styles.max_height = self._head_rows
        super()._place_columns()
        self._set_list_width(anew=True)

    def _set_list_width(self, *, anew: bool = False) -> None:
        # The list's width is measured again only if the number of rows changed, and it never shrinks while the screen
        # keeps its width. The details therefore stay in place while the user filters or folds the list.
        column, width, rows = self.query_one("#list-column"), self.app.size.width, len(self.state.rows)
        if self.has_class("one") or self.has_class("stacked"):
            column.styles.width = None
        elif rows and (anew or (width, rows) != self._measured[:2]):
            least, most = round(self.LIST_SHARES[0] * width), round(self.LIST_SHARES[1] * width)
            measured = range(min(rows, MEASURED_ROWS))
            needed = max(self._row_cells(index, most - 1) for index in measured) + 1
            before = self._measured[2] if width == self._measured[0] else least
            self._measured = width, rows, min(max(needed, before), most)
            column.styles.width = self._measured[2]

    def _show_state(self, *, cursor_moved: bool = True) -> None:
        self._set_list_width()
        self._list.move_cursor(self.state.cursor)
        self._detail.rebuild_lines(from_top=cursor_moved)
        self._show_bars()

    def _show_bars(self) -> None:
        left, ends = self._title()
        self.query_one(f"#{self.NAME}-title", Bar).set_line(lambda width: title_line(left, ends, width))
        super()._show_bars()

    @on(RowsView.Moved)
    def _moved(self) -> None:
        self._show_state()

    @on(RowsView.Opened)
    def _opened(self) -> None:
        self.action_do(f"{self.NAME}.{self.CLICK_ACTION}")

    def _focus_list(self) -> None:
        self._go_to("list")

    @action("esc", "Leave the filter, the details or the screen", label="back")
    def do_back(self) -> None:
        """Go back by one step: end the filter, or leave the details, or close the screen."""
        if self._filtering or self.state.filter:
            self._close_filter(keep=False)
        else:
            super().do_back()


Marking = TypeVar("Marking", bound=MarkedState[Any])


class MarkingScreen(ListScreen[None, Marking], Generic[Marking, Row]):
    """A list in which the user marks two rows to compare them."""

    MARK_NOTICE: ClassVar[str]
    """The notice after the first mark. It names the effect of a second mark."""

    @action("space", "Mark it; mark two to compare them", label="mark")
    def do_mark(self) -> None:
        """Mark or unmark the selected row. The second marked row opens the comparison."""
        self.state.mark()
        pair: tuple[Row, Row] | None = self.state.pair
        if pair is not None:
            self.state.unmark()
        elif self.state.marked:
            self.announce(f"Marked: {self.MARK_NOTICE}")
        self._show_state(cursor_moved=False)
        if pair is not None:
            self._open_pair(*pair)

    def _open_pair(self, earlier: Row, later: Row) -> None:
        raise NotImplementedError

    @action("esc", "Leave the filter, the marks, the details or the screen", label="back")
    def do_back(self) -> None:
        """Go back by one step: end the filter, or remove the marks, or leave the details, or close the screen."""
        # Each key press goes back by one step. Marks are removed before the screen is closed, but after the filter has
        # ended.
        if self.state.marked and not self._filtering and not self.state.filter and self.column == "list":
            self.state.unmark()
            self._show_state(cursor_moved=False)
        else:
            super().do_back()
