"""The screen of injected faults: a table of faults by models, with the trials of the selected cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from workbench.analysis.fault_matrix import (
    OK_VERDICTS,
    VERDICT_WORDS,
    FaultDuration,
    FaultMatrix,
    FaultName,
    FaultTrial,
    fault_label,
)
from workbench.numerals import counted, counted_of
from workbench.show.doc import Block, Paragraph, line_of
from workbench.show.forms import PLAIN_WIDTH
from workbench.show.glyphs import GLYPHS
from workbench.show.rows import detail_rows
from workbench.show.spans import Line, Message, Role, Span, cells, cut_line, cut_middle, padded
from workbench.show.text import Paint, block_lines
from workbench.show.views.faults import cell_value, cell_words, faults_view, legend_view, ok_view, trial_section
from workbench.show.visible import model_label, one_line
from workbench.tui.kit.actions import action
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.rows import ListState
from workbench.tui.kit.side_screen import ActionOverride

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench

_CELL = max(map(cell_len, VERDICT_WORDS)) + 2
"""The minimum width of a column. Every verdict fits."""

_MAX_NAME_CELLS = 20
"""The maximum width of the name of a model above its column."""

_GAP = 2
"""The blanks between two columns."""

_MORE = len(" >9")
"""The width of the number of hidden columns."""

_WIDEST_NAME = 32
"""The maximum width of the names of tools and faults."""


class FaultRow(NamedTuple):
    """A row of the table: the heading of a tool, or a fault of the tool."""

    tool: str
    fault: tuple[FaultName, FaultDuration] | None = None

    @property
    def name(self) -> str:
        if self.fault is None:
            return one_line(self.tool)
        return f"  {fault_label(*self.fault)}"


class FaultTable(ListState[FaultRow]):
    """The table of trials: faults as rows, models as columns, one column selected."""

    def __init__(self, matrix: FaultMatrix) -> None:
        super().__init__()
        self.matrix = matrix
        self.column = 0
        self.names = min(max((cell_len(row.name) for row in self._all()), default=0), _WIDEST_NAME)
        self._rebuild()
        # Row 0 is the heading of the first tool and has no trials.
        self.move_to(1)

    def _all(self) -> Iterator[FaultRow]:
        tool = ""
        for row in self.matrix.rows:
            if row[0] != tool:
                tool = row[0]
                yield FaultRow(tool)
            yield FaultRow(tool, (row[1], row[2]))

    def _shown_rows(self) -> Sequence[FaultRow]:
        # The filter searches tool, fault and verdicts.
        shown: list[FaultRow] = []
        for row in self._all():
            if row.fault is not None and self._fits(row, partial(self._text, row)):
                tool = FaultRow(row.tool)
                if tool not in shown:
                    shown.append(tool)
                shown.append(row)
        return shown

    def _text(self, row: FaultRow) -> str:
        verdicts = " ".join(cell_words(self.cell(row, model)) for model in self.matrix.models)
        return f"{row.tool} {row.name} {verdicts}"

    def cell(self, row: FaultRow, model: str) -> tuple[FaultTrial, ...]:
        """Return the trials of a fault with a model. The heading of a tool has no trials."""
        if row.fault is not None:
            return self.matrix.cell((row.tool, *row.fault), model)
        return ()

    @property
    def model(self) -> str:
        return self.matrix.models[self.column]

    @property
    def chosen(self) -> tuple[FaultTrial, ...]:
        """The trials of the selected cell. Trials in which the agent did not handle the fault come first."""
        row = self.selected
        if row is None:
            return ()
        tried = self.cell(row, self.model)
        return tuple(sorted(tried, key=lambda each: (each.verdict in OK_VERDICTS, each.verdict == "not tried")))

    def turn(self, step: int) -> None:
        """Select the next (1) or previous (-1) column."""
        self.column = min(max(self.column + step, 0), len(self.matrix.models) - 1)

    @property
    def column_width(self) -> int:
        """The width of each column. All columns have the width that the longest name of a model needs."""
        longest = max((cell_len(model_label(model)) for model in self.matrix.models), default=0)
        return max(_CELL, min(longest, _MAX_NAME_CELLS))

    def columns(self, width: int) -> range:
        """Return the indices of the columns that fit into `width` cells, including the selected column."""
        count = max((width - self.names - _MORE) // (self.column_width + _GAP), 1)
        first = max(self.column - count + 1, 0)
        return range(first, min(first + count, len(self.matrix.models)))


class FaultsScreen(ListScreen[str, FaultTable]):
    """The screen of the trials of injected faults. Returns the id of the run that the user chose."""

    LIST_SHARES = (0.35, 0.6)
    NAME = "faults"
    TITLE_IN_TEXT = "the faults"
    ACTION_OVERRIDES = (ActionOverride("other", title="Switch between the matrix and the runs", label="runs"),)
    FILTER_PLACEHOLDER = "tool, fault, verdict"
    AUTO_FOCUS = "#faults-list"

    def __init__(self, app: Workbench, matrix: FaultMatrix, place: str) -> None:
        super().__init__(app, FaultTable(matrix))
        self._place = place

    def _row_line(self, index: int, width: int) -> Line:
        state = self.state
        row, shown = state.rows[index], state.columns(width)
        is_head = row.fault is None
        # The heading of a tool also has the names of the columns. It shows how many columns are hidden on each side.
        before = f" {GLYPHS.result}{shown.start}" if is_head and shown.start else ""
        room = state.names - cell_len(before)
        name = padded(cut_middle(row.name, room), room)
        spans = [Span(name, "heading" if is_head else "text"), Span(before, "muted")]
        for at in shown:
            text, role = self._cell_text(row, at)
            if at == state.column and is_head:
                role = "badge"
            elif at == state.column and index == state.cursor:
                role = "selected"
            spans += [Span(" " * _GAP), Span(padded(cut_middle(text, state.column_width), state.column_width), role)]
        if is_head and (more := len(state.matrix.models) - shown.stop) > 0:
            spans.append(Span(f" {GLYPHS.call}{more}", "muted"))
        return cut_line(tuple(spans), width)

    def _cell_text(self, row: FaultRow, column: int) -> tuple[str, Role]:
        model = self.state.matrix.models[column]
        if row.fault is None:
            return model_label(model), "heading"
        ((text, role),) = cell_value(self.state.cell(row, model)).spans
        return text, role

    def _row_cells(self, index: int, width: int) -> int:
        return cells(self._row_line(index, width))

    def _message(self) -> Message:
        return (("No fault fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))

    def _detail_lines(self, width: int) -> Sequence[Line]:
        return list(detail_rows((*_cell_blocks(self.state), *legend_view(self.state.matrix)), width))

    def _title(self) -> tuple[Line, Sequence[Line]]:
        matrix = self.state.matrix
        left: Line = (Span(" Fault injection ", "badge"), Span(f" {one_line(self._place)}{self._filter_text}"))
        weak = len(matrix.failed_trials)
        tried = len(matrix.trials) - len(matrix.untried)
        right = Span(f"ok in {counted(tried, 'trial')} ", "passed")
        if weak:
            right = Span(f"not ok in {counted_of(weak, tried, 'trial')} ", "failed")
        return left, ((right,),)

    @action("enter", "Go to the run of the cell", label="go to run")
    def do_open(self) -> None:
        """Close the screen, and show the run of the cell. Of several runs, show the first that is not ok."""
        run = next((each.run_id for each in self.state.chosen if each.run_id is not None), None)
        if run is not None:
            self.dismiss(run)
        elif self.state.chosen:
            self.announce(f"It was not tried: {self.state.chosen[0].why}", "warned", GLYPHS.warned)
        else:
            self._go_to("detail")

    @action("left", "Column to the left")
    def do_left(self) -> None:
        self._turn(-1)

    @action("right", "Column to the right")
    def do_right(self) -> None:
        self._turn(1)

    def _turn(self, step: int) -> None:
        self.state.turn(step)
        self._list.refresh()
        self._show_state()

    @action("y", "Copy everything as text", label="copy")
    def do_copy(self) -> None:
        text = "\n".join(block_lines(faults_view(self.state.matrix), PLAIN_WIDTH, Paint(False)))
        self.workbench.copy(f"{text}\n", "the matrix", self.announce)


def _cell_blocks(state: FaultTable) -> Iterator[Block]:
    row = state.selected
    if row is None or row.fault is None:
        yield from ok_view(state.matrix)
        return
    name, model = Span(f"{one_line(row.tool)}:{row.name[1:]}", "strong"), Span(f"  {model_label(state.model)}", "muted")
    yield Paragraph((name, model))
    if not state.chosen:
        yield Paragraph(line_of("This tool was not called there.", "muted"))
    yield from map(trial_section, state.chosen)
