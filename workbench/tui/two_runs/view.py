"""Two runs as lines, with a cursor that jumps between differences."""

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
    """The rows above the lines."""

    ALLOW_SELECT = False

    def __init__(self, widget_id: str) -> None:
        super().__init__(id=widget_id)
        self._rows: list[Line] = []

    def show(self, rows: list[Line]) -> None:
        """Replace the rows."""
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
        """Whether the runs are stacked. `None` stacks them if there is little room."""
        self._lines = PairLines(state, self.text_width, stacked=False)
        self._begun = False
        """Whether the view already had its first size."""

    @property
    def stacked(self) -> bool:
        """Whether the runs are stacked."""
        return self.size.width < TWO_COLUMNS_CELLS if self.above is None else self.above

    def show(self, state: PairState) -> None:
        """Show a comparison, starting at its first difference."""
        self._lines = PairLines(state, self.text_width, stacked=self.stacked)
        self._begin()

    def _begin(self) -> None:
        first = self._lines.state.first
        self._go_to(self._lines.state.entry_of(first) if first is not None else 0)

    def to_difference(self, step: int) -> int | None:
        """Go to the next or previous difference. Returns its index."""
        found = self._lines.state.difference_from(self._entry, step)
        if found is None:
            return None
        self._go_to(found[0])
        return found[1]

    def fold(self, folded: bool | None) -> None:
        """Fold or unfold the entry under the cursor, or the fold that it belongs to. `None` toggles."""
        entry = self._entry
        if not self._lines.turn(entry, folded) and folded:
            around = self._lines.state.fold_at(entry)
            if around is None or not self._lines.turn(around, True):
                return
            entry = around
        offset = self._lines.start_of(entry) - self.top
        self._go_to(entry, max(offset, 0))

    def place(self) -> None:
        """Lay out again after a change of width or arrangement."""
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
        """Lines are laid out this far beyond the visible ones."""
        return 2 * max(self.size.height, 1)
