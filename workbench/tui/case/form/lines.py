"""Lays out a row of a form: the position of each cell, with notes of the schema and the suite below."""

from __future__ import annotations

from rich.cells import cell_len

from workbench.authoring.form.cells import lists_values
from workbench.authoring.form.row import Cell, CellKind, FormRow
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import TAB
from workbench.show.spans import (
    Line,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    cut_middle,
    padded,
    plain,
    signed,
    wrap,
    wrap_line,
)
from workbench.show.visible import one_line, visible
from workbench.suite.problems import Problem
from workbench.tui.kit.typed_text import value_line

NARROW_COLUMN = 11
"""Cells of the labels in a narrow pane: enough for those that most cases have."""
MAX_LINES = 8
"""The maximum lines of one value. A field over it shows everything."""

MAX_CHARS = 4_000
"""The maximum of a line of text that is processed, so that a megabyte costs no more than a screen."""

MIN_ROOM_CELLS = 12
"""The minimum width of a value next to what precedes it; otherwise it goes below."""

LONG_TEXT_ROOM = 40
"""The width that a field for long text wants; otherwise it goes below the label."""

_ROLES: dict[CellKind, Role] = {
    "number": "number",
    "yes_no": "literal",
    "optional": "literal",
    "required": "literal",
    "choice": "literal",
    "tool": "tool",
    "key": "key",
    "one_key": "key",
    "check": "accent",
    "weight": "number",
    "args": "literal",
}


_VALUES: frozenset[CellKind] = frozenset({"expected", "value", "option"})


@dataclass(frozen=True)
class Spot:
    """The position of a cell in the lines of its row: the line, the first screen cell, and the width."""

    line: int
    start: int
    width: int


@dataclass(frozen=True)
class Opened:
    """A field that is open over a cell: its height, and why its text is invalid, if so."""

    cell: int
    height: int = 1
    refused: str = ""


@dataclass(frozen=True)
class RowLines:
    """A row laid out. `spots` has a position for each cell, including hidden ones."""

    lines: tuple[Line, ...]
    spots: tuple[Spot, ...]


def lay_out(row: FormRow, width: int, active: int | None = None, opened: Opened | None = None) -> RowLines:
    """Lay out a row in at most `width` cells. `active` is the cell that keys apply to."""
    page = _Page(row, width, active, opened)
    page.head()
    for index in range(len(row.cells)):
        page.cell(index)
    page.below()
    return RowLines(tuple(tuple(line) for line in page.lines), tuple(page.spots))


class _Page:
    """Builds the lines of one row."""

    def __init__(self, row: FormRow, width: int, active: int | None, opened: Opened | None) -> None:
        self.row, self.width, self.active, self.opened = row, width, active, opened
        self.lines: list[list[Span]] = [[Span(" " * (row.indent + 1))]]
        self.spots: list[Spot] = []
        self.used = row.indent + 1
        """The used width of the last line."""

    def head(self) -> None:
        """Add the label and the note after it."""
        row = self.row
        roles: dict[str, Role] = {"section": "heading", "item": "muted", "more": "accent"}
        role: Role = "muted" if row.absent else roles.get(row.kind, "key")
        if row.label:
            # Where there is little room, values matter more than their column: longer labels stick out of it.
            column = row.label_cells if self.width >= 3 * row.label_cells else min(row.label_cells, NARROW_COLUMN)
            label = cut_middle(one_line(row.label), max(self.width // 2, 8))
            self._add(padded(label, max(column, cell_len(label))), role)
            self._add(" " if row.kind == "item" else "  ", "text")
        if row.note:
            self._add(cut(row.note, self.width - self.used), "muted")

    def cell(self, index: int) -> None:
        """Add one cell, after what is there or below it."""
        cell = self.row.cells[index]
        if index and not self.row.widths[index - 1 : index] and self.used + 2 < self.width:
            self._add("  ", "text")
        if self.opened is not None and self.opened.cell == index:
            self._reserve(cell)
            return
        if self.opened is not None and self.opened.cell < index:
            self.spots.append(Spot(len(self.lines) - 1, self.used, 0))
            return
        line = self._shown(cell)
        text = plain(line)
        last = index == len(self.row.cells) - 1 or cell.kind in ("expected", "value")
        column = self.row.widths[index] if index < len(self.row.widths) else 0
        lead = ""
        if cell.kind == "weight":
            if cell.absent and (self.active is None or self.used + 6 > self.width):
                self.spots.append(Spot(len(self.lines) - 1, self.used, 0))
                return
            lead = "" if cell.absent else "weight "
            if self.used + len(lead) + cell_len(text) > self.width:
                self._break()
        elif last and self.used + min(cell_len(text), MIN_ROOM_CELLS) > self.width:
            self._break()
        if lead:
            self._add(lead, "muted")
        if self.active == index and len(self.row.cells) > 1:
            line = (Span(text or GLYPHS.dot, "badge"),)
        if last and cell.kind != "weight":
            self._flow(cell, line)
        else:
            room = max(self.width - self.used, 1)
            line = cut_line(line, min(room, max(self.width // 3, 6)))
            self.spots.append(Spot(len(self.lines) - 1, self.used, cells(line)))
            self._add_line(line)
            if column:
                self._add(" " * max(min(column, self.width // 3) - cells(line), 0) + "  ", "text")

    def below(self) -> None:
        """Add why the text is invalid, what the schema refuses, and problems."""
        indent = min(self.row.indent + 3, self.width // 3)
        if self.opened is not None and self.opened.refused:
            self._paragraph(GLYPHS.failed, self.opened.refused, "error", indent)
        for mark in self.row.marks:
            self._paragraph(GLYPHS.warned, mark, "warned", indent)
        for problem in self.row.problems:
            role: Role = "error" if problem.severity == "error" else "warned"
            self._paragraph(_sign(problem), problem.message, role, indent)
            if problem.hint:
                self._paragraph(" ", problem.hint, "muted", indent)

    def _shown(self, cell: Cell) -> Line:
        """Return the content of a cell that is not being edited."""
        if cell.absent or (not cell.text and cell.shown):
            return (Span(one_line(cell.shown), "muted"),)
        if cell.kind in ("lines", "json"):
            return (Span(cell.text, "text"),)
        text = one_line(cell.text[:MAX_CHARS])
        if cell.kind in _VALUES:
            return value_line(text, several=lists_values(self.row.check))
        return (Span(text, "muted" if cell.kind == "check" and text == "is" else _ROLES.get(cell.kind, "text")),)

    def _flow(self, cell: Cell, line: Line) -> None:
        """Add a text that may wrap, aligned with its beginning."""
        start, room = self.used, max(self.width - self.used, 1)
        rows = [(Span(cut(plain(line), room), line[0].role),)] if cell.absent else _rows(cell, line, room)
        self.spots.append(Spot(len(self.lines) - 1, start, max(cells(rows[0]), 1)))
        self._add_line(rows[0])
        for row in rows[1:]:
            self.lines.append([Span(" " * start), *row])
        if len(rows) > 1:
            self.used = self.width

    def _reserve(self, cell: Cell) -> None:
        """Reserve space for the field: the rest of the line, or lines below it."""
        assert self.opened is not None
        wanted = LONG_TEXT_ROOM if self.opened.height > 1 else MIN_ROOM_CELLS
        if self.width - self.used < wanted and self.used > self.row.indent + 3:
            self._break()
        self.spots.append(Spot(len(self.lines) - 1, self.used, max(self.width - self.used, 1)))
        self.lines += ([] for _ in range(self.opened.height - 1))
        self.used = self.width

    def _break(self) -> None:
        indent = min(self.row.indent + 3, self.width // 3)
        self.lines.append([Span(" " * indent)])
        self.used = indent

    def _add(self, text: str, role: Role) -> None:
        self.lines[-1].append(Span(text, role))
        self.used += cell_len(text)

    def _add_line(self, line: Line) -> None:
        self.lines[-1] += line
        self.used += cells(line)

    def _paragraph(self, sign: str, text: str, role: Role, indent: int) -> None:
        self.lines += map(list, signed(sign, text, role, max(self.width, indent + 10), indent))


def _rows(cell: Cell, line: Line, room: int) -> list[Line]:
    """Return the rows of a content, at most `MAX_LINES`. The last one counts the hidden ones."""
    if cell.kind in _VALUES:
        rows = wrap_line(line, room)
        return rows if len(rows) <= MAX_LINES else [*rows[: MAX_LINES - 1], _more(0, room)]
    text, role = plain(line), line[0].role if line else "text"
    paragraphs = text.split("\n")
    rows = []
    for at, paragraph in enumerate(paragraphs):
        # Only what can be shown is processed: a megabyte costs no more than a screen.
        shown = wrap(visible(paragraph[: room * (MAX_LINES + 1)].replace("\t", TAB)), room)
        rows += ((Span(row, role),) for row in shown)
        if len(rows) > MAX_LINES:
            return [*rows[: MAX_LINES - 1], _more(len(paragraphs) - at - 1, room)]
    return rows


def _more(left: int, room: int) -> Line:
    """Return the note in place of hidden lines."""
    more = f"{counted(left, 'more line')}, " if left else ""
    return (Span(cut(f"{GLYPHS.running} {more}Enter shows all", room), "muted"),)


def _sign(problem: Problem) -> str:
    return GLYPHS.error if problem.severity == "error" else GLYPHS.warned
