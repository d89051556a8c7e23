"""The table of a comparison and its totals: the layout of columns, the lines, and the widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.message import Message

from workbench.analysis.comparison import Cell, CellKey, ModelTotals, model_totals
from workbench.analysis.measures import COST, LATENCY, PASS_RATE, SCORE
from workbench.analysis.side_by_side import totals_on_same_cases
from workbench.config.agents import AGENT
from workbench.dataclasses import dataclass
from workbench.grading.status import WORST_FIRST, Status, worst_of
from workbench.numerals import counted_of, duration_text
from workbench.providers.built_in import MODEL_SEPARATOR, REPLAY
from workbench.show.glyphs import GLYPHS
from workbench.show.rows import GAP, columns_from, filled, matrix_rooms
from workbench.show.spans import (
    EMPTY,
    Line,
    Role,
    Span,
    cells,
    cut_line,
    cut_middle,
    message_lines,
    padded,
    plain,
)
from workbench.show.spans import Message as Text
from workbench.show.views.cases import Title
from workbench.show.views.comparison import CellRooms, cell_line, totals_rows, weakest_text
from workbench.show.views.user_turns import gave_up_text
from workbench.show.visible import model_label, one_line
from workbench.suite.grading_model import Gate
from workbench.tui.comparison.sources import UNFINISHED, CellState, ComparedCase
from workbench.tui.comparison.state import CompareState, Row
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.strips import Bar
from workbench.tui.terminal.theme import Ground

NAMES_HEAD = "  case"
"""The heading of the first column."""

MORE_CELLS = len(" >12")
"""The width of the number of hidden columns on the right."""

ABOUT_SHARE = 1 / 3
"""The minimum share of the description line for the case and the model of the selected cell."""

LATENCY_CELLS = 6


@dataclass(frozen=True)
class Columns:
    """The layout of the table, in terminal cells.

    `names` is the width of the first column, which has the names of cases. `widths` are the widths of the models'
    columns. Columns `first` to `end` (exclusive) are visible. `part_widths` has, for each column, the widths of the
    parts of a cell."""

    names: int
    part_widths: tuple[CellRooms, ...]
    widths: tuple[int, ...]
    first: int
    end: int

    def start(self, column: int) -> int:
        """Return the start position of a visible column."""
        return self.names + sum(self.widths[self.first : column]) + GAP * (column - self.first + 1)

    def at(self, x: int) -> int | None:
        """Return the index of the column at the cell `x` of a line, `None` for the column of names."""
        if x < self.names:
            return None
        for column in range(self.first, self.end):
            if x < self.start(column) + self.widths[column]:
                return column
        return None


class Head(NamedTuple):
    """The head of a column: a model's name between markers. If there is no room, only the name is cut."""

    before: str
    name: str
    after: str

    @property
    def cells(self) -> int:
        """The width of the whole head, in cells."""
        return cell_len(self.before) + cell_len(self.name) + cell_len(self.after)

    def padded(self, width: int) -> str:
        """Return the head in exactly `width` cells."""
        name = cut_middle(self.name, width - cell_len(self.before) - cell_len(self.after))
        return padded(self.before + name + self.after, width)


def names_of(models: Sequence[str]) -> tuple[str, ...]:
    """Return short names of models, without the provider (`openai:`). Names of agents stay whole.

    If two short names would be equal, return the full names."""
    whole = tuple(model_label(model) for model in models)
    short = tuple(map(_short, whole))
    if len(set(short)) == len(set(whole)):
        return short
    return whole


def _short(label: str) -> str:
    if label.startswith(AGENT):
        return label
    # A replayed recording is named after its file and the recorded model. The name of the file may contain colons.
    separator = ":"
    if label.startswith(REPLAY) and MODEL_SEPARATOR in label:
        separator = MODEL_SEPARATOR
    return label.partition(separator)[2] or label


def heads_of(state: CompareState) -> tuple[Head, ...]:
    """Return the heads of the columns: models' names with markers for sorting and the base."""
    heads: list[Head] = []
    for model, name in zip(state.models, names_of(state.models), strict=True):
        before = after = ""
        if state.sorting is not None and state.sorting.model == model:
            before = f"{GLYPHS.up} "
            if state.sorting.worst_first:
                before = f"{GLYPHS.down} "
        if state.has_base and state.base == model:
            after = " = base"
        heads.append(Head(before, name, after))
    return tuple(heads)


def columns_of(
    state: CompareState, heads: Sequence[Head], names: int, floors: Mapping[str | None, int], first: int, width: int
) -> Columns:
    """Return the layout of the columns that fit beside a name column of `names` cells.

    The visible columns start at `first`, or further right if the selected column would be hidden. `floors` gives the
    minimum width of each model's column, which its totals need. `floors[None]` is the width of the names of
    measures."""
    rooms = tuple(_part_widths(state, model) for model in state.models)
    lengths = []
    for model, each in zip(state.models, rooms, strict=True):
        lengths.append(max(each.cells, floors.get(model, 0)))
    names = max(names, floors.get(None, 0) + 3, len(NAMES_HEAD))
    names, widths = matrix_rooms(names, lengths, [head.cells for head in heads], width, more=MORE_CELLS)
    room = width - names
    if len(widths) > 1 and sum(widths) + GAP * len(widths) > room:
        room -= MORE_CELLS
    first = min(first, state.column)
    while first < state.column and state.column not in columns_from(first, widths, room):
        first += 1
    # If there is room after the last column, show more columns on the left.
    while first and columns_from(first - 1, widths, room).stop == len(widths):
        first -= 1
    return Columns(names, rooms, widths, first, columns_from(first, widths, room).stop)


def _part_widths(state: CompareState, model: str) -> CellRooms:
    """Return the widths of the parts of a column's cells. They never shrink, so that columns do not jump."""
    latency = max(cell_len(duration_text(state.longest_ms.get(model, 0.0))), LATENCY_CELLS)
    repeats = state.most_repeats.get(model, 1)
    if repeats <= 1:
        return CellRooms(0, False, latency)
    return CellRooms(len(str(repeats)), model in state.models_with_spread, latency)


def names_width(cases: Sequence[ComparedCase], *, with_suites: bool) -> int:
    """Return the width of the longest name of a case, including the sign before the name."""
    return 3 + max((cell_len(_title(case, with_suites).whole) for case in cases), default=0)


def _title(case: ComparedCase, with_suite: bool) -> Title:
    if with_suite:
        return Title(case.suite_name, case.name)
    return Title("", case.name)


def header_line(state: CompareState, columns: Columns, heads: Sequence[Head]) -> Line:
    """Return the line of the models' names. It also has the number of hidden columns on each side."""
    more = f" {GLYPHS.result}{columns.first}" if columns.first else ""
    line = [Span(padded(NAMES_HEAD, columns.names - cell_len(more)) + more, "muted")]
    for at in range(columns.first, columns.end):
        role: Role = "badge" if at == state.column else "heading"
        line += [Span(" " * GAP), Span(heads[at].padded(columns.widths[at]), role)]
    if (left := len(columns.widths) - columns.end) > 0:
        line.append(Span(f" {GLYPHS.call}{left}", "muted"))
    return tuple(line)


def row_line(state: CompareState, row: Row, columns: Columns, *, has_cursor: bool) -> Line:
    """Return one row: the heading of a suite, or a case with its cells."""
    case = row.case
    if case is None:
        return (Span(f"  {one_line(row.suite_name)}", "heading"),)
    sign, role = _case_mark(state, case)
    name = padded(_title(case, state.names_suites).cut(columns.names - 2), columns.names - 2)
    line = [Span(f"{sign} ", role), Span(name, "strong" if has_cursor else "text")]
    for at in range(columns.first, columns.end):
        key = case.on(state.models[at])
        cell = filled(cell_state_line(state.at(key), columns.part_widths[at]), columns.widths[at])
        if has_cursor and at == state.column:
            cell = (Span(plain(cell), "selected"),)
        line += [Span(" "), _cell_marker(state, key), *cell]
    return tuple(line)


def cell_state_line(cell_state: CellState, rooms: CellRooms) -> Line:
    """Return the content of a cell: the result or the progress of its runs."""
    if cell_state.stage == "done" and cell_state.cell is not None:
        return cell_line(cell_state.cell, rooms)
    sign, role = _sign(cell_state)
    return (Span(f"{sign} {_progress_text(cell_state)}", role),)


def totals_line(row: tuple[str, Sequence[str]], columns: Columns) -> Line:
    """Return the line of a measure, with a value for each visible column."""
    name, values = row
    line = [Span(padded(f"  {name}", columns.names), "muted")]
    for at in range(columns.first, min(columns.end, len(values))):
        line += [Span(" " * GAP), Span(padded(values[at], columns.widths[at]))]
    return tuple(line)


def cell_text(state: CompareState, width: int) -> Line:
    """Describe the selected cell: case, model and status, and why the case did not pass.

    If there is no room, case and model are cut first, because the row and the column's head show them too."""
    key = state.key
    if key is None or state.case is None:
        why = state.why_no_cells
        # If there are no rows, a message in their place gives the reason already.
        if why is None or not state.rows:
            return EMPTY
        return cut_line((Span(f" {GLYPHS.warned} {_sentence(why)}", "warned"),), width)
    cell_state = state.at(key)
    sign, role = _sign(cell_state)
    broken = EMPTY
    if cell_state.stage == "done" and cell_state.cell is not None:
        text: str = cell_state.cell.status
        if cell_state.cell.reason:
            text += f": {one_line(cell_state.cell.reason)}"
        elif gave_up := gave_up_text(cell_state.cell.gave_up, len(cell_state.cell.runs)):
            text += f": {gave_up}"
        broken = _broken_off_line(cell_state.cell)
    else:
        text = _progress_text(cell_state)
        if cell_state.wait_reason is not None:
            text += f"; {GLYPHS.retry} {one_line(cell_state.wait_reason)}"
    name, model, between = one_line(state.case.name), names_of(state.models)[state.column], f" {GLYPHS.dot} "
    room = width - len(f" {sign} ") - len(between) - 2
    about = max(room - cell_len(text) - cells(broken), int(room * ABOUT_SHARE))
    name_cells = max(about - cell_len(model), about // 2)
    name = cut_middle(name, name_cells)
    model = cut_middle(model, about - cell_len(name))
    about_cell = Span(f"{name}{between}{model}  ", "muted")
    return cut_line((Span(f" {sign} ", role), about_cell, Span(text, role), *broken), width)


def _broken_off_line(cell: Cell) -> Line:
    """Return how many runs of a partly graded cell have no verdict. If their reasons are equal, add the reason."""
    if not cell.is_graded:
        return EMPTY
    line: list[Span] = []
    for status in WORST_FIRST:
        reasons = [run.reason for run in cell.runs if run.status == status]
        if status.graded or not reasons:
            continue
        text = f"; {counted_of(len(reasons), len(cell.runs), 'run')} {status.counted}"
        if reasons[0] and len(set(reasons)) == 1:
            text += f": {one_line(reasons[0])}"
        line.append(Span(text, status.role))
    return tuple(line)


def empty_message(state: CompareState) -> Text:
    all_cases: Text = (("", "text"), (". shows all cases.", "muted"))
    end_filter: Text = (("", "text"), ("Esc ends the filter.", "muted"))
    nothing = state.why_no_cells
    if not state.only_differences:
        if nothing is not None:
            return ((f"{_sentence(nothing)}.", "strong"),)
        return (("No case fits the filter.", "strong"), *end_filter)
    if nothing is not None:
        return ((f"{_sentence(nothing)}.", "strong"), *all_cases)
    if len(state.models) < 2:
        return (("There is only one model, so nothing differs.", "strong"), *all_cases)
    if not state.filter:
        return (("The models agree on all cases so far.", "strong"), *all_cases)
    return (("No case on which models differ fits the filter.", "strong"), *end_filter)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sign(cell_state: CellState) -> tuple[str, Role]:
    if cell_state.wait_kind == "asks":
        return GLYPHS.asks, "warned"
    if cell_state.wait_kind is not None:
        return GLYPHS.held, "warned"
    if cell_state.stage == "done" and cell_state.cell is not None:
        return cell_state.cell.status.mark
    if cell_state.stage == "not run":
        return GLYPHS.never, "muted"
    if cell_state.stage == "running":
        return GLYPHS.running, "running"
    return GLYPHS.running, "muted"


def _progress_text(cell_state: CellState) -> str:
    if cell_state.stage in ("not run", "done"):
        return ""
    text = cell_state.wait_kind or cell_state.stage
    if cell_state.planned > 1:
        return f"{cell_state.done}/{cell_state.planned} {text}"
    return text


def _case_mark(state: CompareState, case: ComparedCase) -> tuple[str, Role]:
    active: list[CellState] = []
    graded: list[Status] = []
    others: list[Status] = []
    for model in state.models:
        cell_state = state.at(case.on(model))
        if cell_state.stage in UNFINISHED:
            active.append(cell_state)
        elif cell_state.cell is not None and cell_state.cell.is_graded:
            graded.append(cell_state.cell.status)
        elif cell_state.cell is not None:
            others.append(cell_state.cell.status)
    if active:
        # Runs that wait for the user come first, then running runs, then runs that wait to begin.
        return _sign(min(active, key=lambda one: (one.wait_kind is None, one.stage != "running")))
    # A cell without a verdict, for example after an error, counts only if no other cell has a verdict.
    worst = worst_of(graded or others)
    if worst is None:
        return GLYPHS.never, "muted"
    return worst.mark


def _cell_marker(state: CompareState, key: CellKey) -> Span:
    """Return the sign before a cell: whether it is marked, or better or worse than the cell of the base."""
    if key == state.marked:
        return Span(GLYPHS.marked, "accent")
    # Without a selected base, the significance tests use the first column, but cells are not compared.
    if not state.has_base:
        return Span(" ")
    against = state.against_base(key)
    if against == 0:
        return Span(" ")
    if against > 0:
        return Span("+", "passed")
    return Span("-", "failed")


MAX_TIME_SHARE = 0.05
"""The maximum share of time for totals while runs are active."""

MAX_UPDATE_S = 0.004
"""The maximum time in seconds for one update."""

_TIMES = tuple(pooled.title for pooled in LATENCY.pooled[:2])
_FIRST_MEASURES = (PASS_RATE.title, "95% interval", SCORE.pooled[0].title, "gate", *_TIMES, COST.title)
"""The measures at the top of the totals. They stay visible if there are few rows."""


class ComparedTotals:
    """The totals of each column. `clock` returns seconds.

    The totals of thousands of cells take too long to compute after every event. Therefore each update begins with the
    oldest totals and stops before keys are delayed. While runs are active, updates take at most `MAX_TIME_SHARE` of the
    time."""

    def __init__(self, state: CompareState, clock: Callable[[], float]) -> None:
        self._state = state
        self._clock = clock
        self._of: dict[str, ModelTotals] = {}
        """The computed columns, with the oldest totals first."""
        self._gates: Mapping[str, Gate] = {}
        self._checked_at_s = clock()
        self._ahead_s = 0.0
        """The time in seconds spent beyond the share. Later updates take less time accordingly."""
        self._models: tuple[str, ...] = ()
        """The columns of `rows`. Empty if the rows are outdated."""
        self.rows: Sequence[tuple[str, Sequence[str]]] = ()
        """The measures, each with a value per column."""
        self.most_failures: str | None = None
        """A sentence on the models that fail most. `None` while runs are active, or if there is nothing to say."""
        self.floors: dict[str | None, int] = {}
        """The largest width so far of each column's values, and of the names of measures (`None`). The widths only
        grow, so columns do not jump."""

    @property
    def is_behind(self) -> bool:
        """Whether columns or their cells changed since their totals were computed."""
        return self._models != self._state.models or not self._state.changed.isdisjoint(self._models)

    def update(self) -> None:
        """Update as many columns as time allows."""
        state, now_s = self._state, self._clock()
        share = 1.0
        if state.active:
            share = MAX_TIME_SHARE
        self._ahead_s = max(self._ahead_s - share * (now_s - self._checked_at_s), 0.0)
        self._checked_at_s = now_s
        if (gates := state.source.gates()) != self._gates:
            self._gates = gates
            state.changed.update(state.models)
        longest_ago = {model: at for at, model in enumerate(self._of)}
        behind = sorted(
            state.changed.intersection(state.models),
            key=lambda model: (longest_ago.get(model, -1), state.models.index(model)),
        )
        while behind and self._ahead_s <= MAX_UPDATE_S:
            began_s, model = self._clock(), behind.pop(0)
            # The dict lists the oldest totals first. Removing the column before it is set moves it to the end.
            self._of.pop(model, None)
            self._of[model] = model_totals(model, state.cells(model), gates)
            state.changed.discard(model)
            self._ahead_s += self._clock() - began_s
            self._models = ()
        if self._models == state.models:
            return
        self._models = state.models
        totals = [self._of.get(model) or model_totals(model, ()) for model in state.models]
        # Totals over the cases that all models share need every cell, so they are computed only when no run is active.
        same = self.most_failures = None
        if not state.active:
            columns_cells = {model: state.cells(model) for model in state.models}
            same = totals_on_same_cases(columns_cells)
            self.most_failures = weakest_text(columns_cells)
        self.rows = sorted(totals_rows(totals, state.suite_names, len(state.cases), same), key=_place)
        columns: tuple[str | None, ...] = (None, *state.models)
        for name, values in self.rows:
            for column, text in zip(columns, (name, *values), strict=True):
                self.floors[column] = max(self.floors.get(column, 0), len(text))


def _place(row: tuple[str, Sequence[str]]) -> int:
    """Return the sort key of a measure: its index in `_FIRST_MEASURES`, or a higher number for other measures."""
    name = row[0]
    if name.startswith("gate"):
        name = "gate"
    if name in _FIRST_MEASURES:
        return _FIRST_MEASURES.index(name)
    return len(_FIRST_MEASURES)


MAX_CACHED_LINES = 200


class CompareHead(Bar):
    """The bar with the models' names above their columns."""

    class Chosen(Message):
        """Posted when a head is clicked, with the position of the click."""

        def __init__(self, x: int) -> None:
            super().__init__()
            self.x = x

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Chosen(event.x))


class CompareTable(LineView):
    """The table of cases with one selected cell. Only visible cells are drawn."""

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
        """Returns the widths needed by the totals."""
        self.heads: tuple[Head, ...] = ()
        self.columns = Columns(0, (), (), 0, 0)
        self._names: tuple[object, bool, int] = ((), False, 0)
        """The cases, whether cases name their suites, and the width of the names."""
        self._lines: dict[int, tuple[tuple[object, ...], Line]] = {}
        """The drawn rows, each with the values used to draw the row."""

    @property
    def has_cursor(self) -> bool:
        return bool(self.state.rows)

    def line_count(self) -> int:
        return len(self.state.rows) or len(message_lines(empty_message(self.state), self.text_width))

    def line_at(self, index: int) -> Line:
        state = self.state
        if not state.rows:
            return message_lines(empty_message(state), self.text_width)[index]
        row, has_cursor = state.rows[index], index == state.cursor
        column: int | None = None
        if has_cursor:
            column = state.column
        version = 0
        if row.case is not None:
            version = state.version(row.case)
        base = (state.has_base, state.base)
        # Events of runs come many times a second. A line is drawn again only if a value used in it has changed.
        depends_on = (row, version, column, state.models, self.columns, state.marked, base, state.names_suites)
        cached = self._lines.get(index)
        if cached is None or cached[0] != depends_on:
            if len(self._lines) > MAX_CACHED_LINES:
                self._lines.clear()
            cached = self._lines[index] = depends_on, row_line(state, row, self.columns, has_cursor=has_cursor)
        return cached[1]

    def show_state(self) -> None:
        """Show the current state and make the cursor visible."""
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
        return header_line(self.state, self.columns, self.heads)

    def move_cursor(self, index: int) -> None:
        state = self.state
        state.move_to(index, state.column)
        self.cursor = state.cursor
        # The heading of a suite stays visible above its first case.
        above = self.cursor > 0 and state.rows[self.cursor - 1].case is None
        height = max(self.size.height, 1)
        self.top = min(max(self.top, self.cursor - height + 1), self.cursor - (above and height > 1))
        self.repaint()

    def move_column(self, column: int) -> None:
        self.state.move_to(self.cursor, column)
        self.repaint()
        self.moved()

    def moved(self) -> None:
        self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Select the clicked cell. Open the cell if it is already selected."""
        # Textual would also call the handler of the base class. The code below calls it where needed.
        event.prevent_default()
        index, state = self.top + event.y, self.state
        if event.x == self.size.width - 1 or index >= len(state.rows):
            super().on_click(event)
            return
        before = state.cursor, state.column
        column = self.columns.at(event.x)
        if column is None:
            state.move_to(index, state.column)
        else:
            state.move_to(index, column)
        self.show_state()
        self.moved()
        is_selected = before == (state.cursor, state.column)
        if is_selected and column is not None and state.rows[index].case is not None:
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
