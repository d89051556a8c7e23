"""The cells of a comparison and their totals, as widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual import events
from textual.message import Message

from workbench.analysis.comparison import ModelTotals, model_totals
from workbench.analysis.side_by_side import totals_on_same_cases
from workbench.show.spans import Line, message_lines
from workbench.show.views.comparison import totals_rows
from workbench.suite.model import Gate
from workbench.tui.comparison.lines import (
    Columns,
    Head,
    columns_of,
    empty_message,
    header_line,
    heads_of,
    names_width,
    row_line,
    totals_line,
)
from workbench.tui.comparison.state import CompareState
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.painting import Bar
from workbench.tui.terminal.theming import Ground

SHARE = 0.05
"""The maximum share of time for totals while runs are active."""

AT_ONCE_S = 0.004
"""The maximum time for one update."""

_FIRST = ("pass rate", "95% interval", "mean score", "gate", "latency p50", "latency p95", "cost")
"""The measures that come first, in case there is little room."""


class ComparedTotals:
    """The totals of each column. `clock` counts seconds.

    Computing thousands of cells takes too long to do it on every event. Each update covers as many columns as time
    allows without delaying keys, the longest outdated first. While runs are active it takes at most `SHARE` of the
    time.
    """

    def __init__(self, state: CompareState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._of: dict[str, ModelTotals] = {}
        """The computed columns, the longest outdated first."""
        self._gates: Mapping[str, Gate] = {}
        self._looked_s = clock()
        self._ahead_s = 0.0
        """By how much the share of time was exceeded."""
        self._models: tuple[str, ...] = ()
        """The columns of `rows`, empty if they have to be rebuilt."""
        self.rows: Sequence[tuple[str, Sequence[str]]] = ()
        """The measures, each with its value for every column."""
        self.floors: dict[str | None, int] = {}
        """The maximum width so far of each column's values and of the names of measures (`None`). It only grows, so
        columns do not jump."""

    @property
    def is_behind(self) -> bool:
        """Whether columns or their cells changed since the last update."""
        return self._models != self._state.models or not self._state.changed.isdisjoint(self._models)

    def add_up(self) -> None:
        """Update the columns that time allows."""
        state, now_s = self._state, self._clock()
        share = SHARE if state.going else 1.0
        self._ahead_s = max(self._ahead_s - share * (now_s - self._looked_s), 0.0)
        self._looked_s = now_s
        if (gates := state.source.gates()) != self._gates:
            self._gates = gates
            state.changed.update(state.models)
        longest_ago = {model: at for at, model in enumerate(self._of)}
        behind = sorted(
            state.changed.intersection(state.models),
            key=lambda model: (longest_ago.get(model, -1), state.models.index(model)),
        )
        while behind and self._ahead_s <= AT_ONCE_S:
            began_s, model = self._clock(), behind.pop(0)
            self._of.pop(model, None)
            self._of[model] = model_totals(model, state.cells(model), gates)
            state.changed.discard(model)
            self._ahead_s += self._clock() - began_s
            self._models = ()
        if self._models == state.models:
            return
        self._models = state.models
        names = {case.suite: case.suite_name for case in state.cases}
        totals = [self._totals(model) for model in state.models]
        # On the same cases they are added up again, which takes time: once nothing runs any more.
        same = None
        if not state.going:
            same = totals_on_same_cases({model: state.cells(model) for model in state.models})
        rows = totals_rows(totals, names, len(state.cases), same)
        self.rows = sorted(rows, key=_place)
        for model, *values in zip((None, *state.models), *((name, *values) for name, values in self.rows), strict=True):
            self.floors[model] = max(self.floors.get(model, 0), *map(len, values))

    def _totals(self, model: str) -> ModelTotals:
        return self._of[model] if model in self._of else model_totals(model, ())


def _place(row: tuple[str, Sequence[str]]) -> int:
    name = "gate" if row[0].startswith("gate") else row[0]
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


KEPT_LINES = 200


class CompareHead(Bar):
    """The names of models above their columns."""

    class Chosen(Message):
        """Posted when the head at a cell is clicked."""

        def __init__(self, x: int) -> None:
            super().__init__()
            self.x = x

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Chosen(event.x))


class CompareTable(LineView):
    """Cases and their cells, one of them selected. Only visible cells are drawn."""

    CURSOR_GROUND: ClassVar[Ground] = "background"
    RESTING_GROUND: ClassVar[Ground] = "background"

    class Moved(Message):
        """Posted when the cursor moves to a different cell."""

    class Opened(Message):
        """Posted when the selected cell is clicked."""

    def __init__(self, state: CompareState, floors: Callable[[], Mapping[str | None, int]], widget_id: str) -> None:
        super().__init__(widget_id)
        self.state = state
        self._floors = floors
        """Returns the minimum widths of columns."""
        self.heads: tuple[Head, ...] = ()
        self.columns = Columns(0, (), (), 0, 0)
        self._names: tuple[object, bool, int] = ((), False, 0)
        """The width of names, and the cases and option that it was computed for."""
        self._lines: dict[int, tuple[tuple[object, ...], Line]] = {}
        """Drawn rows, each with what it depends on."""

    @property
    def has_cursor(self) -> bool:
        return bool(self.state.rows)

    def line_count(self) -> int:
        return len(self.state.rows) or len(message_lines(empty_message(self.state), self.text_width))

    def line_at(self, index: int) -> Line:
        state = self.state
        if not state.rows:
            return message_lines(empty_message(state), self.text_width)[index]
        row, at_cursor = state.rows[index], state.column if index == state.cursor else None
        version = state.version(row.case) if row.case is not None else 0
        base = state.base if state.has_base else None
        looks = (row, version, at_cursor, state.models, self.columns, state.marked, base, state.names_suites)
        cached = self._lines.get(index)
        if cached is None or cached[0] != looks:
            if len(self._lines) > KEPT_LINES:
                self._lines.clear()
            cached = self._lines[index] = looks, row_line(state, row, self.columns, has_cursor=at_cursor is not None)
        return cached[1]

    def show_state(self) -> None:
        """Show the current state, with the cursor visible."""
        self.move_cursor(self.state.cursor)

    def repaint(self) -> None:
        self._lay_out()
        super().repaint()

    def _lay_out(self) -> None:
        state = self.state
        if self._names[0] is not state.cases or self._names[1] != state.names_suites:
            width = names_width(state.cases, with_suites=state.names_suites)
            self._names = state.cases, state.names_suites, width
        self.heads = heads_of(state)
        self.columns = columns_of(
            state, self.heads, self._names[2], self._floors(), self.columns.first, self.text_width
        )

    @property
    def head(self) -> Line:
        """The heads of the columns."""
        return header_line(self.state, self.columns, self.heads)

    def move_cursor(self, index: int) -> None:
        state = self.state
        state.move_to(index, state.column)
        self.cursor = state.cursor
        # A case is never the first visible row if its suite's heading is directly above.
        above = self.cursor > 0 and state.rows[self.cursor - 1].case is None
        height = max(self.size.height, 1)
        self.top = min(max(self.top, self.cursor - height + 1), self.cursor - (above and height > 1))
        self.repaint()

    def move_column(self, column: int) -> None:
        """Move the cursor to a column."""
        self.state.move_to(self.cursor, column)
        self.repaint()
        self.moved()

    def moved(self) -> None:
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Select the clicked cell, or open it if it is selected. The scroll bar works as in any list."""
        event.prevent_default()
        index, state = self.top + event.y, self.state
        if event.x == self.size.width - 1 or index >= len(state.rows):
            super().on_click(event)
            return
        column = self.columns.at(event.x)
        before = state.cursor, state.column
        state.move_to(index, state.column if column is None else column)
        self.show_state()
        self.moved()
        if before == (state.cursor, state.column) and column is not None and state.rows[index].case is not None:
            self.post_message(self.Opened())

    def on_mouse_scroll_left(self, event: events.MouseScrollLeft) -> None:
        event.stop()
        self.move_column(self.state.column - 1)

    def on_mouse_scroll_right(self, event: events.MouseScrollRight) -> None:
        event.stop()
        self.move_column(self.state.column + 1)


class CompareTotals(LineView):
    """The totals of the columns."""

    DEFAULT_CSS = "CompareTotals { height: auto; border-top: solid $border; }"

    def __init__(self, totals: ComparedTotals, table: CompareTable, widget_id: str) -> None:
        super().__init__(widget_id)
        self._totals = totals
        self._table = table

    @property
    def has_cursor(self) -> bool:
        return False

    def line_count(self) -> int:
        return len(self._totals.rows)

    def line_at(self, index: int) -> Line:
        return totals_line(self._totals.rows[index], self._table.columns)

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self.line_count()
