"""The changes between two batches as JSON, for `workbench history diff` and for a report with a baseline."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from workbench.analysis.batch_diff import CaseChange, CaseSide, ChangeKind
from workbench.analysis.paired import Paired
from workbench.grading.status import Status
from workbench.history.records import SuiteRef
from workbench.show.json.base import Finite, ReportModel, SuitePath
from workbench.show.json.paired import PairedReport, paired_fields


class ChangedCellReport(ReportModel):
    """The result of a case, by the rule for its repeats."""

    model: str
    status: Status
    score: Finite | None
    good: int = Field(description="number of graded runs that passed or were warned")
    graded: int = Field(description="number of graded runs")
    latency_ms: float | None = Field(description="mean model latency of the graded runs")
    reason: str | None


class ChangeReport(ReportModel):
    """The change of a case from the earlier batch, or the baseline, to the later one."""

    kind: ChangeKind
    suite: SuitePath
    case_id: str
    case_name: str
    model: str
    before: ChangedCellReport | None
    after: ChangedCellReport | None
    sentence: str


class _OfModel(ReportModel):
    model: str


class BatchTestReport(PairedReport, _OfModel):  # the fields of the last base class come first
    """The paired tests of one model: the first column is the earlier batch, or the baseline, the second the later."""


def change_report(change: CaseChange, suites: Mapping[str, SuiteRef]) -> ChangeReport:
    """Returns a change with the results of the case before and after; `suites` by their keys."""
    return ChangeReport(
        kind=change.kind,
        suite=str(suites[change.suite].file),
        case_id=change.case_id,
        case_name=change.case_name,
        model=change.model,
        before=_cell(change.before),
        after=_cell(change.after),
        sentence=change.sentence,
    )


def test_reports(tests: Mapping[str, Paired], before: str, after: str) -> tuple[BatchTestReport, ...]:
    """Returns the results of the paired tests of models; `before` and `after` name the batches."""
    return tuple(
        BatchTestReport.model_validate({"model": model, **paired_fields(test, before, after)})
        for model, test in tests.items()
    )


def _cell(cell: CaseSide | None) -> ChangedCellReport | None:
    return ChangedCellReport.model_validate(cell) if cell is not None else None
