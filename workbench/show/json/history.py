"""The JSON output of `workbench history`, version 1: the models that define its schema, and the conversions.

The schema is committed as `docs/history.schema.json`, with a definition for each kind of output. A test checks that it
is up to date. Within a version, keys may be added, and no key is changed or removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, JsonValue

from workbench.analysis.batch_diff import CHANGE_KINDS, BatchDiff, ChangeKind, deciding_grader
from workbench.analysis.gates import GateResult
from workbench.analysis.trends import TrendKey
from workbench.grading.grade import UserOutcome
from workbench.grading.status import Status
from workbench.history.records import BatchPart, BatchRow, Kind, Regrade, ResumedBy, RunRow, SuiteRef
from workbench.show.json.base import (
    EndedReport,
    Finite,
    GateReport,
    ReportModel,
    SuitePath,
    ToolArgumentsReport,
    VerdictReport,
)
from workbench.show.json.batch_diff import BatchTestReport, ChangeReport, change_report, test_reports
from workbench.show.json.records import dumped, json_lines
from workbench.show.views.batch_diff import DiffSide, names_of


class StoredSuite(ReportModel):
    """A suite as it was in a batch. `path` identifies the suite in the history."""

    suite: SuitePath
    project: str = Field(description="the folder of the suite's project")
    path: str = Field(description="path of the suite's file in its project")
    hash: str = Field(description="hash of the suite's text")
    name: str
    cases: int = Field(description="number of cases")


class StoredPart(EndedReport):
    """The runs of one suite with one model in a batch.

    A planned run that never finished is in none of the counts."""

    suite: StoredSuite
    model: str
    planned: int = Field(description="runs")
    cases: int = Field(description="number of the suite's cases that were planned")
    # The column of the history has this name. In other reports, the key is `errors`.
    error: int
    checked_calls: int = Field(0, description="number of calls whose arguments the tool's own schema could check")
    valid_calls: int = Field(0, description="number of these calls with valid arguments")
    user_errors: int = Field(0, description="number of runs that users invalidated; they are among the errors too")
    gave_up: int = Field(0, description="number of runs whose user gave up")


class StoredBatch(ReportModel):
    """A batch without its runs."""

    number: int
    name: str | None
    kind: Kind
    started_at: str = Field(description="original start of the batch, even if it was resumed; ISO 8601, UTC")
    ended_at: str | None = Field(description="null while the batch runs, or if it was interrupted")
    workbench: str = Field(description="version of the program")
    planned: int = Field(description="runs")
    missing: int = Field(description="number of runs that never ended")
    pass_rate: float | None = Field(description="passed and warned over graded runs, 0..1; null if none was graded")
    valid_arguments: float | None = Field(
        None, description="share of checked calls whose arguments are valid, 0..1; null if unknown"
    )
    parts: tuple[StoredPart, ...]
    settings: dict[str, JsonValue] = Field(description="the settings of the batch, with those of models and judges")


class ListedBatch(StoredBatch):
    """A batch in the list of batches."""

    graded_again: int = Field(description="number of regrades")


class WholeBatch(ReportModel):
    """The result of a suite in a batch that ran the whole suite."""

    batch: int
    pass_rate: float


class Trend(ReportModel):
    """The results of a suite with a model in the latest batches that ran the whole suite, oldest first."""

    suite: SuitePath
    project: str
    path: str = Field(description="path of the suite's file in its project")
    model: str
    whole_batches: tuple[WholeBatch, ...]


class DamagedBatch(ReportModel):
    """A batch that cannot be read."""

    number: int
    name: str | None
    problem: str = Field(description="the part that cannot be read, and the reason")


class ListReport(ReportModel):
    """The output of `workbench history list`."""

    report: Literal["workbench history list"] = "workbench history list"
    version: Literal[1] = 1
    history: str = Field(description="the file of the history")
    batches: tuple[ListedBatch, ...] = Field(description="the newest first")
    damaged: tuple[DamagedBatch, ...] = Field(description="batches that cannot be read, the newest first")
    trends: tuple[Trend, ...] = Field(description="pass rates of the suites of these batches, over all batches")


class StoredGrading(ReportModel):
    """New grades of a batch, made after it ran. `number` counts the regrades of the batch from 1."""

    number: int
    graded_at: str = Field(description="ISO 8601, UTC")
    workbench: str = Field(description="version of the program")


class HistoryRun(ReportModel):
    """The summary of a run. If the run never finished, its figures are null."""

    run: int = Field(description="number of the run in the batch, from 1")
    suite: SuitePath
    case_id: str
    case_name: str
    model: str
    repeat: int = Field(description="number of the repeat, from 0")
    fork: bool
    by: str | None = Field(description="the deciding grader, if it is not the case's own")
    graded_by: str | None = Field(description="the grader that decided; null if the run was not graded")
    status: Status | None
    score: Finite | None
    reason: str | None = Field(description="why the run did not pass")
    began_ms: float | None = Field(description="milliseconds since 1970")
    ended_ms: float | None = Field(description="milliseconds since 1970")
    latency_ms: float | None = Field(description="sum of the latencies of all model answers")
    loop_ms: float | None = Field(description="the whole agent loop by the wall clock; null in older histories")
    first_token_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None = Field(description="US dollars; null if unknown")
    agent: str | None = Field(
        None, description="name and version of the agent that made the run; null for a model and in older histories"
    )
    user_outcome: UserOutcome | None = Field(
        None, description="whether the user of a conversation gave up or invalidated the run (error); null otherwise"
    )
    tool_arguments: tuple[ToolArgumentsReport, ...] | None = Field(
        None, description="numbers of checked and of valid calls, by tool; empty if unknown"
    )


class _Shown(ReportModel):
    report: Literal["workbench history show"] = "workbench history show"
    version: Literal[1] = 1


class ShownBatch(StoredBatch, _Shown):
    """A batch in the output of `workbench history show`."""

    gradings: tuple[StoredGrading, ...]
    grading: int | None = Field(description="number of the grading shown; null for the original one")
    runs: tuple[HistoryRun, ...]
    gates: tuple[GateReport, ...] = Field(description="the gates of the suites when they ran; without aggregates")


class ShownRun(HistoryRun, _Shown):
    """The output of `workbench history show --run`."""

    batch: int
    events: tuple[Any, ...] = Field(description="the events, as in the lines of a recording")
    result: Any = Field(description="the result, as in the last line of a recording; empty if there is none")


class RunOfCase(HistoryRun):
    """A run of a case, with its batch."""

    batch: int
    suite_hash: str = Field(description="hash of the suite's text at the time of the run")


class ShownCase(_Shown):
    """The output of `workbench history show --case`: the latest runs of each chosen case, newest first."""

    case_id: str | None = Field(description="null if several cases are chosen; each run names its own")
    runs: tuple[RunOfCase, ...]


class ComparedBatch(StoredBatch):
    """One of two compared batches."""

    grading: int | None = Field(description="number of the grading shown; null for the original one")


class DiffReport(ReportModel):
    """The output of `workbench history diff`."""

    report: Literal["workbench history diff"] = "workbench history diff"
    version: Literal[1] = 1
    before: ComparedBatch
    after: ComparedBatch
    across: tuple[str, str] | None = Field(
        description="the models of the earlier and the later batch, if each has one and they differ"
    )
    counts: dict[ChangeKind, int] = Field(description="number of changed cases of each kind")
    compared: int = Field(description="number of cases graded in both batches")
    as_before: int = Field(description="number of these cases with the same status and score")
    left_out: int = Field(
        description="number of cases in both batches that were not graded in both, without new errors"
    )
    tests: tuple[BatchTestReport, ...]
    notes: tuple[str, ...] = Field(description="notes on the comparison")
    changes: tuple[ChangeReport, ...]


class NewVerdict(VerdictReport):
    """The new verdict on a run."""

    reason: str | None = Field(description="why the run does not pass")


class RegradedRun(ReportModel):
    """A run that was graded again."""

    run: int = Field(description="number of the run in the batch, from 1")
    suite: SuitePath
    case_id: str
    model: str
    repeat: int = Field(description="number of the repeat, from 0")
    before: VerdictReport
    after: NewVerdict
    moved: bool = Field(description="whether status or score changed")
    not_regraded: str | None = Field(description="why the run keeps its original verdict; null if it was regraded")
    asked_otherwise: bool = Field(description="whether the case has another request now than when it ran")


class RegradedBatch(ReportModel):
    """A batch that was graded again."""

    batch: int
    grading: int = Field(description="number of regrades, including this one")
    runs: tuple[RegradedRun, ...]


class RegradedReport(ReportModel):
    """The output of `workbench grade`."""

    report: Literal["workbench grade"] = "workbench grade"
    version: Literal[1] = 1
    batches: tuple[RegradedBatch, ...]


class FlakyBatch(ReportModel):
    """The results of a case's runs in one batch."""

    batch: int
    good: int = Field(description="runs that passed or were warned")
    runs: int = Field(description="graded runs")


class FlakyCaseReport(ReportModel):
    """A case whose results with a model vary, although neither the case nor the model changed."""

    suite: SuitePath
    suite_name: str
    case_id: str
    case_name: str
    model: str
    since_batch: int = Field(description="the first batch with another result than those before it")
    since: str = Field(description="start of that batch, ISO 8601, UTC")
    good: int
    runs: int
    low: float = Field(description="lower bound of the 95% interval of the share of good runs")
    high: float = Field(description="upper bound of that interval")
    batches: tuple[FlakyBatch, ...] = Field(description="the oldest first")


class FlakyReport(ReportModel):
    """The output of `workbench history flaky`."""

    report: Literal["workbench history flaky"] = "workbench history flaky"
    version: Literal[1] = 1
    batches: int = Field(description="number of batches examined")
    cases: tuple[FlakyCaseReport, ...]


class RunningBatch(ReportModel):
    """A batch that is running."""

    number: int
    name: str | None
    history: str = Field(description="the file of the history")
    command: ResumedBy = Field(description="the command that started the batch")
    started_at: str = Field(description="ISO 8601, UTC")
    planned: int = Field(description="runs")
    over: int = Field(description="number of finished runs")
    attachable: bool = Field(description="whether it runs without a terminal, so that 'workbench attach' shows it")
    process: int | None = Field(description="the id of the batch's process, if it can be attached")


class RunningReport(ReportModel):
    """The output of `workbench batches`."""

    report: Literal["workbench batches"] = "workbench batches"
    version: Literal[1] = 1
    batches: tuple[RunningBatch, ...] = Field(
        description="the batches without a terminal first; within each group the latest first"
    )


HistoryReport = (
    ListReport | ShownBatch | ShownRun | ShownCase | DiffReport | RegradedReport | FlakyReport | RunningReport
)
"""Every kind of output."""


def list_report(
    file: Path,
    shown: Iterable[BatchRow],
    trends: Mapping[TrendKey, Sequence[tuple[int, float]]],
    regraded: Mapping[int, int],
) -> ListReport:
    """Return the list of batches and the trends of their suites. Damaged batches are listed separately."""
    listed, damaged = [], []
    suites: dict[str, SuiteRef] = {}
    for batch in shown:
        # The parts and suites of a damaged batch cannot be read.
        if batch.damage is not None:
            damaged.append(DamagedBatch(number=batch.number, name=batch.name, problem=batch.damage))
            continue
        again = regraded.get(batch.number, 0)
        listed.append(ListedBatch.made(batch, **_batch(batch), graded_again=again))
        for suite in batch.suites:
            suites[suite.key] = suite
    of_suites = []
    for (key, model), rates in trends.items():
        if key in suites:
            of_suites.append(_trend(suites[key], model, rates))
    return ListReport(history=str(file), batches=tuple(listed), damaged=tuple(damaged), trends=tuple(of_suites))


def _trend(suite: SuiteRef, model: str, rates: Sequence[tuple[int, float]]) -> Trend:
    batches = tuple(WholeBatch(batch=number, pass_rate=rate) for number, rate in rates)
    return Trend(suite=str(suite.file), project=suite.project, path=suite.path, model=model, whole_batches=batches)


def shown_batch(
    batch: BatchRow,
    gradings: Iterable[Regrade],
    grading: Regrade | None,
    runs: Iterable[RunRow],
    gates: Iterable[GateResult],
) -> ShownBatch:
    """Return a batch with its runs and gates.

    The grades are those of `grading`, or the original grades if `grading` is `None`."""
    regrades = tuple(StoredGrading.made(each, workbench=each.program) for each in gradings)
    return ShownBatch.made(
        batch,
        **_batch(batch),
        gradings=regrades,
        grading=_number(grading),
        runs=tuple(map(HistoryRun.model_validate, map(_run, runs))),
        gates=tuple(map(GateReport.model_validate, gates)),
    )


def shown_run(run: RunRow, events: Iterable[JsonValue], result: Mapping[str, JsonValue]) -> ShownRun:
    """Return a run with its events and its result."""
    shown = {"batch": run.batch, "events": tuple(events), "result": dict(result)}
    return ShownRun.model_validate({**_run(run), **shown})


def shown_case(case_ids: Sequence[str], runs: Iterable[RunRow]) -> ShownCase:
    """Return the runs of cases in all batches."""
    of_case = []
    for run in runs:
        values = {**_run(run), "batch": run.batch, "suite_hash": run.suite.hash}
        of_case.append(RunOfCase.model_validate(values))
    return ShownCase(case_id=case_ids[0] if len(case_ids) == 1 else None, runs=tuple(of_case))


def diff_report(
    diff: BatchDiff,
    before: DiffSide,
    after: DiffSide,
    suites: Mapping[str, SuiteRef],
    notes: Iterable[str],
) -> DiffReport:
    """Return the report on the changes from one batch to another. `suites` has the suites by `SuiteRef.key`."""
    changes = tuple(change_report(change, suites) for change in diff.changes)
    return DiffReport.made(
        diff,
        as_before=diff.unchanged_cases,
        before=_compared(before),
        after=_compared(after),
        counts={kind: len(diff.of(kind)) for kind in CHANGE_KINDS},
        tests=test_reports(diff.tests, *names_of(before, after)),
        notes=tuple(notes),
        changes=changes,
    )


def lines_of_diff(report: DiffReport) -> Iterator[str]:
    """Yield a line of JSON for each change."""
    return json_lines(dumped(report.changes))


def _compared(side: DiffSide) -> ComparedBatch:
    return ComparedBatch.made(side.batch, **_batch(side.batch), grading=_number(side.grading))


def _number(grading: Regrade | None) -> int | None:
    return grading.number if grading is not None else None


def _batch(batch: BatchRow) -> dict[str, object]:
    parts = tuple(map(_part, batch.parts))
    return {"workbench": batch.program, "parts": parts, "settings": dict(batch.settings)}


def _part(part: BatchPart) -> StoredPart:
    suite = StoredSuite.made(part.suite, suite=str(part.suite.file))
    counts = {status.column: count for status, count in part.counts.items()}
    return StoredPart.made(part, suite=suite, **counts)


def _run(run: RunRow) -> dict[str, object]:
    values: dict[str, object] = {
        "case_id": run.case_id,
        "case_name": run.case_name,
        "model": run.model,
        "repeat": run.repeat,
        "by": run.by,
        # A history counts the runs of a batch from 0, and commands count them from 1.
        "run": run.place + 1,
        "suite": str(run.suite.file),
        "fork": run.is_fork,
        # A run that never finished has the same keys, and all values are null.
        "graded_by": None,
        **dict.fromkeys(_FIGURES),
    }
    if run.figures is not None:
        values["graded_by"] = deciding_grader(run.figures)
        values |= {name: getattr(run.figures, name) for name in _FIGURES}
    return values


_FIGURES = (
    *("status", "score", "reason", "began_ms", "ended_ms", "latency_ms", "loop_ms", "first_token_ms"),
    *("input_tokens", "output_tokens", "cost_usd", "agent", "user_outcome", "tool_arguments"),
)
