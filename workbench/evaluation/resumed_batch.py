"""A resumed batch of the history: the exclusive right to resume it, and its runs that finished earlier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.engine.missing_runs import Resumption
from workbench.engine.recordings import judging_of_recording, result_of_recording
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.history.database import ReportProblem
from workbench.history.history import History
from workbench.history.records import BatchRow, RunRow, SuiteRef, Tally
from workbench.suite.model import Case
from workbench.trajectory.recording import RecordingError

if TYPE_CHECKING:
    from workbench.history.writer import BatchHandle


@dataclass(frozen=True)
class ResumedBatch:
    """A batch of the history whose missing runs are planned."""

    batch: BatchRow
    handle: BatchHandle = field(repr=False)
    """The writer's handle on the batch. A caller that does not run the plan must release the handle's claim."""
    before: RunsBefore
    """The runs that finished earlier."""
    in_full: bool = False
    """Whether the report includes the runs that finished earlier."""
    left_out: bool = False
    """Whether some of the earlier runs cannot be reported because their suite can no longer be read."""

    @property
    def finished_runs(self) -> Mapping[int, RunSummary]:
        """The figures of the runs that finished earlier, by place in the plan.

        Raises HistoryError."""
        return self.before.figures


@dataclass(frozen=True)
class RunsBefore:
    """The runs of a batch that finished before it was resumed: all runs except those at the places in `missing`.

    `cases` are the cases of the batch's suites, by the ids that the history stores. Runs are read from the history only
    when needed, because that takes longer than planning the missing runs."""

    file: Path
    batch: int
    count: int
    missing: frozenset[int] = field(repr=False)
    cases: Mapping[SuiteRef, Mapping[str, Case]] = field(repr=False)
    _figures: dict[int, RunSummary] = field(default_factory=dict, repr=False, compare=False)

    @property
    def tallies(self) -> list[Tally]:
        """The numbers of earlier runs by status. They are valid until another run of the batch ends.

        Raises HistoryError."""
        with History(self.file) as history:
            return history.tallies(self.batch)

    @property
    def figures(self) -> Mapping[int, RunSummary]:
        """The figures of the runs by place in the plan, with the present paths of suites and ids of cases.

        Raises HistoryError."""
        # The figures are cached, because planning, progress and the report all use them.
        if not self._figures:
            with History(self.file) as history:
                for row in self._with_results(history.each_run(self.batch)):
                    self._figures[row.place] = figures_of(row, self.cases.get(row.suite, {}))
        return self._figures

    def read(self, on_left_out: ReportProblem) -> Iterator[tuple[int, Case, RunResult]]:
        """Yield tuples of a run's place in the plan, the run's case, and its packed result.

        Runs get the present ids of their cases, so that a report joins them with new runs. `on_left_out` is called with
        a message about each damaged run. Raises HistoryError."""
        # This import is lazy, because the module loads pickle, and most plans resume no batch.
        from workbench.grading.packed import SharedParts

        in_common = SharedParts()
        with History(self.file) as history:
            readable = history.readable_runs(self.batch, on_left_out)
            finished = (row for row in self._with_results(readable) if row.suite in self.cases)
            for row, recording in history.recordings(finished, None, on_left_out):
                assert row.figures is not None
                damage = f"run {row.place + 1} of batch {row.batch} is damaged"
                case = self.cases[row.suite].get(row.case_id)
                try:
                    result = result_of_recording(recording)
                    judging = judging_of_recording(recording)
                except RecordingError as error:
                    on_left_out(f"{damage}: {error}")
                    continue
                if case is None:
                    on_left_out(f"{damage}: {row.suite.file} has no case {row.case_id!r}")
                    continue
                figures = row.figures
                # With the case's present id and name, a report joins this run with the case's new runs.
                result = replace(
                    result,
                    case_id=case.id,
                    case_name=row.case_name,
                    grading=figures.grading,
                    cost_usd=figures.cost_usd,
                    judging=judging,
                )
                yield row.place, case, in_common.packed(result)

    def _with_results(self, rows: Iterable[RunRow]) -> Iterator[RunRow]:
        return (row for row in rows if not row.missing and row.place not in self.missing)


def runs_before(
    resumption: Resumption, cases: Mapping[SuiteRef, Mapping[str, Case]] = MappingProxyType({})
) -> RunsBefore:
    batch = resumption.batch
    missing = frozenset(resumption.handle.places.values())
    return RunsBefore(resumption.history, batch.number, batch.planned - batch.missing, missing, cases)


def figures_of(row: RunRow, cases: Mapping[str, Case] = MappingProxyType({})) -> RunSummary:
    """Return the figures of a finished run, with the present suite path and case id."""
    assert row.figures is not None
    case_id = row.case_id
    if case_id in cases:
        case_id = cases[case_id].id
    return replace(row.figures, suite=str(row.suite.file), case_id=case_id)
