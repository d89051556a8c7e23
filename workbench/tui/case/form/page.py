"""A form as it stands on the screen: its rows laid out, the cell that the keys are about, the field that is open."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from workbench.authoring.form.cells import WITHOUT_VALUE
from workbench.authoring.form.row import Cell, FormRow, FormSource
from workbench.authoring.form.row_changes import Adding, item_of
from workbench.authoring.form.rows import form_rows, row_at
from workbench.suite.problems import Place
from workbench.tui.case.form.lines import Opened, RowLines, Spot, lay_out
from workbench.tui.lines.spans import EMPTY, Line


class FormPage:
    """The rows of one form, `row` and `cell` being the place of the cursor.

    While something is added that has to be named first, `adding` is what, and a row that asks stands below the one that
    it is added at.
    """

    def __init__(self) -> None:
        self.source: FormSource | None = None
        self.rows: list[FormRow] = []
        self.row = 0
        self.cell = 0
        self.opened: Opened | None = None
        self.adding: Adding | None = None
        self._asked_at = (0, 0)
        self._is_behind = False
        self._width = 40
        self._laid: list[RowLines] = []
        self._known: dict[FormRow, RowLines] = {}
        self._starts: list[int] = [0]

    def show(self, source: FormSource | None, place: Place | None = None) -> None:
        """Show a form, with the cursor at a place; without one it stays where it is, as far as that is still there."""
        here = self.current.place if self.current is not None else None
        kept = here if place is None else None
        self.source = source
        rows = form_rows(source) if source is not None else []
        typed = place if place and here and len(place) == len(here) else here
        self._is_behind = self.opened is not None and all(row.place != typed for row in rows)
        if self._is_behind:
            return  # the row that is typed in says nothing at the moment: it goes when its field does
        self.rows = rows
        at = row_at(self.rows, place) if place else None
        if at is None:
            at = next((at for at, row in enumerate(self.rows) if kept and row.place == kept), self.row)
        self.row = min(at, max(len(self.rows) - 1, 0))
        self._clamp()
        self.lay_out()

    def catch_up(self) -> None:
        """Show what the form says now, where a row that was typed in stood for what it does not say any more."""
        if self._is_behind:
            self.show(self.source)

    def resize(self, width: int) -> None:
        """Lay everything out for another width in cells."""
        if width != self._width:
            self._width = width
            self._known.clear()
            self.lay_out()

    def lay_out(self) -> None:
        """Lay out what has changed."""
        before, self._known = self._known, {}
        self._laid = []
        for at, row in enumerate(self.rows):
            if at == self.row and self.opened is not None:
                self._laid.append(lay_out(row, self._width, None, self.opened))
                continue
            laid = before.get(row) or lay_out(row, self._width)
            self._known[row] = laid
            self._laid.append(laid)
        self._starts = list(accumulate((len(laid.lines) for laid in self._laid), initial=0))

    @property
    def line_count(self) -> int:
        """Number of lines."""
        return self._starts[-1]

    def line(self, index: int, *, marked: bool) -> Line:
        """A line; `marked` when the cell of the cursor is to be seen."""
        at = self.row_of(index)
        if at >= len(self.rows):
            return EMPTY
        laid = self._laid[at]
        if marked and at == self.row and self.opened is None:
            laid = lay_out(self.rows[at], self._width, self.cell)
        within = index - self._starts[at]
        return laid.lines[within] if within < len(laid.lines) else EMPTY

    def row_of(self, line: int) -> int:
        """The row that a line belongs to."""
        return bisect_right(self._starts, line) - 1

    def lines_of(self, row: int) -> tuple[int, int]:
        """The first line of a row, and the one behind its last."""
        return self._starts[row], self._starts[row + 1]

    def spot(self, row: int, cell: int) -> Spot:
        """Where a cell stands: its line among all, its first cell of the screen, how many."""
        marked = row == self.row and self.opened is None
        laid = lay_out(self.rows[row], self._width, self.cell) if marked else self._laid[row]
        spot = laid.spots[cell]
        return Spot(self._starts[row] + spot.line, spot.start, spot.width)

    def cell_at(self, line: int, column: int) -> int:
        """The cell of a row that a place on the screen belongs to: the last one that begins before it."""
        row = self.row_of(line)
        cells = range(len(self.rows[row].cells))
        spots = [self.spot(row, cell) for cell in cells]
        before = [cell for cell in cells if (spots[cell].line, spots[cell].start) <= (line, column)]
        return before[-1] if before else 0

    @property
    def current(self) -> FormRow | None:
        """The row of the cursor."""
        return self.rows[self.row] if self.row < len(self.rows) else None

    @property
    def current_cell(self) -> Cell | None:
        """The cell of the cursor."""
        row = self.current
        return row.cells[self.cell] if row is not None and self.cell < len(row.cells) else None

    @property
    def first_gap(self) -> int:
        """The first row whose value is needed and not there yet, else the first one."""
        gaps = (at for at, row in enumerate(self.rows) for cell in row.cells if cell.is_gap)
        return next(gaps, 0)

    def go(self, row: int, cell: int | None = None) -> None:
        """Put the cursor on a row, and on one of its cells: without one, on that which is most often edited."""
        self.row = min(max(row, 0), max(len(self.rows) - 1, 0))
        self.cell = main_cell(self.rows[self.row]) if cell is None and self.rows else cell or 0
        self._clamp()

    def go_to(self, place: Place) -> None:
        """Put the cursor on the row of a place, or the nearest one around it, if there is one."""
        at = row_at(self.rows, place)
        if at is not None:
            self.row = at
            self._clamp()

    def go_cell(self, step: int) -> bool:
        """Put the cursor on the next cell (or the one before), of another row where this one has no more; whether there
        was one."""
        row, cell = self.row, self.cell + step
        while not 0 <= cell < len(self.rows[row].cells):
            row += step
            if not 0 <= row < len(self.rows):
                return False
            cell = 0 if step > 0 else len(self.rows[row].cells) - 1
        self.row, self.cell = row, cell
        return True

    def go_to_value(self) -> bool:
        """Put the cursor on the value that belongs to the name or the check in the cell of the cursor; whether there
        is one."""
        row, cell = self.current, self.current_cell
        if row is None or cell is None or cell.kind not in ("key", "check", "one_key"):
            return False
        if cell.kind == "check" and cell.text in WITHOUT_VALUE:
            return False
        if cell.kind == "key":
            self.cell = main_cell(row)
            return True
        return self.go_cell(1)

    def go_below(self) -> None:
        """Put the cursor on the row below, unless that is in no element of the list that this one is in."""
        row, source = self.current, self.source
        item = item_of(source, row.place) if row is not None and source is not None else None
        below = self.rows[self.row + 1].place if self.row + 1 < len(self.rows) else ()
        if item is None or below[: len(item) - 1] == item[:-1]:
            self.go(self.row + 1)

    def ask(self, adding: Adding) -> None:
        """Let a row below the cursor ask what is to be added: below all of the argument or list that it is on."""
        row = self.current
        assert row is not None
        is_option = bool(row.cells) and row.cells[0].kind in ("option", "optional", "required")
        around = row.cells[0].place if is_option else row.place
        at = self.row + 1
        if is_option or row.kind in ("pair", "section"):
            while at < len(self.rows) and self.rows[at].place[: len(around)] == around:
                at += 1
        indent = row.indent + (0 if is_option else 2)
        self.rows.insert(at, FormRow("field", (*row.place, "?"), indent, adding.asks, (Cell("text", ()),)))
        self.adding, self._asked_at = adding, (self.row, self.cell)
        self.row, self.cell = at, 0

    def stop_asking(self) -> None:
        """Take the row that asks away."""
        if self.adding is not None:
            self.adding = None
            del self.rows[self.row]
            self.row, self.cell = self._asked_at
            self._clamp()

    def _clamp(self) -> None:
        row = self.current
        self.cell = min(self.cell, max(len(row.cells) - 1, 0)) if row is not None else 0


def main_cell(row: FormRow) -> int:
    """The cell of a row that is most often edited: what is expected, else the value, else the first."""
    kinds = [cell.kind for cell in row.cells]
    if "expected" in kinds:
        return kinds.index("expected")
    return 1 if len(kinds) == 2 else 0
