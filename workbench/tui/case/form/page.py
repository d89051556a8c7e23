"""The layout of a form: its rows, their lines, the positions of cells, the cursor, and the open field."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate

from rich.cells import cell_len

from workbench.authoring.document import HEAD, CaseOutline, Document
from workbench.authoring.form.additions import AdditionSearch
from workbench.authoring.form.cells import class_named, lists_values
from workbench.authoring.form.inner_rows import PATH
from workbench.authoring.form.row import Cell, CellKind, FormRow, FormSource
from workbench.authoring.form.row_changes import PendingAddition, item_of
from workbench.authoring.form.rows import form_rows, row_at
from workbench.authoring.known_tools import with_own_tools
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.lazy_lines import TAB
from workbench.show.spans import (
    ELLIPSIS,
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
    sign_paragraph,
    wrap,
    wrap_line,
)
from workbench.show.visible import one_line, visible
from workbench.suite.case_rows import filled_table
from workbench.suite.problems import Place, Problem, message_with_line
from workbench.suite.render import Table
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.events import ToolDefinition
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.kit.edited_text import value_line

NARROW_COLUMN = 11
"""The width of the labels in a narrow pane. Most keys of cases fit."""

MAX_LINES = 8
"""The maximum number of lines of a value outside of its field."""

MAX_CHARS = 4_000
"""The maximum number of characters to lay out per value. A megabyte is laid out as fast as a screen of text."""

MIN_ROOM_CELLS = 12
"""The minimum width of a value beside other cells. A value with less room goes below them."""

LONG_TEXT_ROOM = 40
"""The minimum width of a field of several lines beside its label. Below this width, the field goes below the label."""

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
_LABEL_ROLES: dict[str, Role] = {"section": "heading", "item": "muted", "more": "accent"}

_VALUES: frozenset[CellKind] = frozenset({"expected", "value", "option"})


@dataclass(frozen=True)
class CellPosition:
    """The position of a cell in the lines of its row: the line, the first terminal cell, and the width."""

    line: int
    start: int
    width: int


@dataclass(frozen=True)
class OpenField:
    """An open field over a cell of a row. `refused` is why the text is invalid, "" for valid text."""

    cell: int
    height: int = 1
    refused: str = ""


@dataclass(frozen=True)
class RowLines:
    """The lines of a row, and the position of each cell, including hidden cells."""

    lines: tuple[Line, ...]
    spots: tuple[CellPosition, ...]


def lay_out(row: FormRow, width: int, active: int | None = None, opened: OpenField | None = None) -> RowLines:
    """Lay out a row in at most `width` terminal cells.

    `active` is the selected cell, `None` unless the row is selected."""
    page = _RowLayout(row, width, active, opened)
    page.head()
    for index in range(len(row.cells)):
        page.cell(index)
    page.below()
    return RowLines(tuple(tuple(line) for line in page.lines), tuple(page.spots))


class _RowLayout:
    """The lines of one row while they are built from left to right."""

    def __init__(self, row: FormRow, width: int, active: int | None, opened: OpenField | None) -> None:
        self.row, self.width, self.active, self.opened = row, width, active, opened
        self.lines: list[list[Span]] = []
        if row.above:
            self.lines.append([Span(cut(f" {row.above}", width), "accent")])
        self.lines.append([Span(" " * (row.indent + 1))])
        self.spots: list[CellPosition] = []
        self.used = row.indent + 1
        """The current width of the last line."""

    def head(self) -> None:
        row = self.row
        if row.label:
            column = row.label_cells
            if self.width < 3 * column:
                # Values matter more than aligned columns, so a longer label moves only its own value.
                column = min(column, NARROW_COLUMN)
            label = one_line(row.label)
            if PATH in label:
                column = min(row.label_cells, max(self.width // 2 - row.indent, MIN_ROOM_CELLS))
                label = path_within(label, column)
            label = cut_middle(label, max(self.width // 2, 8))
            role = _LABEL_ROLES.get(row.kind, "key")
            if row.absent:
                role = "muted"
            self._add(padded(label, max(column, cell_len(label))), role)
            self._add(" " if row.kind == "item" else "  ", "text")
        if row.note:
            self._add(cut(row.note, self.width - self.used), "muted")

    def cell(self, index: int) -> None:
        cell = self.row.cells[index]
        if index and not self.row.widths[index - 1 : index] and self.used + 2 < self.width:
            self._add("  ", "text")
        # An open field takes the rest of the line, so later cells are hidden.
        if self.opened is not None and self.opened.cell < index:
            self._spot(0)
            return
        if self.opened is not None and self.opened.cell == index:
            self._reserve()
            return
        line = self._shown(cell)
        text = plain(line)
        if self.active == index and len(self.row.cells) > 1:
            line = (Span(text or GLYPHS.dot, "badge"),)
        if cell.kind == "weight":
            self._weight(index, line, cell_len(text))
        elif index == len(self.row.cells) - 1 or cell.kind in ("expected", "value"):
            if self.used + min(cell_len(text), MIN_ROOM_CELLS) > self.width:
                self._break()
            self._flow(cell, line)
        else:
            if self.used >= self.width:
                self._break()
            self._column(index, line)

    def _weight(self, index: int, line: Line, width: int) -> None:
        """Add a weight, on the next line if there is no room. A default weight is visible only in the selected row."""
        absent = self.row.cells[index].absent
        if absent and (self.active is None or self.used + 6 > self.width):
            self._spot(0)
            return
        lead = "weight "
        if absent:
            lead = ""
        if self.used + len(lead) + width > self.width:
            self._break()
        if lead:
            self._add(lead, "muted")
        self._column(index, line)

    def _column(self, index: int, line: Line) -> None:
        room = max(self.width - self.used, 1)
        line = cut_line(line, min(room, max(self.width // 3, 6)))
        self._spot(cells(line))
        self._add_line(line)
        if index < len(self.row.widths) and self.row.widths[index]:
            column = min(self.row.widths[index], self.width // 3)
            self._add(" " * max(column - cells(line), 0) + "  ", "text")

    def below(self) -> None:
        """Add the lines below the cells: why the typed text is invalid, values that the schema refuses, problems."""
        indent = min(self.row.indent + 3, self.width // 3)
        if self.opened is not None and self.opened.refused:
            self._paragraph(GLYPHS.failed, self.opened.refused, "error", indent)
        for cell in self.row.cells:
            if cell.invalid is not None and self.opened is None:
                self._paragraph(GLYPHS.failed, f"not applied: {cell.invalid.why}", "error", indent)
        for mark in self.row.marks:
            self._paragraph(GLYPHS.warned, mark, "warned", indent)
        for problem in self.row.problems:
            if problem.severity == "error":
                self._paragraph(GLYPHS.error, problem.message, "error", indent)
            else:
                self._paragraph(GLYPHS.warned, problem.message, "warned", indent)
            if problem.hint:
                self._paragraph(" ", problem.hint, "muted", indent)

    def _shown(self, cell: Cell) -> Line:
        if cell.invalid is not None:
            return (Span(one_line(cell.invalid.text[:MAX_CHARS]), "error"),)
        if cell.summary:
            return (Span(cell.summary, "muted"),)
        if cell.absent or (not cell.text and cell.shown):
            return (Span(one_line(cell.shown), "muted"),)
        if cell.kind in ("lines", "json"):
            return (Span(cell.text, "text"),)
        text = one_line(cell.text[:MAX_CHARS])
        if cell.kind in _VALUES:
            return value_line(text, several=lists_values(self.row.check))
        # `is` is the default check. It adds no information, so it is dimmed.
        if cell.kind == "check" and text == "is":
            return (Span(text, "muted"),)
        return (Span(text, _ROLES.get(cell.kind, "text")),)

    def _flow(self, cell: Cell, line: Line) -> None:
        start, room = self.used, max(self.width - self.used, 1)
        rows: list[Line] = [(Span(cut(plain(line), room), line[0].role),)]
        if not cell.absent:
            rows = _rows(cell, line, room)
        self._spot(max(cells(rows[0]), 1))
        self._add_line(rows[0])
        for row in rows[1:]:
            self.lines.append([Span(" " * start), *row])
        if len(rows) > 1:
            self.used = self.width

    def _reserve(self) -> None:
        assert self.opened is not None
        wanted = MIN_ROOM_CELLS
        if self.opened.height > 1:
            wanted = LONG_TEXT_ROOM
        if self.width - self.used < wanted and self.used > self.row.indent + 3:
            self._break()
        self._spot(max(self.width - self.used, 1))
        self.lines += ([] for _ in range(self.opened.height - 1))
        self.used = self.width

    def _spot(self, width: int) -> None:
        self.spots.append(CellPosition(len(self.lines) - 1, self.used, width))

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
        self.lines += map(list, sign_paragraph(sign, text, role, max(self.width, indent + 10), indent))


def _rows(cell: Cell, line: Line, max_width: int) -> list[Line]:
    """Split the content of a cell into at most `MAX_LINES` lines. The last line tells how many lines are left out."""
    if cell.kind in _VALUES:
        rows = wrap_line(line, max_width)
        if len(rows) > MAX_LINES:
            rows[MAX_LINES - 1 :] = [_hidden_lines_note(0, max_width)]
        return rows
    text = plain(line)
    role: Role = "text"
    if line:
        role = line[0].role
    paragraphs = text.split("\n")
    rows = []
    for at, paragraph in enumerate(paragraphs):
        # Only visible text is processed, so a megabyte takes no longer than a screen.
        shown = wrap(visible(paragraph[: max_width * (MAX_LINES + 1)].replace("\t", TAB)), max_width)
        rows += ((Span(row, role),) for row in shown)
        if len(rows) > MAX_LINES:
            return [*rows[: MAX_LINES - 1], _hidden_lines_note(len(paragraphs) - at - 1, max_width)]
    return rows


def _hidden_lines_note(hidden_count: int, max_width: int) -> Line:
    """Return the line that stands for `hidden_count` lines that are left out. The count is 0 if it is unknown."""
    more = ""
    if hidden_count:
        more = f"{counted(hidden_count, 'more line')}, "
    return (Span(cut(f"{GLYPHS.running} {more}Enter shows all", max_width), "muted"),)


def path_within(path: str, width: int) -> str:
    """Shorten a path to `width` cells. The beginning is cut, because the end names the value."""
    short, rest = path, path
    while cell_len(short) > width and PATH in rest:
        rest = rest.partition(PATH)[2]
        short = ELLIPSIS + rest
    return cut_middle(short, width)


_CASE = re.compile(r"cases\[(\d+)\]")

_MESSAGE: Place = ("user",)
"""The place of the message of a case."""

_FIRST_WORDS: tuple[Place, ...] = (("user", "messages", 0), ("user", "goal"))
"""The places where a conversation is edited first: the first message of its script, or the goal of its user."""

_EXPECTED = ("ordered", "unordered", "expect_no_calls")
"""The keys of expectations. After the message, the cursor goes to the first of these keys in the case."""


def form_source(
    suite: OpenSuite, index: int, tools: tuple[ToolDefinition, ...] = (), models: Iterable[str] = ()
) -> FormSource | None:
    """Return the form of a case, or of the suite's settings (`HEAD`). Return `None` if the text is not valid.

    `models` are names of models to complete, in addition to the models of the suite."""
    document = suite.document
    if document.parts is None or index in document.unparsed or index >= len(document.cases) or _is_uneditable(suite):
        return None
    at: Place = ()
    header = table = document.table(HEAD)
    if index != HEAD:
        at, table = ("cases", index), document.table(index)
        tools = with_own_tools(tools, table)
    written = header.get("models")
    known = list(models)
    if isinstance(written, list):
        known = [*written, *models]
    return FormSource(
        table,
        at,
        header,
        tuple(map(_with_form_hint, suite.problems_of(index))),
        tools,
        tuple(name for name in known if isinstance(name, str)),
        document.tags,
    )


def row_source(suite: OpenSuite, outline: CaseOutline, tools: tuple[ToolDefinition, ...]) -> FormSource | None:
    """Return the form of a case that is a row of a table file. Column names are replaced by the row's values.

    Return `None` if the case has no form."""
    source = form_source(suite, outline.index, tools)
    if source is None or suite.file.suite is None:
        return source
    try:
        table = filled_table(suite.file.case_of(outline.index, outline.id))
    except ValueError:
        # TOML has no null. If a row holds null, the form shows the names of columns instead of values.
        return source
    return replace(source, table=table)


def case_of_problem(problem: Problem | None) -> int:
    """Return the index of the case with a problem, or `HEAD` for a problem outside of cases."""
    if problem is None:
        return HEAD
    match = _CASE.match(problem.where)
    if match is None:
        return HEAD
    return int(match[1])


def why_no_form(suite: OpenSuite, index: int) -> Message:
    """Return the message shown in place of a form: the first problem of the text, and how to correct it."""
    reasons: list[tuple[str, Role]] = []
    problems = suite.problems_of(index) or suite.file.errors
    if problems:
        reasons.append((message_with_line(problems[0], "Line"), "error"))
        if problems[0].hint:
            reasons.append((problems[0].hint, "muted"))
    if _is_uneditable(suite):
        return tuple(reasons)
    subject = "This case"
    if suite.document.parts is None:
        subject = "This file"
    elif index == HEAD:
        subject = "The text before the first case"
    return (
        (f"{subject} is not TOML at the moment.", "strong"),
        ("", "text"),
        *reasons,
        ("", "text"),
        (f"o  shows the TOML{unless_read_only(', where you can correct it')}", "text"),
    )


def with_table(document: Document, index: int, table: Table) -> Document:
    """Return a document in which `table` replaces a case, or the suite's settings (`HEAD`).

    Raises SpliceError if TOML cannot express a value."""
    if index != HEAD:
        return document.with_case(index, table)
    # Only changed keys are written. The other keys keep the user's formatting.
    before = document.table(HEAD)
    for key in (*before, *(key for key in table if key not in before)):
        if key not in before or key not in table or before[key] is not table[key]:
            document = document.with_header(key, table.get(key))
    return document


def _with_form_hint(problem: Problem) -> Problem:
    if problem.kind == "no cases":
        return replace(problem, hint=unless_read_only("n makes the first one"))
    return problem


def _is_uneditable(suite: OpenSuite) -> bool:
    """Return whether the suite cannot be edited because the file is missing or is an invalid recording."""
    return suite.is_gone or (suite.why_not_editable is not None and suite.file.suite is None)


class FormPage:
    """The rows of one form, with the cursor (`row`, `cell`) and the open field.

    While the user types the name of a new element, `adding` describes it, and a row below the cursor asks for the
    name."""

    def __init__(self) -> None:
        self.source: FormSource | None = None
        self.rows: list[FormRow] = []
        self.row = 0
        self.cell = 0
        self.opened: OpenField | None = None
        self.adding: PendingAddition | AdditionSearch | None = None
        self._asked_at = (0, 0)
        self._is_behind = False
        self._row_notice: tuple[Table, int, str] | None = None
        """A line above a row: the form's table, the row, and the text."""
        self._width = 40
        self._row_lines: list[RowLines] = []
        self._known: dict[FormRow, RowLines] = {}
        self._row_starts: list[int] = [0]

    def show(self, source: FormSource | None, place: Place | None = None) -> None:
        """Show a form with the cursor at a place.

        If no place is given, the cursor stays on its row if the row still exists."""
        here: Place | None = None
        if self.current is not None:
            here = self.current.place
        self.source = source
        rows: list[FormRow] = []
        if source is not None:
            rows = form_rows(source)
        # If the new place has as many parts as the place of the open row, the edit renamed the open row.
        typed = here
        if place and here and len(place) == len(here):
            typed = place
        self._is_behind = self.opened is not None and all(row.place != typed for row in rows)
        # The new form has no row for an emptied value. The old rows stay until the field is closed.
        if self._is_behind:
            return
        self.rows = rows
        self._insert_note()
        at: int | None = None
        if place:
            at = row_at(rows, place)
        elif place is None and here:
            at = self.row_at_place(here)
        if at is not None:
            self.row = at
        self._clamp()
        self.lay_out()

    def catch_up(self) -> None:
        """Show the latest version of the form. While a field was open, older rows may have stayed visible."""
        if self._is_behind:
            self.show(self.source)

    def resize(self, width: int) -> None:
        """Lay out all rows at a different width."""
        if width != self._width:
            self._width = width
            self._known.clear()
            self.lay_out()

    def lay_out(self) -> None:
        """Lay out the rows that changed."""
        before, self._known = self._known, {}
        self._row_lines = []
        for at, row in enumerate(self.rows):
            if at == self.row and self.opened is not None:
                # The user is about to type the missing value, so no problem about the missing value is shown.
                if row.cells[self.opened.cell].is_gap:
                    row = replace(row, problems=())
                self._row_lines.append(lay_out(row, self._width, None, self.opened))
                continue
            # An unchanged row keeps its lines, because every typed key lays out the whole form again.
            laid = before.get(row) or lay_out(row, self._width)
            self._known[row] = laid
            self._row_lines.append(laid)
        self._row_starts = list(accumulate((len(laid.lines) for laid in self._row_lines), initial=0))

    @property
    def line_count(self) -> int:
        return self._row_starts[-1]

    def line(self, index: int, *, marked: bool) -> Line:
        """Return a line of the form, with the selected cell highlighted if `marked`."""
        at = self.row_of(index)
        if at >= len(self.rows):
            return EMPTY
        laid = self._row_lines[at]
        if marked:
            laid = self._laid_out(at)
        within = index - self._row_starts[at]
        # The highlight may change the wrapping of a row, so the row may have fewer lines.
        if within < len(laid.lines):
            return laid.lines[within]
        return EMPTY

    def _laid_out(self, row: int) -> RowLines:
        if row == self.row and self.opened is None:
            return lay_out(self.rows[row], self._width, self.cell)
        return self._row_lines[row]

    def row_of(self, line: int) -> int:
        return bisect_right(self._row_starts, line) - 1

    def lines_of(self, row: int) -> tuple[int, int]:
        """Return the index of a row's first line, and the index after its last line."""
        return self._row_starts[row], self._row_starts[row + 1]

    def spot(self, row: int, cell: int) -> CellPosition:
        """Return the position of a cell. The line counts from the first line of the form."""
        spot = self._laid_out(row).spots[cell]
        return CellPosition(self._row_starts[row] + spot.line, spot.start, spot.width)

    def cell_at(self, line: int, column: int) -> int:
        """Return the index of the cell at a position. Between two cells, return the index of the left cell."""
        row, found = self.row_of(line), 0
        for cell in range(len(self.rows[row].cells)):
            spot = self.spot(row, cell)
            if (spot.line, spot.start) <= (line, column):
                found = cell
        return found

    @property
    def current(self) -> FormRow | None:
        if self.row < len(self.rows):
            return self.rows[self.row]
        return None

    @property
    def current_cell(self) -> Cell | None:
        """The selected cell."""
        row = self.current
        if row is None or self.cell >= len(row.cells):
            return None
        return row.cells[self.cell]

    @property
    def first_gap(self) -> int:
        """The index of the first row with a missing required value. 0 if no value is missing."""
        return self._gap or 0

    @property
    def _gap(self) -> int | None:
        for at, row in enumerate(self.rows):
            if any(cell.is_gap for cell in row.cells):
                return at
        return None

    @property
    def start(self) -> int:
        """The index of the row where editing begins: the first missing required value, or else the case's message."""
        gap = self._gap
        if gap is not None:
            return gap
        for place in (*_FIRST_WORDS, _MESSAGE):
            if (row := self.row_at_place(place)) is not None:
                return row
        return 0

    def row_at_place(self, place: Place) -> int | None:
        """Return the index of the row that shows a place in the case, `None` if no row shows it."""
        return next((at for at, row in enumerate(self.rows) if row.place == place), None)

    def go(self, row: int, cell: int | None = None) -> None:
        """Select a row and one cell of the row, by default the main cell."""
        self.row, self.cell = max(row, 0), cell or 0
        self._clamp()
        if cell is None and self.rows:
            self.cell = main_cell(self.rows[self.row])

    def go_to(self, place: Place) -> None:
        """Select the row of a place, or the nearest enclosing row. For a hidden key, select the row that adds keys."""
        at = row_at(self.rows, place)
        if at is None and place:
            at = len(self.rows) - 1
        if at is not None:
            self.row = at
            self._clamp()

    def go_cell(self, step: int) -> bool:
        """Select the next (1) or previous (-1) cell, across rows. Return `False` if there is no such cell."""
        row, cell = self.row, self.cell + step
        # The row may have disappeared while its field was open.
        if row >= len(self.rows):
            return False
        while not 0 <= cell < len(self.rows[row].cells):
            row += step
            if not 0 <= row < len(self.rows):
                return False
            cell = 0
            if step < 0:
                cell = len(self.rows[row].cells) - 1
        self.row, self.cell = row, cell
        return True

    def go_to_value(self) -> bool:
        """From a selected name or check, move to its value. Return `False` if there is no value."""
        row, cell = self.current, self.current_cell
        if row is None or cell is None or cell.kind not in ("key", "check", "one_key"):
            return False
        if cell.kind == "key":
            self.cell = main_cell(row)
            return True
        if cell.kind == "check":
            check = class_named(cell.text)
            if check is not None and check.editor().input_kind in ("nothing", "presence"):
                return False
        return self.go_cell(1)

    def go_below(self) -> None:
        """Select the row below, unless the next row is outside of the selected row's list or table."""
        row = self.current
        if row is None or self.source is None:
            return
        item = item_of(row.place)
        if item is None and row.kind == "pair":
            item = row.place
        below = self.rows[self.row + 1 : self.row + 2]
        if item is None or (below and below[0].place[: len(item) - 1] == item[:-1]):
            self.go(self.row + 1)

    def go_to_expected(self) -> bool:
        """If the cursor is on the message of a case, move it to the case's expectation. Return whether it moved.

        If the case has no expectation, select the row that adds keys."""
        row = self.current
        if row is None or row.place != _MESSAGE:
            return False
        rows: dict[object, int] = {}
        for at, other in enumerate(self.rows):
            if len(other.place) == 1:
                rows[other.place[0]] = at
        wanted = len(self.rows) - 1
        for key in _EXPECTED:
            if key in rows and not self.rows[rows[key]].absent:
                wanted = rows[key]
                break
        self.go(wanted)
        return True

    def ask(self, adding: PendingAddition | AdditionSearch) -> None:
        """Insert a row, below the selected argument or list, that asks for the name of a new element."""
        row = self.current
        assert row is not None
        is_option = bool(row.cells) and row.cells[0].kind in ("option", "optional", "required")
        around, indent = row.place, row.indent + 2
        if row.kind == "more":
            indent = 0
        if is_option:
            around, indent = row.cells[0].place, row.indent
        at = self.row + 1
        if is_option or row.kind in ("pair", "section"):
            while at < len(self.rows) and self.rows[at].place[: len(around)] == around:
                at += 1
        question = FormRow("field", (*row.place, "?"), indent, adding.asks, (Cell("text", ()),))
        self.rows.insert(at, replace(question, label_cells=row.label_cells if row.kind == "more" else 0))
        self.adding, self._asked_at = adding, (self.row, self.cell)
        self.row, self.cell = at, 0

    def stop_asking(self) -> None:
        """Remove the row that asks for a name, and select the previous row."""
        if self.adding is not None:
            self.adding = None
            del self.rows[self.row]
            self.row, self.cell = self._asked_at
            self._clamp()

    def show_above(self, row: int, text: str) -> None:
        """Show a line above a row until the form changes."""
        if self.source is not None and self.rows:
            self._row_notice = (self.source.table, min(row, len(self.rows) - 1), text)
            self._insert_note()
            self.lay_out()

    def _insert_note(self) -> None:
        if self._row_notice is None or self.source is None:
            return
        table, row, text = self._row_notice
        if toml_equal(table, self.source.table):
            self.rows[row] = replace(self.rows[row], above=text)
        else:
            self._row_notice = None

    def _clamp(self) -> None:
        self.row = min(self.row, max(len(self.rows) - 1, 0))
        last_cell = 0
        if self.current is not None:
            last_cell = max(len(self.current.cells) - 1, 0)
        self.cell = min(self.cell, last_cell)


def main_cell(row: FormRow) -> int:
    """Return the index of a row's main cell: the expected value, or else the value, or else the first cell."""
    kinds = [cell.kind for cell in row.cells]
    if "expected" in kinds:
        return kinds.index("expected")
    # In a row of two cells, the second cell is the value of the first.
    if len(kinds) == 2:
        return 1
    return 0
