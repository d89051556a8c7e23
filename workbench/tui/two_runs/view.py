"""Two runs side by side, as lines with a cursor that goes from difference to difference."""

from __future__ import annotations

from textual import events
from textual.strip import Strip
from textual.widget import Widget

from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.painting import palette_of, strip_of
from workbench.tui.lines.spans import EMPTY, Line
from workbench.tui.two_runs.lines import TWO_COLUMNS_CELLS, PairLines
from workbench.tui.two_runs.state import PairState


class PairHead(Widget):
    """What stands above the lines: a few rows."""

    ALLOW_SELECT = False

    def __init__(self, widget_id: str) -> None:
        super().__init__(id=widget_id)
        self._rows: list[Line] = []

    def show(self, rows: list[Line]) -> None:
        """Show other rows."""
        if rows != self._rows:
            self._rows = rows
            self.styles.height = len(rows)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._rows[y] if y < len(self._rows) else EMPTY
        return strip_of(line, self.size.width, "panel", palette_of(self))


class PairList(LineView):
    """The lines of two runs."""

    def __init__(self, state: PairState, widget_id: str) -> None:
        super().__init__(widget_id)
        self.above: bool | None = None
        """Whether one run stands above the other; `None`: only where there is little room."""
        self._lines = PairLines(state, self.text_width, stacked=False)
        self._begun = False
        """Whether it was there already when it got its size."""

    @property
    def stacked(self) -> bool:
        """Whether one run stands above the other."""
        return self.size.width < TWO_COLUMNS_CELLS if self.above is None else self.above

    def show(self, state: PairState) -> None:
        """Show other runs, or the same ones as they are by now, from their first difference."""
        self._lines = PairLines(state, self.text_width, stacked=self.stacked)
        self._begin()

    def _begin(self) -> None:
        first = self._lines.state.first
        self._go_to(self._lines.state.entry_of(first) if first is not None else 0)

    def to_difference(self, step: int) -> int | None:
        """Go to the next difference, or to the one before; which one that is, from 0."""
        found = self._lines.state.difference_from(self._entry, step)
        if found is None:
            return None
        self._go_to(found[0])
        return found[1]

    def fold(self, folded: bool | None) -> None:
        """Fold what the cursor is on or in, unfold it, or (`None`) turn that round."""
        entry = self._entry
        if not self._lines.turn(entry, folded) and folded:
            around = self._lines.state.fold_at(entry)
            if around is None or not self._lines.turn(around, True):
                return
            entry = around
        offset = self._lines.start_of(entry) - self.top
        self._go_to(entry, max(offset, 0))

    def place(self) -> None:
        """Lay the lines out anew where there is another width, or they are to stand in another way."""
        entry, offset = self._entry, self.cursor - self.top
        self._lines.arrange(self.text_width, stacked=self.stacked)
        if self._begun:
            self._go_to(entry, offset)
        else:
            self._begin()
        self._begun = True

    @property
    def _entry(self) -> int:
        return self._lines.item_at(min(self.cursor, max(self._lines.count - 1, 0))) or 0

    def _go_to(self, entry: int, offset: int | None = None) -> None:
        """Put the cursor on the first line of an entry, `offset` rows below the top."""
        rows = self.size.height // 3 if offset is None else offset
        self.cursor = self._lines.settle(self._lines.start_of(entry), self._reach)
        self.top = max(self.cursor - rows, 0)
        self.move_cursor(self.cursor)

    # Lines

    def line_count(self) -> int:
        return self._lines.count

    def line_at(self, index: int) -> Line:
        return self._lines.line(index)

    def move_cursor(self, index: int) -> None:
        end = index >= self._lines.count - 1
        index = self._lines.settle(min(max(index, 0), self._lines.count - 1), self._reach)
        super().move_cursor(self._lines.count - 1 if end else index)

    def chosen(self, index: int) -> None:
        self.fold(None)

    def on_resize(self, event: events.Resize) -> None:
        self.place()

    @property
    def _reach(self) -> int:
        """So far around what is shown lines are laid out before they are needed."""
        return 2 * max(self.size.height, 1)
