"""The state of the screen of failures: causes, their runs, a filter and a cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from workbench.analysis.failures import Cause, CauseGroup, FailedRun, Failures, failures_of
from workbench.show.views.failures import failures_text
from workbench.tui.kit.rows import FoldingState
from workbench.tui.run_book.record import RunRecord

RowKey = tuple[str, Cause | None, str]
"""Identifies a row across openings of the screen: its kind, cause and run id."""


class FailureRow(NamedTuple):
    """One row: a cause with the runs that match the filter, one of these runs, or the confusion table."""

    kind: Literal["cause", "run", "table"]
    group: CauseGroup | None = None
    run: FailedRun | None = None
    shown: int = 0
    """The number of matching runs of a cause, whether folded or not."""

    @property
    def key(self) -> RowKey:
        """What identifies the row."""
        cause = self.group.cause if self.group is not None else None
        return self.kind, cause, self.run.result.run_id if self.run is not None else ""


class FailureList(FoldingState[FailureRow]):
    """The failures of some runs as rows. There are none before `find_out` was called."""

    def __init__(self, records: Sequence[RunRecord], suite_names: Mapping[Path, str]) -> None:
        super().__init__()
        done = [(record, record.status) for record in records if record.status is not None]
        self.records = [record for record, status in done if status.graded]
        # The state at this moment; runs may be regraded meanwhile.
        self._unread = [(record.glance(), record.shown_case) for record in self.records]
        self.failures: Failures = failures_of(())
        self.suite_names = {str(path): name for path, name in suite_names.items()}
        self.several_models = len({record.model for record, _ in done}) > 1
        self.under_way = len(records) - len(done)
        """The number of runs that were active when this was created."""

    def find_out(self) -> None:
        """Find out why runs failed. Reads every run, about a second for ten thousand. May be called on a thread while
        nothing else uses this object."""
        read = ((result(), case) for result, case in self._unread)
        self.failures = failures_of((result, case) for result, case in read if result is not None)
        self._unread = []
        self._rebuild()

    @property
    def several_suites(self) -> bool:
        return len(self.suite_names) > 1

    @property
    def record(self) -> RunRecord | None:
        """The run under the cursor."""
        row = self.selected
        return self.records[row.run.index] if row is not None and row.run is not None else None

    def resume(self, folded: frozenset[Cause], row: RowKey | None) -> None:
        """Restore folds and, if the row still exists, the cursor."""
        self._folded = set(folded)
        self._rebuild(row)

    @property
    def folded(self) -> frozenset[Cause]:
        """The causes whose runs are hidden."""
        return frozenset(group.cause for group in self.failures.groups if group.cause in self._folded)

    def as_text(self) -> str:
        """Return everything as text, for copying."""
        return failures_text(self.failures, self.suite_names)

    def _key(self, row: FailureRow) -> RowKey:
        return row.key

    def _group(self, row: FailureRow) -> Cause | None:
        return row.group.cause if row.group is not None else None

    def _found(self) -> list[FailureRow]:
        """Return the rows that match the filter, which searches suite, case, model, tools and parameters."""
        found: list[FailureRow] = []
        for group in self.failures.groups:
            runs = [run for run in group.runs if self._fits(run.index, partial(self._text_of, run))]
            if runs:
                found.append(FailureRow("cause", group, shown=len(runs)))
                if not self.is_folded(group.cause):
                    found += [FailureRow("run", group, run) for run in runs]
        if self.failures.confusion.counts and not self.filter.strip():
            found.append(FailureRow("table"))
        return found

    def _text_of(self, run: FailedRun) -> str:
        result = run.result
        subjects = " ".join(str(symptom.subject or "") for symptom in run.symptoms)
        suite = self.suite_names.get(result.suite, "")
        return f"{suite} {result.case_name} {result.case_id} {result.model} {subjects}"
