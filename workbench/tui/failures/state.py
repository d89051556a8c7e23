"""The state and the lines of the list of failures, grouped by cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.analysis.causes import NO_FAILURES, Cause, CauseGroup, FailedRun, Failures
from workbench.numerals import count_text, counted, of_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import (
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    cells,
    cut_line,
    cut_middle,
    heading,
    paragraph,
    spread,
)
from workbench.show.views.failures import ConfusionTable, RunNames, cause_lines, example_lines, failures_text, run_lines
from workbench.tui.kit.rows import FoldingState

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.suite.model import Case
    from workbench.tui.run_book.record import RunRecord

RowKey = tuple[str, Cause | None, str]
"""The identity of a row across openings of the screen: kind, cause and run id."""


class FailureRow(NamedTuple):
    """A row of the list: a cause, a run with the cause, or the table of confused tools."""

    kind: Literal["cause", "run", "table"]
    group: CauseGroup | None = None
    run: FailedRun | None = None
    shown: int = 0
    """The number of runs that match the filter."""

    @property
    def key(self) -> RowKey:
        """A key by which a later opening of the screen finds the row again."""
        cause = self.group.cause if self.group is not None else None
        run_id = self.run.result.run_id if self.run is not None else ""
        return self.kind, cause, run_id


class FailureList(FoldingState[FailureRow]):
    """The failures of some runs as rows, grouped by cause. Empty until `set_failures` is called."""

    def __init__(self, records: Sequence[RunRecord], suite_names: Mapping[Path, str]) -> None:
        super().__init__()
        done = []
        for record in records:
            if record.status is not None:
                done.append((record, record.status))
        self.records = [record for record, status in done if status.graded]
        # A run may be regraded while a thread searches for causes. The search uses the results as they are now.
        self._unread = [(record.result_reader(), record.shown_case) for record in self.records]
        self.failures = NO_FAILURES
        several_models = len({record.model for record, _ in done}) > 1
        suites = {str(path): name for path, name in suite_names.items()}
        self.names = RunNames(suites, with_suite=len(suites) > 1, with_model=several_models)
        self.under_way = len(records) - len(done)
        """The number of active runs at the time of opening."""

    def results(self) -> Iterator[tuple[RunResult, Case | None]]:
        """Yield the result of each graded run with its case.

        May be called in any thread. Ten thousand results take about a second."""
        for read, case in self._unread:
            if (result := read()) is not None:
                yield result, case

    def set_failures(self, failures: Failures) -> None:
        self.failures = failures
        self._unread = []
        self._rebuild()

    @property
    def record(self) -> RunRecord | None:
        """The run at the cursor, `None` on other rows."""
        row = self.selected
        if row is not None and row.run is not None:
            return self.records[row.run.index]
        return None

    def resume(self, folded: frozenset[Cause], row: RowKey | None) -> None:
        """Restore the folded causes and the selected row. If the row is gone, select the first run."""
        self._folded = set(folded)
        self._rebuild(row)
        if self.selected is None or self.selected.key != row:
            self.cursor = next((at for at, each in enumerate(self.rows) if each.run is not None), 0)

    @property
    def folded(self) -> frozenset[Cause]:
        """The causes whose runs are hidden."""
        return frozenset(group.cause for group in self.failures.groups if group.cause in self._folded)

    def as_text(self) -> str:
        return failures_text(self.failures, self.names.suites)

    def _key(self, row: FailureRow) -> RowKey:
        return row.key

    def _group(self, row: FailureRow) -> Cause | None:
        if row.group is not None:
            return row.group.cause
        return None

    def _shown_rows(self) -> list[FailureRow]:
        # The filter searches suite, case, model, tools and parameters.
        found: list[FailureRow] = []
        for group in self.failures.groups:
            runs = [run for run in group.runs if self._fits(run.index, partial(self._text_of, run))]
            if runs:
                found.append(FailureRow("cause", group, shown=len(runs)))
                if not self.is_folded(group.cause):
                    found += [FailureRow("run", group, run) for run in runs]
        # The table counts all runs, so it does not belong in a filtered list.
        if self.failures.confusion.counts and not self.filter.strip():
            found.append(FailureRow("table"))
        return found

    def _text_of(self, run: FailedRun) -> str:
        result = run.result
        subjects = " ".join(str(symptom.subject or "") for symptom in run.symptoms)
        suite = self.names.suites.get(result.suite, "")
        return f"{suite} {result.case_name} {result.case_id} {result.model} {subjects}"


MIN_NAME_CELLS = 8
"""The minimum width of a case's name in its row, even beside a long name of a model."""

_NOTHING_FITS: Message = (("No failed run fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))


def row_line(state: FailureList, row: FailureRow, width: int) -> Line:
    if row.group is None:
        return cut_line((Span("Expected and called", "strong"), Span("  all graded runs", "muted")), width)
    if row.run is None:
        total = len(row.group.runs)
        fold = GLYPHS.folded if state.is_folded(row.group.cause) else GLYPHS.open
        count = count_text(total) if row.shown == total else of_text(row.shown, total)
        return spread((Span(f"{fold} "), Span(row.group.cause, "strong")), (Span(count, "failed"),), width)
    # A run is listed below each of its causes. Except below its main cause, the run is dimmed and names the main cause.
    run = row.run
    role: Role = "text"
    also: Line = EMPTY
    if run.main != row.group.cause:
        role, also = "muted", (Span(f"  {run.main}", "muted"),)
    name, rest = state.names.case(run), Span(state.names.label_of(run), role)
    if cells((Span(f"    {name}"), rest, *also)) > width:
        also = EMPTY
    # The name of the case is cut first, because model and repeat identify the run.
    room = max(width - 4 - cells((rest, *also)), MIN_NAME_CELLS)
    return spread((Span("    "), Span(cut_middle(name, room), role), rest), also, width)


def list_message(state: FailureList) -> Message:
    """Return the message that the list shows in place of rows if it has no rows."""
    return _NOTHING_FITS if state.filter else ()


def detail_lines(state: FailureList, row: FailureRow, table: ConfusionTable, first: int, width: int) -> Sequence[Line]:
    """Return the details of a row: a cause, a run, or the table of confused tools.

    The table begins with column `first`."""
    over = f"  over all {counted(state.failures.graded, 'graded run')}"
    if row.run is not None:
        lines = list(run_lines(row.run, state.names, width))
    elif row.group is not None:
        lines = [*cause_lines(row.group, width), EMPTY, *example_lines(row.group, state.names, width)]
    else:
        over = ""
        lines = paragraph(
            f"Over {counted(state.failures.graded, 'graded run')}, including those that passed. A tool called in place "
            "of another is counted in its own column. Cases without checks of calls are left out.",
            width,
        )
    title = cut_line((*heading("Expected and called"), Span(over, "muted")), width)
    return [*lines, EMPTY, title, *table.lines(width, first)]
