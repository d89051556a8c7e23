"""A screen of rows that can be filtered, next to or above everything about the row under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from workbench.tui.kit.actions import ListNow, Situation
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.closing import Answer
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.painting import Bar
from workbench.tui.kit.rows import Detail, Head, ListState, MarkedState, RowsView
from workbench.tui.kit.side_screen import ColumnsScreen, FilterScreen
from workbench.tui.kit.stage import Stage
from workbench.tui.lines.prose import Message, title_line
from workbench.tui.lines.spans import Line

STACKED_ROWS = 18
"""From this height on, the detail stands below the list where there is no room beside it."""


HEAD_ROWS = 4
"""The head takes at most so many rows, or a quarter of those there are."""


State = TypeVar("State", bound=ListState[Any])
Row = TypeVar("Row")


class ListScreen(ColumnsScreen[Answer], FilterScreen[Answer], Generic[Answer, State]):
    """A list that can be filtered, and everything about its row next to it. Where there is no room for two columns the
    detail stands below if the screen `STACKS`, and otherwise, or where it is too low for that, in the list's place."""

    DEFAULT_CSS = """
    ListScreen Head { height: auto; }
    ListScreen #list-column { width: 58%; max-width: 120; }
    ListScreen.stacked #columns { layout: vertical; }
    ListScreen.stacked #list-column { width: 100%; max-width: 100%; height: 1fr; }
    ListScreen.stacked #detail-column { width: 100%; height: 1fr; border-left: none; border-top: solid $border; }
    """
    TWO_COLUMNS_CELLS = 130
    STACKS: ClassVar[bool] = True
    CLICKED: ClassVar[str] = "open"
    """What a click on the row under the cursor does: what follows the screen's name in the id of an action."""
    FILTERED_BY: ClassVar[str] = ""
    """What words of the filter are looked for in."""

    state: State

    def __init__(self, stage: Stage, state: State) -> None:
        super().__init__(stage)
        self.state = state

    def compose(self) -> ComposeResult:
        name = self.NAME
        yield Bar(f"{name}-title")
        yield Head(self._head_lines, f"{name}-head")
        with Horizontal(id="columns"):
            with Vertical(id="list-column"):
                yield RowsView(self.state, self._row_line, self._message, f"{name}-list")
                yield FilterField(placeholder=self.FILTERED_BY)
            with Vertical(id="detail-column"):
                yield self._detail_view()
        yield KeyBar(f"{name}-keys")

    def on_mount(self) -> None:
        self._show_bars()

    def _detail_view(self) -> Detail:
        return Detail(self._detail_lines, f"{self.NAME}-detail")

    # What a screen says

    def _row_line(self, index: int, width: int) -> Line:
        """One row of the list."""
        raise NotImplementedError

    def _message(self) -> Message:
        """What stands in the place of rows where there are none."""
        raise NotImplementedError

    def _detail_lines(self, width: int) -> Sequence[Line]:
        """Everything about the row under the cursor."""
        raise NotImplementedError

    def _head_lines(self, width: int) -> Sequence[Line]:
        """What stands below the title, if anything."""
        return ()

    def _title(self) -> tuple[Line, Sequence[Line]]:
        """What stands at the top: the left of it, and what may stand on its right, the longest first."""
        raise NotImplementedError

    def _refusals(self) -> Mapping[str, str]:
        """Why actions cannot be taken on the row under the cursor, by their ids."""
        return {}

    @property
    def situation(self) -> Situation:
        return ListNow(has_text=True, typing="a filter" if self._filtering else None, refuses=self._refusals())

    # What is shown

    @property
    def _list(self) -> RowsView:
        return self.query_one(f"#{self.NAME}-list", RowsView)

    @property
    def _detail(self) -> Detail:
        return self.query_one(f"#{self.NAME}-detail", Detail)

    @property
    def _one_column(self) -> bool:
        return super()._one_column and not (self.STACKS and self.app.size.height >= STACKED_ROWS)

    def _place_columns(self) -> None:
        self.set_class(self.app.size.width < self.TWO_COLUMNS_CELLS and not self._one_column, "stacked")
        self.query_one(Head).styles.max_height = max(HEAD_ROWS, self.app.size.height // 4)
        super()._place_columns()

    def _show_state(self, *, moved: bool = True) -> None:
        self._list.move_cursor(self.state.cursor)
        self._detail.show_anew(from_top=moved)
        self._show_bars()

    def _show_bars(self) -> None:
        left, ends = self._title()
        self.query_one(f"#{self.NAME}-title", Bar).say(lambda width: title_line(left, ends, width))
        super()._show_bars()

    @on(RowsView.Moved)
    def _moved(self) -> None:
        self._show_state()

    @on(RowsView.Opened)
    def _opened(self) -> None:
        self.action_do(f"{self.NAME}.{self.CLICKED}")

    def _to_list(self) -> None:
        self._go_to("list")

    def do_back(self) -> None:
        """Leave the filter, then the detail, then the screen."""
        if self._filtering or self.state.filter:
            self._close_filter(keep=False)
        else:
            super().do_back()


Marking = TypeVar("Marking", bound=MarkedState[Any])


class MarkingScreen(ListScreen[None, Marking], Generic[Marking, Row]):
    """A list of which two rows can be marked, to be put beside each other."""

    MARKED: ClassVar[str]
    """What a second mark does."""

    def do_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away; two that are marked then are put side by side."""
        self.state.mark()
        pair: tuple[Row, Row] | None = self.state.pair
        if pair is not None:
            self.state.unmark()
        elif self.state.marked:
            self.announce(f"Marked: {self.MARKED}")
        self._show_state(moved=False)
        if pair is not None:
            self._take_pair(*pair)

    def _take_pair(self, earlier: Row, later: Row) -> None:
        """Do with two marked rows what marking two is for."""
        raise NotImplementedError

    def do_back(self) -> None:
        """Leave the filter, the marks, the detail, then the screen."""
        if self.state.marked and not self._filtering and not self.state.filter and self.column == "list":
            self.state.unmark()
            self._show_state(moved=False)
        else:
            super().do_back()
