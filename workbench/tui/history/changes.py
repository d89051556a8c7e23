"""The screen of the changes between two batches, with its state and lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from workbench.analysis.batch_diff import CHANGE_KINDS, BatchDiff, CaseChange, CaseSide, ChangeKind, batch_diff
from workbench.analysis.comparison import CellKey, cells_of
from workbench.config.folders import history_option
from workbench.evaluation.instruction_changes import instructions_between
from workbench.grading.run_summary import finished_summaries
from workbench.grading.status import Status
from workbench.history.records import Regrade, RunRow, SuiteRef, same_suites
from workbench.history.run_table import RunTable
from workbench.numerals import count_text, counted, duration_text, of_text, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.markdown import document
from workbench.show.spans import EMPTY, Line, Message, Span, cells, cut_line, cut_middle, paragraph, spread
from workbench.show.views.batch_diff import (
    MEANINGS,
    TONES,
    by_grading,
    counts_line,
    diff_view,
    names_of,
    notes_between,
    test_lines,
    title_of,
)
from workbench.show.views.batch_list import batch_name
from workbench.show.views.comparison import both_verdicts, verdict_line
from workbench.show.visible import model_label, one_line
from workbench.tui.history.stored_screens import file_of
from workbench.tui.kit.actions import action
from workbench.tui.kit.list_screen import ListScreen
from workbench.tui.kit.rows import FoldingState
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.stored_batches import LoadedBatch, opened, read_two

if TYPE_CHECKING:
    from workbench.grading.run_summary import RunSummary
    from workbench.tui.shell.workbench import Workbench


class DiffRow(NamedTuple):
    """A row of the list: one change, or the heading above all changes of a kind.

    `shown` is the number of changes below a heading."""

    kind: ChangeKind
    shown: int = 0
    change: CaseChange | None = None


class Side(NamedTuple):
    """A run of one of the two batches, with the regrade whose grades are displayed."""

    run: RunRow
    grading: Regrade | None


class DiffList(FoldingState[DiffRow]):
    """The changes between two batches. The rows are grouped by the kind of change."""

    def __init__(self, before: LoadedBatch, after: LoadedBatch, history: str, notes: Sequence[str] = ()) -> None:
        """Compare two batches.

        `history` is the command-line option that names the history file, for printed commands. `notes` are further
        sentences about differences between the batches."""
        super().__init__()
        self.before = before
        self.after = after
        same = same_suites(before.batch.suites, after.batch.suites)
        figures = _figures_in(before.runs), _figures_in(after.runs)
        unfinished = _unfinished(before.runs), _unfinished(after.runs)
        self.diff: BatchDiff = batch_diff(*figures, unfinished=unfinished, same_suites=same)
        self.tests = tuple(test_lines(self.diff.tests, *names_of(before, after)))
        """Sentences on whether the difference is statistically significant."""
        self.notes = (*notes_between(self.diff, before, after, same, history), *notes)
        """Sentences on differences between the batches themselves."""
        # The key of a suite changes when its file moves. `same` maps earlier keys to later keys.
        earlier = {}
        for suite in before.batch.suites:
            earlier[same.get(suite.key, suite.key)] = suite
        later = {suite.key: suite for suite in after.batch.suites}
        self.suites: dict[str, SuiteRef] = earlier | later
        self._changed = {key for key in earlier.keys() & later.keys() if earlier[key].hash != later[key].hash}
        self.several_models = len(self.diff.models) > 1
        self._rebuild()

    @property
    def names(self) -> tuple[str, str]:
        """The names of the earlier and the later batch. A name includes the displayed regrade, if there is one."""
        return _name_of(self.before), _name_of(self.after)

    @property
    def several_suites(self) -> bool:
        return len(self.suites) > 1

    def suite_changed(self, key: str) -> bool:
        """Return whether the text of a suite differs between the two batches."""
        return key in self._changed

    def sides(self, change: CaseChange) -> tuple[Side | None, Side | None]:
        """Return a run of the earlier and a run of the later batch that show a change, `None` for a missing run.

        If the case was repeated, each is the first repeat whose status is the status of the case in its batch."""
        return _side(self.before, change.before, change.case_id), _side(self.after, change.after, change.case_id)

    def as_text(self) -> str:
        title = title_of(self.before, self.after)
        return document(diff_view(self.diff, self.suites, title=title, tests=self.tests, notes=self.notes))

    def _key(self, row: DiffRow) -> tuple[ChangeKind, int | None]:
        return row.kind, id(row.change) if row.change is not None else None

    def _group(self, row: DiffRow) -> ChangeKind:
        return row.kind

    def _shown_rows(self) -> list[DiffRow]:
        # The filter searches suite, case, model, kind and outcome.
        found: list[DiffRow] = []
        for kind in CHANGE_KINDS:
            changes = [each for each in self.diff.of(kind) if self._fits(id(each), partial(self._text_of, each))]
            if changes:
                found.append(DiffRow(kind, len(changes)))
                if not self.is_folded(kind):
                    found += [DiffRow(kind, change=change) for change in changes]
        return found

    def _text_of(self, change: CaseChange) -> str:
        suite = self.suites[change.suite]
        text = f"{change.kind} {suite.name} {suite.path} {change.case_id} {change.case_name} {change.model}"
        return f"{text} {change.sentence}"


def _name_of(side: LoadedBatch) -> str:
    return f"{batch_name(side.batch)}{by_grading(side.grading)}"


def _figures_in(runs: Sequence[RunRow]) -> Sequence[RunSummary]:
    if isinstance(runs, RunTable):
        # A `RunTable` makes rows only on demand. The comparison needs none, because the figures suffice.
        return runs.figures
    return list(finished_summaries(runs))


def _unfinished(runs: Sequence[RunRow]) -> Collection[CellKey]:
    if isinstance(runs, RunTable):
        return runs.unfinished
    return {(run.suite.key, run.case_id, run.model) for run in runs if run.figures is None}


def _side(read: LoadedBatch, side: CaseSide | None, case_id: str) -> Side | None:
    if side is None:
        return None
    case = side.suite, case_id, side.model
    runs = [run for run in read.runs if (run.suite.key, run.case_id, run.model) == case]
    # The status of a case follows from its rule for repeats. The first run with this status shows the change best.
    cell = cells_of(finished_summaries(runs))[case]
    wanted = next((run for run in cell.runs if run.status == cell.status), cell.runs[0])
    return next((Side(run, read.grading) for run in runs if run.figures == wanted), None)


def change_title(state: DiffList, change: CaseChange) -> str:
    """Return the name of the case that a change belongs to.

    If there are several suites, the name begins with the suite."""
    name = one_line(change.case_name)
    if state.several_suites:
        return f"{one_line(state.suites[change.suite].name)} › {name}"
    return name


MIN_NAME_CELLS = 12
"""The minimum width of a case's name in its row."""


def row_line(state: DiffList, row: DiffRow, width: int) -> Line:
    if row.change is None:
        fold = GLYPHS.folded if state.is_folded(row.kind) else GLYPHS.open
        total = len(state.diff.of(row.kind))
        count = count_text(total) if row.shown == total else of_text(row.shown, total)
        ends: Line = (Span(f"{count} ", TONES[row.kind]),)
        return spread((Span(f"{fold} "), Span(row.kind, "strong")), ends, width)
    change = row.change
    right: Line = (*_both_sides(change), Span(" "))
    title = change_title(state, change)
    room = width - 4 - cells(right) - 1
    model = ""
    if state.several_models:
        # If both do not fit, the model is cut first, because the name of the case identifies the row.
        model = f"  {cut_middle(model_label(change.model), max(room - 2 - cell_len(title), room // 3))}"
    name = cut_middle(title, max(room - cell_len(model), MIN_NAME_CELLS))
    return spread((Span("    "), Span(name), Span(model, "muted")), right, width)


def _both_sides(change: CaseChange) -> Line:
    if change.kind == "slower" and change.before is not None and change.after is not None:
        was, is_now = change.before.latency_ms or 0.0, change.after.latency_ms or 0.0
        return (Span(f"{duration_text(was)} {GLYPHS.call} ", "muted"), Span(duration_text(is_now), "warned"))
    sides = [cell for cell in (change.before, change.after) if cell is not None]
    if len(sides) > 1:
        return both_verdicts(*sides)
    return verdict_line(sides[0])


def list_message(state: DiffList) -> Message:
    """Return the message in place of an empty list."""
    if state.filter:
        return (("No change fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))
    if state.diff.compared:
        return (("Nothing changed.", "strong"), ("", "text"), ("Every case has the same result as before.", "text"))
    return (
        ("There is nothing to compare.", "strong"),
        ("", "text"),
        ("No case was graded in both batches with the same model, or with the only model of each.", "text"),
    )


def head_lines(state: DiffList, width: int) -> list[Line]:
    """Return the lines above the list: counts of changes, notes, and tests of the comparison."""
    return [cut_line((Span(" "), *counts_line(state.diff)), width), *_summary_lines(state, width)]


def _summary_lines(state: DiffList, width: int) -> Iterator[Line]:
    for sentence in (*state.notes, *state.tests):
        yield from paragraph(sentence, width, "text")


def detail_lines(state: DiffList, row: DiffRow | None, width: int, *, head_is_cut: bool) -> list[Line]:
    """Return the details of the selected row: a change, or a kind of change.

    If the lines above the list do not all fit (`head_is_cut`), the details of a kind also contain the notes and
    tests."""
    lines: list[Line] = []
    if row is not None:
        lines += _detail(state, row, width)
    if head_is_cut and (row is None or row.change is None):
        if lines:
            lines.append(EMPTY)
        lines += _summary_lines(state, width)
    return lines


def _detail(state: DiffList, row: DiffRow, width: int) -> Iterator[Line]:
    yield (Span(f" {row.kind}", TONES[row.kind]),)
    change = row.change
    if change is None:
        yield from paragraph(MEANINGS[row.kind], width, "text")
        return
    yield from paragraph(change_title(state, change), width, "strong")
    if state.diff.across is None:
        yield from paragraph(model_label(change.model), width, "muted")
    if state.suite_changed(change.suite):
        yield from paragraph("Its suite changed between the two batches.", width, "warned")
    models = state.diff.across or (change.model, change.model)
    for name, model, cell in zip(state.names, models, (change.before, change.after), strict=True):
        yield EMPTY
        of_model = f"  {model_label(model)}" if state.diff.across is not None else ""
        yield cut_line((Span(f" {name}", "heading"), Span(of_model, "muted")), width)
        if cell is None:
            yield (Span("   not run", "muted"),)
        else:
            yield from _side_lines(cell, width)


def _side_lines(cell: CaseSide, width: int) -> Iterator[Line]:
    sign, role = cell.status.mark
    facts = []
    if cell.score is not None:
        facts.append(score_text(cell.score, ""))
    if cell.graded > 1:
        facts.append(f"{of_text(cell.good, cell.graded)} good")
        if cell.spread:
            facts.append(f"spread {score_text(cell.spread, '')}")
    if cell.latency_ms is not None:
        facts.append(duration_text(cell.latency_ms))
    line: Line = (Span(f"   {sign} {cell.status}", role),)
    if facts:
        line = (*line, Span(f" {f' {GLYPHS.dot} '.join(facts)}"))
    yield cut_line(line, width)
    if cell.status == Status.PASSED:
        return
    for reason in (cell.reason,) if cell.reason else cell.reasons[:3]:
        yield from paragraph(one_line(reason), width, "muted", 5)


class BatchDiffScreen(ListScreen[None, DiffList]):
    """The screen of the changes between two batches, grouped by kind. Shows both runs of the selected change."""

    NAME = "diff"
    TITLE_IN_TEXT = "what changed"
    AUTO_FOCUS = "#diff-list"
    FILTER_PLACEHOLDER = "words of kind, suite, case, model or reason"

    def _row_line(self, index: int, width: int) -> Line:
        return row_line(self.state, self.state.rows[index], width)

    def _message(self) -> Message:
        return list_message(self.state)

    def _head_lines(self, width: int) -> Sequence[Line]:
        return head_lines(self.state, width)

    def _detail_lines(self, width: int) -> Sequence[Line]:
        cut = len(self._head_lines(self.app.size.width - 1)) > self._head_rows
        return detail_lines(self.state, self.state.selected, width, head_is_cut=cut)

    def _title(self) -> tuple[Line, Sequence[Line]]:
        state = self.state
        before, after = state.names
        left: Line = (
            Span(" Changes ", "badge"),
            Span(f" {before}"),
            Span(f" {GLYPHS.call} ", "muted"),
            Span(f"{after}{self._filter_text}"),
        )
        compared = counted(state.diff.cases, "case")
        if state.several_models:
            compared += f" on {count_text(len(state.diff.models))} models"
        return left, [(Span(f"{compared} compared ", "muted"),), EMPTY]

    @property
    def change(self) -> CaseChange | None:
        """The selected change, `None` on the heading of a kind."""
        row = self.state.selected
        return row.change if row is not None else None

    def _refusals(self) -> dict[str, str]:
        refused = {}
        if self.state.selected is None:
            refused["diff.open"] = refused["diff.copy"] = "there is no change here"
        if self.change is None:
            refused["diff.timeline"] = "put the cursor on a case"
        return refused

    @action("enter", "Show both runs side by side; fold a kind of change", label="side by side")
    def do_open(self) -> None:
        """Show both runs side by side, or the only run.

        If the cursor is on a kind of change, fold or unfold it."""
        if self.change is None:
            self._fold(None)
        else:
            sides = []
            for name, side in zip(self.state.names, self.state.sides(self.change), strict=True):
                if side is not None:
                    sides.append((f"batch {name}", side.run, side.grading))
            self.workbench.screens.show_runs(self, sides)

    @action("h", "History of the case", label="over time")
    def do_timeline(self) -> None:
        if (change := self.change) is not None:
            self.workbench.screens.show_timeline(self, change.suite, change.case_id, change.case_name)

    @action("y", "Copy it as Markdown", label="copy")
    def do_copy(self) -> None:
        async def copy() -> None:
            self.workbench.copy(await in_background(self.state.as_text), "the changes", self.announce)

        self.workbench.work(copy(), "diff_copy", exclusive=True)

    @action("left", "Fold the kind of change")
    def do_left(self) -> None:
        """Fold the kind of change. In the details, go back to the list."""
        if self.column == "detail":
            self._go_to("list")
        else:
            self._fold(True)

    @action("right", "Unfold it")
    def do_right(self) -> None:
        """Unfold the kind of change. If it is already unfolded, go to the details."""
        if self.column == "list" and not self._fold(False):
            self._go_to("detail")

    def _fold(self, folded: bool | None) -> bool:
        """Fold or unfold the selected kind of change (`None`: toggle). Return whether that changed anything."""
        row = self.state.selected
        if row is None:
            return False
        if folded is None:
            folded = not self.state.is_folded(row.kind)
        if not self.state.fold(folded):
            return False
        self._show_state()
        return True


async def changes_screen(app: Workbench, sides: Sequence[tuple[int, int | None]]) -> BatchDiffScreen:
    """Read two batches and return the screen of their changes.

    Each batch is given by its number and the id of a regrade (`None`: the original grades)."""
    file = file_of(app)
    state = await in_background(lambda: _read(file, sides))
    return BatchDiffScreen(app, state)


def _read(file: Path, sides: Sequence[tuple[int, int | None]]) -> DiffList:
    before, after = read_two(file, *sides)
    same = same_suites(before.batch.suites, after.batch.suites)
    with opened(file) as history:
        notes = tuple(map(one_line, instructions_between(history, before, after, same)))
    return DiffList(before, after, history_option(file), notes)
