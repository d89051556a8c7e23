"""A row of a form as lines on the screen: where each of its cells stands, what the schema and the suite say below."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from workbench.authoring.form.row import Cell, CellKind, FormRow
from workbench.reports.visible import one_line, visible
from workbench.suite.numerals import counted
from workbench.suite.problems import Problem
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.growing_text import TAB
from workbench.tui.lines.spans import Line, Role, Span, cut, padded, wrap

MOST_LINES = 8
"""Lines of one value; a field over it shows all."""

MOST_CHARACTERS = 4_000
"""Of a text of one line: a megabyte costs no more than a screen."""

LEAST_ROOM = 12
"""Cells a value gets beside what stands before it; with less it goes below."""

LONG_TEXT_ROOM = 40
"""Cells a field for long text wants; with less it goes below the label."""

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


@dataclass(frozen=True)
class Spot:
    """Where a cell stands in the lines of its row: the line, the first cell of the screen, and how many."""

    line: int
    start: int
    width: int


@dataclass(frozen=True)
class Opened:
    """A field that is open over a cell: how many lines it takes, and why what stands in it is not taken over."""

    cell: int
    height: int = 1
    refused: str = ""


@dataclass(frozen=True)
class RowLines:
    """A row laid out. `spots` has one place for each cell; of one that is not shown, where it would stand."""

    lines: tuple[Line, ...]
    spots: tuple[Spot, ...]


def lay_out(row: FormRow, width: int, active: int | None = None, opened: Opened | None = None) -> RowLines:
    """The lines of a row, at most `width` cells wide; `active` is the cell that the keys are about."""
    page = _Page(row, width, active, opened)
    page.head()
    for index in range(len(row.cells)):
        page.cell(index)
    page.below()
    return RowLines(tuple(tuple(line) for line in page.lines), tuple(page.spots))


class _Page:
    """The lines of one row while they are written."""

    def __init__(self, row: FormRow, width: int, active: int | None, opened: Opened | None) -> None:
        self.row, self.width, self.active, self.opened = row, width, active, opened
        self.lines: list[list[Span]] = [[Span(" " * (row.indent + 1))]]
        self.spots: list[Spot] = []
        self.used = row.indent + 1
        """Cells of the last line that are taken."""

    def head(self) -> None:
        """The label, and what is said behind it."""
        row = self.row
        roles: dict[str, Role] = {"section": "heading", "item": "muted", "more": "accent"}
        role: Role = "muted" if row.absent else roles.get(row.kind, "key")
        if row.label:
            room = max(self.width // 2, 8)
            self._add(padded(one_line(row.label), min(max(row.label_cells, cell_len(row.label)), room)), role)
            self._add(" " if row.kind == "item" else "  ", "text")
        if row.note:
            self._add(cut(row.note, self.width - self.used), "muted")

    def cell(self, index: int) -> None:
        """One cell, behind what is there or below it."""
        cell = self.row.cells[index]
        if index and not self.row.widths[index - 1 : index] and self.used + 2 < self.width:
            self._add("  ", "text")
        if self.opened is not None and self.opened.cell == index:
            self._reserve(cell)
            return
        if self.opened is not None and self.opened.cell < index:
            self.spots.append(Spot(len(self.lines) - 1, self.used, 0))
            return
        text, role = _shown(cell)
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
        elif last and self.used + min(cell_len(text), LEAST_ROOM) > self.width:
            self._break()
        if lead:
            self._add(lead, "muted")
        if self.active == index and len(self.row.cells) > 1:
            role, text = "badge", text or GLYPHS.dot
        if last and cell.kind != "weight":
            self._flow(cell, text, role)
        else:
            room = max(self.width - self.used, 1)
            text = cut(text, min(room, max(self.width // 3, 6)))
            self.spots.append(Spot(len(self.lines) - 1, self.used, cell_len(text)))
            self._add(text, role)
            if column:
                self._add(" " * max(min(column, self.width // 3) - cell_len(text), 0) + "  ", "text")

    def below(self) -> None:
        """Why what is typed is not taken over, what the schema refuses, and the problems."""
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

    def _flow(self, cell: Cell, text: str, role: Role) -> None:
        """A text that may go on for some lines, each below the beginning of the first."""
        start, room = self.used, max(self.width - self.used, 1)
        rows = [cut(text, room)] if cell.absent else _rows(cell, text, room)
        self.spots.append(Spot(len(self.lines) - 1, start, max(cell_len(rows[0]), 1)))
        self._add(rows[0], role)
        for row in rows[1:]:
            self.lines.append([Span(" " * start), Span(row, role)])
        if len(rows) > 1:
            self.used = self.width

    def _reserve(self, cell: Cell) -> None:
        """Room for the field: the rest of the line, or lines below it."""
        assert self.opened is not None
        wanted = LONG_TEXT_ROOM if self.opened.height > 1 else LEAST_ROOM
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

    def _paragraph(self, sign: str, text: str, role: Role, indent: int) -> None:
        for at, row in enumerate(wrap(one_line(text), max(self.width - indent - 2, 8))):
            self.lines.append([Span(" " * indent), Span(f"{sign if at == 0 else ' '} {row}", role)])


def _shown(cell: Cell) -> tuple[str, Role]:
    """What stands in a cell while it is not edited."""
    if cell.absent or (not cell.text and cell.shown):
        return one_line(cell.shown), "muted"
    if cell.kind in ("lines", "json"):
        return cell.text, "text"
    text = one_line(cell.text[:MOST_CHARACTERS])
    if cell.kind in ("expected", "value", "option"):
        return text, _value_role(text)
    return text, "muted" if cell.kind == "check" and text == "is" else _ROLES.get(cell.kind, "text")


def _value_role(text: str) -> Role:
    if text in ("true", "false"):
        return "literal"
    digits = text.replace("..", "").lstrip("+-").replace(".", "", 1)
    return "number" if digits.isdigit() else "string"


def _rows(cell: Cell, text: str, room: int) -> list[str]:
    """The rows of a text, at most `MOST_LINES`; the last one says how many are not shown."""
    paragraphs = text.split("\n")
    rows: list[str] = []
    for at, paragraph in enumerate(paragraphs):
        # No more of it than can be shown: a megabyte costs no more than a screen.
        rows += wrap(visible(paragraph[: room * (MOST_LINES + 1)].replace("\t", TAB)), room)
        if len(rows) > MOST_LINES:
            left = len(paragraphs) - at - 1
            more = f"{counted(left, 'more line')}, " if left else ""
            return [*rows[: MOST_LINES - 1], cut(f"{GLYPHS.running} {more}Enter shows all", room)]
    return rows


def _sign(problem: Problem) -> str:
    return GLYPHS.error if problem.severity == "error" else GLYPHS.warned
