"""The state of the screen of changes between two batches: foldable kinds, the cases of each, a filter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from workbench.analysis.batch_diff import KINDS, BatchDiff, CaseChange, ChangeKind, batch_diff
from workbench.analysis.batch_tests import tests_of
from workbench.analysis.comparison import Cell, CellKey
from workbench.history.records import Regrade, RunRow, SuiteRef, same_suites
from workbench.reports.batch_diff import by_grading, markdown_lines, names_of, notes_between, test_lines, title_of
from workbench.reports.history_list import called
from workbench.reports.visible import one_line
from workbench.tui.history.batches import figures_in
from workbench.tui.kit.rows import FoldingState
from workbench.tui.run_book.kept import ReadBatch


class DiffRow(NamedTuple):
    """One row: a kind of change with the number of matches, or one change."""

    kind: ChangeKind
    shown: int = 0
    change: CaseChange | None = None


class Side(NamedTuple):
    """A run of one of the two batches and its grading."""

    run: RunRow
    grading: Regrade | None


class DiffList(FoldingState[DiffRow]):
    """The changes between two batches as rows."""

    def __init__(self, before: ReadBatch, after: ReadBatch, history: str) -> None:
        """Compare two batches. `history` is the option that a typed command needs to find them."""
        super().__init__()
        self.before = before
        self.after = after
        same = same_suites(before.batch.suites, after.batch.suites)
        figures = figures_in(before.runs), figures_in(after.runs)
        unfinished = _unfinished(before.runs), _unfinished(after.runs)
        self.diff: BatchDiff = batch_diff(*figures, unfinished=unfinished, same=same)
        tests = tests_of(*figures, across=self.diff.across, same=same)
        self.tests = tuple(test_lines(tests, *names_of(before, after)))
        """Whether one batch is significantly better."""
        self.notes = tuple(notes_between(self.diff, before, after, same, history))
        """Further notes on the comparison."""
        earlier = {same.get(suite.key, suite.key): suite for suite in before.batch.suites}
        later = {suite.key: suite for suite in after.batch.suites}
        self.suites: dict[str, SuiteRef] = earlier | later
        self._changed = {key for key in earlier.keys() & later.keys() if earlier[key].hash != later[key].hash}
        self.several_models = len(self.diff.models) > 1
        self._rebuild()

    # Content

    @property
    def names(self) -> tuple[str, str]:
        """The names of the earlier and the later batch, with their grading if it is not the original one."""
        before, after = (f"{called(side.batch)}{by_grading(side.grading)}" for side in (self.before, self.after))
        return before, after

    @property
    def several_suites(self) -> bool:
        return len(self.suites) > 1

    def suite_changed(self, key: str) -> bool:
        """Return whether a suite was different in the later batch."""
        return key in self._changed

    def sides(self, change: CaseChange) -> tuple[Side | None, Side | None]:
        """Return the runs to show of the earlier and the later batch. Among repeats, that is the first with the case's
        status."""
        return _side(self.before, change.before), _side(self.after, change.after)

    def as_text(self) -> str:
        """Return all changes as Markdown."""
        title, notes = title_of(self.before, self.after), (*self.tests, *self.notes)
        return "\n".join(
            markdown_lines(self.diff, self.suites, title=title, notes=notes, with_model=self.several_models)
        )

    def _key(self, row: DiffRow) -> tuple[ChangeKind, int | None]:
        return row.kind, id(row.change) if row.change is not None else None

    def _group(self, row: DiffRow) -> ChangeKind:
        return row.kind

    def _found(self) -> list[DiffRow]:
        """Return the rows that match the filter, which searches suite, case, model, kind and outcome."""
        found: list[DiffRow] = []
        for kind in KINDS:
            changes = [each for each in self.diff.of(kind) if self._fits(id(each), partial(self._text_of, each))]
            if changes:
                found.append(DiffRow(kind, len(changes)))
                if not self.is_folded(kind):
                    found += [DiffRow(kind, change=change) for change in changes]
        return found

    def _text_of(self, change: CaseChange) -> str:
        suite = self.suites[change.suite]
        said = f"{change.kind} {suite.name} {suite.path} {change.case_id} {change.case_name} {change.model}"
        return f"{said} {change.sentence}"


def _unfinished(runs: Sequence[RunRow]) -> set[CellKey]:
    return {(run.suite.key, run.case_id, run.model) for run in runs if run.figures is None}


def _side(read: ReadBatch, cell: Cell | None) -> Side | None:
    if cell is None:
        return None
    wanted = next((run for run in cell.runs if run.status == cell.status), cell.runs[0])
    return next((Side(run, read.grading) for run in read.runs if run.figures is wanted), None)


def change_title(state: DiffList, change: CaseChange) -> str:
    """Return the case, with its suite if there are several."""
    name = one_line(change.case_name)
    return f"{one_line(state.suites[change.suite].name)} › {name}" if state.several_suites else name
