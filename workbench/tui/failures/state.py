"""The failed runs of some suites as the screen of failures lists them: causes, the runs below each, a filter, a
cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.analysis.causes import Cause
from workbench.analysis.failures import CauseGroup, FailedRun, Failures, failures_of
from workbench.grading.grade import GRADED
from workbench.reports.failures import failures_text
from workbench.tui.run_book.record import RunRecord

RowKey = tuple[str, Cause | None, str]
"""What a row stands for, the same when failures are looked at again: its kind, its cause, the id of its run."""


class FailureRow(NamedTuple):
    """One row: a cause with the runs below it that the filter shows, one of these runs, or the confusion table."""

    kind: Literal["cause", "run", "table"]
    group: CauseGroup | None = None
    run: FailedRun | None = None
    shown: int = 0
    """Of a cause, how many of its runs are shown, unfolded or not."""

    @property
    def key(self) -> RowKey:
        """What the row stands for."""
        cause = self.group.cause if self.group is not None else None
        return self.kind, cause, self.run.result.run_id if self.run is not None else ""


class FailureList:
    """All failures of some runs, as rows: none before `find_out` was called."""

    def __init__(self, records: Sequence[RunRecord], suite_names: Mapping[Path, str]) -> None:
        done = [record for record in records if record.status is not None]
        self.records = [record for record in done if record.status in GRADED]
        # As they are now: they may be graded anew meanwhile.
        self._unread = [(record.glance(), record.shown_case) for record in self.records]
        self.failures: Failures = failures_of(())
        self.suite_names = {str(path): name for path, name in suite_names.items()}
        self.several_models = len({record.model for record in done}) > 1
        self.under_way = len(records) - len(done)
        """Runs that were not over when this was made."""
        self.filter = ""
        self.rows: list[FailureRow] = []
        self.cursor = 0
        self._folded: set[Cause] = set()
        self._texts: dict[int, str] = {}

    def find_out(self) -> None:
        """Find out why runs failed. Reads each of them, which takes a second for ten thousand: may be called on another
        thread while nobody else uses this."""
        read = ((result(), case) for result, case in self._unread)
        self.failures = failures_of((result, case) for result, case in read if result is not None)
        self._unread = []
        self._rebuild()

    @property
    def several_suites(self) -> bool:
        return len(self.suite_names) > 1

    @property
    def selected(self) -> FailureRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    @property
    def record(self) -> RunRecord | None:
        """The run under the cursor."""
        row = self.selected
        return self.records[row.run.index] if row is not None and row.run is not None else None

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, the nearest one there is."""
        self.cursor = min(max(index, 0), max(len(self.rows) - 1, 0))

    def resume(self, folded: frozenset[Cause], row: RowKey | None) -> None:
        """Fold what was folded before, and go to where the cursor was, if that is still there."""
        self._folded = set(folded)
        self._rebuild(row)

    @property
    def folded(self) -> frozenset[Cause]:
        """The causes whose runs are hidden."""
        return frozenset(self._folded)

    def is_folded(self, group: CauseGroup) -> bool:
        """Whether the runs of a cause are hidden; a filter shows them."""
        return group.cause in self._folded and not self.filter

    def fold(self, folded: bool) -> bool:
        """Fold or unfold the cause that the cursor is on or below; whether that changed anything."""
        row = self.selected
        if row is None or row.group is None or self.filter or self.is_folded(row.group) == folded:
            return False
        (self._folded.add if folded else self._folded.discard)(row.group.cause)
        self._rebuild((FailureRow("cause", row.group) if folded else row).key)
        return True

    def set_filter(self, text: str) -> None:
        """Show only runs that have every word of `text` in their suite, case, model, tools or parameters."""
        self.filter = text
        self._rebuild(self.selected.key if self.selected is not None else None)

    def as_text(self) -> str:
        """All of it, for copying."""
        return failures_text(self.failures, self.suite_names)

    def _rebuild(self, stay_on: RowKey | None = None) -> None:
        words = self.filter.casefold().split()
        self.rows = []
        for group in self.failures.groups:
            runs = [run for run in group.runs if self._fits(run, words)]
            if runs:
                self.rows.append(FailureRow("cause", group, shown=len(runs)))
                if not self.is_folded(group):
                    self.rows += [FailureRow("run", group, run) for run in runs]
        if self.failures.confusion.counts and not words:
            self.rows.append(FailureRow("table"))
        self.move_to(next((at for at, row in enumerate(self.rows) if row.key == stay_on), self.cursor))

    def _fits(self, run: FailedRun, words: Sequence[str]) -> bool:
        if not words:
            return True
        text = self._texts.get(run.index)
        if text is None:
            result = run.result
            subjects = " ".join(str(symptom.subject or "") for symptom in run.symptoms)
            suite = self.suite_names.get(result.suite, "")
            said = f"{suite} {result.case_name} {result.case_id} {result.model} {subjects}"
            text = self._texts[run.index] = said.casefold()
        return all(word in text for word in words)
