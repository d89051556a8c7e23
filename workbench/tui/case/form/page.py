"""The content and layout of a form: its rows, the position of each cell, the selected one, and the open field."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate, chain

from rich.cells import cell_len

from workbench.authoring.document import HEAD, Document
from workbench.authoring.form.cells import class_named, lists_values
from workbench.authoring.form.row import Cell, CellKind, FormRow, FormSource
from workbench.authoring.form.row_changes import Adding, adding, item_of
from workbench.authoring.form.rows import form_rows, row_at
from workbench.authoring.known_tools import with_own_tools
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import TAB
from workbench.show.spans import (
    EMPTY,
    Line,
    Message,
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
from workbench.suite.problems import Place, Problem, at_line
from workbench.suite.render import Table
from workbench.suite.rules import NO_CASES
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.actions import unless_read_only
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
    """A row laid out.

    `spots` has a position for each cell, including hidden ones."""

    lines: tuple[Line, ...]
    spots: tuple[Spot, ...]


def lay_out(row: FormRow, width: int, active: int | None = None, opened: Opened | None = None) -> RowLines:
    """Lay out a row in at most `width` cells.

    `active` is the cell that keys apply to."""
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
    """Return the rows of a content, at most `MAX_LINES`.

    The last one counts the hidden ones."""
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


_CASE = re.compile(r"cases\[(\d+)\]")

_MESSAGE: Place = ("user",)
"""The place of the message of a case."""

_EXPECTED = ("ordered", "unordered", "expect_no_calls")
"""What is filled in after the message: the first of these that is written, otherwise the first."""


def form_source(
    suite: OpenSuite, index: int, tools: tuple[ToolDefinition, ...] = (), models: Iterable[str] = ()
) -> FormSource | None:
    """Return the form of a case, or of the suite's settings (`HEAD`), `None` while its text is not TOML.

    `models` are additional known names."""
    document = suite.document
    if document.parts is None or index in document.unparsed or not _has(document, index) or _is_nothing(suite):
        return None
    at: Place = () if index == HEAD else ("cases", index)
    header = document.table(HEAD)
    written = header.get("models")
    known = chain(written if isinstance(written, list) else (), models)
    return FormSource(
        document.table(index),
        at,
        header,
        tuple(_in_form(problem) for problem in suite.problems_of(index)),
        tools if index == HEAD else with_own_tools(tools, document.table(index)),
        tuple(name for name in known if isinstance(name, str)),
        document.tags,
    )


def case_of_problem(problem: Problem | None) -> int:
    """Return the index of the case that a problem is about, `HEAD` for everything else."""
    match = _CASE.match(problem.where) if problem is not None else None
    return int(match[1]) if match else HEAD


def why_no_form(suite: OpenSuite, index: int) -> Message:
    """Return why there is no form: what is wrong with the text, and what to do."""
    problems = suite.problems_of(index) or suite.file.errors
    text = problems[0] if problems else None
    reasons: list[str] = [] if text is None else [at_line(text, "Line"), *filter(None, [text.hint])]
    if _is_nothing(suite):
        return tuple((reason, "error" if at == 0 else "muted") for at, reason in enumerate(reasons))
    what = "This file" if suite.document.parts is None else "What the suite says" if index == HEAD else "This case"
    return (
        (f"{what} is not TOML at the moment.", "strong"),
        ("", "text"),
        *((reason, "error" if at == 0 else "muted") for at, reason in enumerate(reasons)),
        ("", "text"),
        (f"o  shows the TOML{unless_read_only(', where you can correct it')}", "text"),
    )


def with_table(document: Document, index: int, table: Table) -> Document:
    """Replace the table of a case, or of the suite's settings (`HEAD`).

    Raises SpliceError for values that TOML does not have."""
    if index != HEAD:
        return document.with_case(index, table)
    before = document.table(HEAD)
    for key in (*before, *(key for key in table if key not in before)):
        if key not in before or key not in table or before[key] is not table[key]:
            document = document.with_header(key, table.get(key))
    return document


def _in_form(problem: Problem) -> Problem:
    """Return a problem with a hint that fits the form."""
    return replace(problem, hint=unless_read_only("n makes the first one")) if problem.message == NO_CASES else problem


def _is_nothing(suite: OpenSuite) -> bool:
    """Return whether there is no editable suite: a missing or unreadable file, or an invalid recording."""
    return suite.is_gone or (suite.why_not_editable is not None and suite.file.suite is None)


def _has(document: Document, index: int) -> bool:
    return index == HEAD or index < len(document.cases)


class FormPage:
    """The rows of one form.

    `row` and `cell` are the position of the cursor.

    While something is added that needs a name first, `adding` is set, and a row with the question is shown below the
    selected one.
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
        """Show a form with the cursor at a place.

        Without a place, the cursor stays where it is if possible."""
        here = self.current.place if self.current is not None else None
        previous = here if place is None else None
        self.source = source
        rows = form_rows(source) if source is not None else []
        typed = place if place and here and len(place) == len(here) else here
        self._is_behind = self.opened is not None and all(row.place != typed for row in rows)
        if self._is_behind:
            return  # the edited row is empty at the moment and disappears when its field is closed
        self.rows = rows
        at = row_at(self.rows, place) if place else None
        if at is None:
            at = next((at for at, row in enumerate(self.rows) if previous and row.place == previous), self.row)
        self.row = min(at, max(len(self.rows) - 1, 0))
        self._clamp()
        self.lay_out()

    @property
    def begins_with_case(self) -> bool:
        """Whether something new here is the first case of the suite, as its form says."""
        source, row = self.source, self.current
        if source is None or row is None or all(problem.message != NO_CASES for problem in source.problems):
            return False
        return isinstance(adding(source, row), str)

    def catch_up(self) -> None:
        """Update rows that were kept only for an open field."""
        if self._is_behind:
            self.show(self.source)

    def resize(self, width: int) -> None:
        """Lay everything out at a different width."""
        if width != self._width:
            self._width = width
            self._known.clear()
            self.lay_out()

    def lay_out(self) -> None:
        """Lay out changed rows."""
        before, self._known = self._known, {}
        self._laid = []
        for at, row in enumerate(self.rows):
            if at == self.row and self.opened is not None:
                is_gap = row.cells[self.opened.cell].is_gap  # that nothing is typed yet is not a mistake
                self._laid.append(lay_out(replace(row, problems=()) if is_gap else row, self._width, None, self.opened))
                continue
            laid = before.get(row) or lay_out(row, self._width)
            self._known[row] = laid
            self._laid.append(laid)
        self._starts = list(accumulate((len(laid.lines) for laid in self._laid), initial=0))

    @property
    def line_count(self) -> int:
        """The number of lines."""
        return self._starts[-1]

    def line(self, index: int, *, marked: bool) -> Line:
        """Return a line.

        With `marked`, the selected cell is highlighted."""
        at = self.row_of(index)
        if at >= len(self.rows):
            return EMPTY
        laid = self._laid[at]
        if marked and at == self.row and self.opened is None:
            laid = lay_out(self.rows[at], self._width, self.cell)
        within = index - self._starts[at]
        return laid.lines[within] if within < len(laid.lines) else EMPTY

    def row_of(self, line: int) -> int:
        """Return the row that a line belongs to."""
        return bisect_right(self._starts, line) - 1

    def lines_of(self, row: int) -> tuple[int, int]:
        """Return the first line of a row, and the one after its last."""
        return self._starts[row], self._starts[row + 1]

    def spot(self, row: int, cell: int) -> Spot:
        """Return the position of a cell: its line in the form, first screen cell and width."""
        marked = row == self.row and self.opened is None
        laid = lay_out(self.rows[row], self._width, self.cell) if marked else self._laid[row]
        spot = laid.spots[cell]
        return Spot(self._starts[row] + spot.line, spot.start, spot.width)

    def cell_at(self, line: int, column: int) -> int:
        """Return the cell at a position on the screen: the last one that begins before it."""
        row = self.row_of(line)
        cells = range(len(self.rows[row].cells))
        spots = [self.spot(row, cell) for cell in cells]
        before = [cell for cell in cells if (spots[cell].line, spots[cell].start) <= (line, column)]
        return before[-1] if before else 0

    @property
    def current(self) -> FormRow | None:
        """The selected row."""
        return self.rows[self.row] if self.row < len(self.rows) else None

    @property
    def current_cell(self) -> Cell | None:
        """The selected cell."""
        row = self.current
        return row.cells[self.cell] if row is not None and self.cell < len(row.cells) else None

    @property
    def first_gap(self) -> int:
        """The first row with a required value that is missing, otherwise the first row."""
        return self._gap or 0

    @property
    def _gap(self) -> int | None:
        return next((at for at, row in enumerate(self.rows) for cell in row.cells if cell.is_gap), None)

    @property
    def start(self) -> int:
        """The row where editing begins: a required value that is missing, otherwise the message, otherwise the first
        row."""
        message = next((at for at, row in enumerate(self.rows) if row.place == _MESSAGE), 0)
        return message if self._gap is None else self._gap

    def go(self, row: int, cell: int | None = None) -> None:
        """Select a row and one of its cells, by default the main one."""
        self.row = min(max(row, 0), max(len(self.rows) - 1, 0))
        self.cell = main_cell(self.rows[self.row]) if cell is None and self.rows else cell or 0
        self._clamp()

    def go_to(self, place: Place) -> None:
        """Select the row of a place, or the nearest enclosing one, if any."""
        at = row_at(self.rows, place)
        if at is not None:
            self.row = at
            self._clamp()

    def go_cell(self, step: int) -> bool:
        """Select the next or previous cell, across rows.

        Returns whether there was one."""
        row, cell = self.row, self.cell + step
        if row >= len(self.rows):  # its row has gone while its field was open
            return False
        while not 0 <= cell < len(self.rows[row].cells):
            row += step
            if not 0 <= row < len(self.rows):
                return False
            cell = 0 if step > 0 else len(self.rows[row].cells) - 1
        self.row, self.cell = row, cell
        return True

    def go_to_value(self) -> bool:
        """Select the value that belongs to the selected name or check.

        Returns whether there is one."""
        row, cell = self.current, self.current_cell
        if row is None or cell is None or cell.kind not in ("key", "check", "one_key"):
            return False
        check = class_named(cell.text) if cell.kind == "check" else None
        if check is not None and check.editor().reads == "nothing":
            return False
        if cell.kind == "key":
            self.cell = main_cell(row)
            return True
        return self.go_cell(1)

    def go_below(self) -> None:
        """Select the row below, unless it is outside of the list that contains this one."""
        row, source = self.current, self.source
        item = item_of(source, row.place) if row is not None and source is not None else None
        below = self.rows[self.row + 1].place if self.row + 1 < len(self.rows) else ()
        if item is None or below[: len(item) - 1] == item[:-1]:
            self.go(self.row + 1)

    def go_to_expected(self) -> bool:
        """Select what is expected, if the message of a case is selected.

        Returns whether it is."""
        row = self.current
        if row is None or row.place != _MESSAGE:
            return False
        at = {row.place[0]: at for at, row in enumerate(self.rows) if len(row.place) == 1}
        written = (key for key in _EXPECTED if key in at and not self.rows[at[key]].absent)
        found = at.get(next(written, _EXPECTED[0]))
        if found is not None:
            self.go(found)
        return found is not None

    def ask(self, adding: Adding) -> None:
        """Show a row that asks what to add, below the argument or list that is selected."""
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
        """Remove the row that asks."""
        if self.adding is not None:
            self.adding = None
            del self.rows[self.row]
            self.row, self.cell = self._asked_at
            self._clamp()

    def _clamp(self) -> None:
        row = self.current
        self.cell = min(self.cell, max(len(row.cells) - 1, 0)) if row is not None else 0


def main_cell(row: FormRow) -> int:
    """Return the main cell of a row: the expected value, otherwise the value, otherwise the first cell."""
    kinds = [cell.kind for cell in row.cells]
    if "expected" in kinds:
        return kinds.index("expected")
    return 1 if len(kinds) == 2 else 0
