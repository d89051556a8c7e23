"""The JSON report of a batch, version 1: the models that define its schema, and the conversion.

The schema is committed as `docs/report.schema.json`, and a test checks that it is up to date. Within a version, keys
may be added, and no key is changed or removed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from pydantic import ConfigDict, Field, JsonValue

from workbench.analysis.causes import ADVICE, Cause, CauseNumbers, FailureNumbers
from workbench.analysis.gates import Quality
from workbench.analysis.published_reports import published_reports
from workbench.analysis.totals import Totals, counted_runs, totals_by_model
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.repeats import CaseResult
from workbench.grading.status import Status
from workbench.show.json.base import (
    BROKEN_SUITES,
    AggregateReport,
    AgreementReport,
    BrokenSuiteReport,
    CountsReport,
    Finite,
    GateReport,
    JudgeUseReport,
    LatencyReport,
    ReportModel,
    SuitePath,
    UsageReport,
    ValidArgumentsReport,
    VerdictReport,
    broken_suites,
)
from workbench.show.json.batch_diff import BaselineReport, baseline_report
from workbench.show.json.records import Records, document_pieces
from workbench.show.json.run_report import RunReport, run_fields
from workbench.show.views.baseline import AgainstBaseline
from workbench.show.views.grade_moves import Regraded
from workbench.show.views.runs_report import BrokenSuite, Redactor, RunsReport
from workbench.show.views.timing import Timing
from workbench.suite.grading_model import RepeatRule
from workbench.suite.model import Case
from workbench.suite.suite_file import LineOf, unknown_line


class TotalsReport(CountsReport):
    """Numbers of runs by status, and means and sums over runs.

    No mean or rate includes runs that ended in an error or were skipped, stopped or not graded."""

    runs: int
    mean_score: Finite | None = Field(description="0..1; null if nothing was scored")
    pass_rate: float | None = Field(description="passed and warned over graded runs, 0..1; null if none was graded")
    latency: LatencyReport | None
    usage: UsageReport | None
    retries: int = Field(description="number of model requests that were retried")
    executions: int = Field(description="number of calls executed on a server")
    cost_usd: float | None = Field(
        description=(
            "US dollars for the runs of known cost; 0 if no model was asked over a network; null without runs, or if "
            "only runs of unknown cost were paid for"
        )
    )
    runs_of_unknown_cost: int = Field(description="number of runs of unknown cost, not in `cost_usd`")
    user_cost_usd: float | None = Field(
        0, description="US dollars for the models that played users, not in `cost_usd`; null if some cost is unknown"
    )
    judging: JudgeUseReport
    endpoint_faults: int = Field(0, description="number of runs that failed through a fault of the endpoint")
    cost_limited: int = Field(0, description="number of runs stopped by the limit on cost")
    valid_arguments: ValidArgumentsReport | None = Field(
        None, description="validity of the graded runs' calls by the tools' own schemas"
    )
    agreement: tuple[AgreementReport, ...] = Field(
        (), description="for imported runs, the agreement of their own system's verdicts with those of the cases"
    )


class ArgumentStatisticsReport(ReportModel):
    """Statistics of an argument's score in the graded runs of a case. Deviations are population standard deviations."""

    argument: str
    scores: tuple[Finite, ...] = Field(description="for each run, the mean score over its pairs; 0 without a pair")
    mean_score: Finite
    deviation: Finite
    normalised: tuple[Finite, ...] = Field(description="the scores divided by the weight")
    mean_normalised: Finite
    normalised_deviation: Finite
    weight: float


class CaseReport(ReportModel):
    """The result of a case with one model, combined from all of its runs by `rule`."""

    suite: SuitePath
    case_id: str
    model: str
    grader: str | None = Field(description="the grader that decided; null if no run was graded")
    rule: RepeatRule
    status: Status
    score: Finite | None = Field(description="mean score of the graded runs")
    deviation: Finite | None = Field(description="population standard deviation of the scores")
    reason: str | None = Field(description="why the case did not pass, if there is a single reason")
    statuses: tuple[Status, ...] = Field(description="the statuses of all runs, in the order of the repeats")
    arguments: tuple[ArgumentStatisticsReport, ...] = Field(description="empty for a single graded run")


class SubjectReport(ReportModel):
    """A tool or a parameter that a cause of failures concerns, with the number of failures."""

    tool: str
    argument: str | None
    instead: str | None = Field(description="the tool that was called instead of `tool`")
    count: int


class CauseReport(ReportModel):
    """A cause of failures, and the runs that it explains. A run has one main cause, and may have other causes."""

    cause: Cause
    runs: tuple[int, ...] = Field(description="indices in the report's `runs`, from 0")
    main: tuple[int, ...] = Field(description="number of these runs with this main cause")
    cases: int = Field(description="number of cases of these runs")
    advice: str = Field(description="what to do, in one sentence")
    meaning: str = Field("", description="what the cause means")
    subjects: tuple[SubjectReport, ...] = Field(description="the most frequent first")


class ConfusionReport(ReportModel):
    """How often the model called one tool where another tool, or no tool, was expected."""

    expected: str | None = Field(description="null if no call was expected")
    called: str | None = Field(description="null if no call was made")
    count: int


class FailuresReport(ReportModel):
    """Why graded runs failed, and which tools were called in place of the expected tools."""

    causes: tuple[CauseReport, ...]
    confusion: tuple[ConfusionReport, ...]


class PublishedSummary(ReportModel):
    """The numbers that a published benchmark would report for a suite. The suite's grader reproduces the benchmark."""

    suite: SuitePath
    model: str | None = Field(description="null for the system's comparison of several models")
    grader: str
    system: str
    numbers: dict[str, JsonValue] = Field(description="the numbers, with the names and rounding of that system")


class TimingReport(ReportModel):
    """The duration of the batch, from its start to the end of its last run, and the number of runs per minute."""

    took_ms: float
    start_up_ms: float = Field(description="the part in which servers or models were starting; not included in any run")
    cases_a_minute: float | None = Field(
        description="graded cases per minute in which at least one run was in progress; null without any"
    )


class ReportDocument(ReportModel):
    """The report on a whole batch."""

    model_config = ConfigDict(title="Report")  # the name in the schema

    report: Literal["workbench"] = "workbench"
    version: Literal[1] = 1
    workbench: str = Field(description="version of the program")
    started_at: str = Field(description="original start of the batch, even if it was resumed; ISO 8601, UTC")
    interrupted: bool
    exit_code: int
    nothing_graded: bool = Field(False, description="whether no run that counts was graded, or nothing was compared")
    forks: int = Field(description="number of forks; they count nowhere else here, unless all runs are forks")
    totals: TotalsReport
    totals_per_model: dict[str, TotalsReport] = Field(default_factory=dict, description="the totals of each model")
    gates: tuple[GateReport, ...]
    aggregates: tuple[AggregateReport, ...]
    runs: tuple[RunReport, ...]
    cases: tuple[CaseReport, ...] = Field(description="the result of each case with each model")
    failures: FailuresReport
    published: tuple[PublishedSummary, ...] = Field(
        description="the report of each suite by the published system behind its deciding grader"
    )
    batch: int | None = Field(description="number of the batch in the history; null if it is not stored")
    baseline: BaselineReport | None = Field(description="the changes since the baseline; null without a baseline")
    timing: TimingReport | None = Field(description="the duration of the batch; null in a report on earlier runs")
    broken_suites: tuple[BrokenSuiteReport, ...] = Field((), description=BROKEN_SUITES)


class RegradedReport(ReportModel):
    """A recording with its original grade and its new grade."""

    recording: str
    before: VerdictReport | None
    after: VerdictReport
    moved: bool
    not_regraded: str | None
    """The reason why a run keeps its recorded verdict: a check needs a secret value that the recording lacks."""


class RegradeReport(ReportDocument):
    """The report of `workbench grade`: the report of a batch, and the recording of each of its runs."""

    model_config = ConfigDict(title="RegradeReport")

    regraded: tuple[RegradedReport, ...]


@dataclass(frozen=True, kw_only=True)
class BatchFacts:
    """Facts about a batch that its runs do not contain.

    `batch` is the batch's number in the history, or `None` for a batch that is not in the history. `cases` maps the id
    of a run to its case."""

    program_version: str
    started_at: str
    interrupted: bool
    exit_code: int
    nothing_graded: bool = False
    batch: int | None = None
    baseline: AgainstBaseline | None = None
    timing: Timing | None = None
    broken: Sequence[BrokenSuite] = ()
    cases: Mapping[str, Case] | None = None


class JsonReport(RunsReport, Protocol):
    """The interface through which writers of JSON reports read the runs of an evaluation."""

    def document_without_records(self) -> ReportDocument: ...
    def json_records(self) -> dict[str, Records[Any]]: ...


def lines_of_runs(report: JsonReport) -> Iterator[str]:
    """Yield a line of JSON for each run of the report."""
    return (f"{text}\n" for text in report.json_records()["runs"].texts(report.secrets))


def report_of(
    results: Sequence[RunResult],
    quality: Quality,
    failures: FailureNumbers,
    facts: BatchFacts,
    line_of: LineOf = unknown_line,
) -> ReportDocument:
    """Return the JSON report of a batch.

    `quality` and `failures` describe the runs that count."""
    records = report_records(results, quality.cases, line_of)
    totals = totals_by_model(counted_runs(results))
    document = report_without_records(results, totals, quality, failures, facts)
    return document.model_copy(update={name: tuple(each) for name, each in records.items()})


def report_without_records(
    results: Sequence[RunResult],
    totals: tuple[Totals, dict[str, Totals]],
    quality: Quality,
    failures: FailureNumbers,
    facts: BatchFacts,
) -> ReportDocument:
    """Return the JSON report of a batch without its runs and cases. `report_records` provides these one at a time.

    `totals` are those of `totals_by_model` for the runs that count."""
    whole, of_models = totals
    per_model = {model: TotalsReport.model_validate(each) for model, each in of_models.items()}
    baseline = timing = None
    if facts.baseline is not None:
        baseline = baseline_report(facts.baseline)
    if facts.timing is not None:
        timing = TimingReport.model_validate(facts.timing)
    # All values are valid, and validating the document would build the schemas of its runs and cases.
    return ReportDocument.model_construct(
        workbench=facts.program_version,
        started_at=facts.started_at,
        interrupted=facts.interrupted,
        exit_code=facts.exit_code,
        nothing_graded=facts.nothing_graded,
        forks=sum(result.is_fork for result in results),
        totals=TotalsReport.model_validate(whole),
        totals_per_model=per_model,
        gates=tuple(map(GateReport.model_validate, quality.gates)),
        aggregates=tuple(map(AggregateReport.model_validate, quality.aggregates)),
        runs=(),
        cases=(),
        failures=failures_report(failures),
        published=published_summaries(counted_runs(results), facts.cases),
        batch=facts.batch,
        baseline=baseline,
        timing=timing,
        broken_suites=broken_suites(facts.broken),
    )


def report_records(
    results: Iterable[RunResult], cases: Iterable[CaseResult], line_of: LineOf = unknown_line
) -> dict[str, Records[Any]]:
    """Return the runs and the cases of a report, to be written one at a time."""
    runs = Records(RunReport, results, lambda result: run_fields(result, line_of(result.suite, result.case_id)))
    return {"runs": runs, "cases": Records(CaseReport, cases, case_fields)}


def case_fields(case: CaseResult) -> dict[str, Any]:
    """Return the fields of a `CaseReport` by name.

    The value of a nested report is any object with the same attributes."""
    first = case.runs[0]
    return {
        "suite": first.suite,
        "case_id": first.case_id,
        "model": first.model,
        "grader": case.grader,
        "rule": case.rule,
        "status": case.status,
        "score": case.score,
        "deviation": case.deviation,
        "reason": case.reason,
        "statuses": tuple(run.status for run in case.runs),
        "arguments": case.arguments,
    }


def failures_report(failures: FailureNumbers) -> FailuresReport:
    confusion = []
    for (expected, called), count in failures.confusion.counts.items():
        confusion.append(ConfusionReport(expected=expected, called=called, count=count))
    return FailuresReport(causes=tuple(map(_cause, failures.groups)), confusion=tuple(confusion))


def _cause(group: CauseNumbers) -> CauseReport:
    return CauseReport.made(
        group,
        runs=tuple(group.indices),
        main=tuple(group.main_indices),
        meaning=ADVICE[group.cause].meaning,
        subjects=tuple(SubjectReport.made(subject, count=count) for subject, count in group.subjects),
    )


def published_summaries(
    results: Sequence[RunResult], cases: Mapping[str, Case] | None = None
) -> tuple[PublishedSummary, ...]:
    """Return the numbers that published benchmarks would report. `cases` maps the id of a run to its case."""
    found = []
    for report in published_reports(results, cases or {}):
        found.append(PublishedSummary.made(report, numbers=dict(report.summary.numbers)))
    return tuple(found)


def regraded_records(regraded: Iterable[Regraded]) -> Records[Regraded]:
    """Return the recordings of a `RegradeReport`, to be written one at a time."""
    return Records(RegradedReport, regraded, lambda each: each)


def regrade_pieces(document: ReportDocument, records: Mapping[str, Records[Any]], redactor: Redactor) -> Iterator[str]:
    """Yield the report of regraded recordings as JSON text.

    `records` provides the runs, cases and recordings that `document` lacks."""
    whole = RegradeReport.model_validate({**dict(document), "regraded": ()})
    return document_pieces(whole, records, redactor)
