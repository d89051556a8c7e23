"""The JSON report of a comparison, version 1: the models that define its schema, and the conversion.

The schema is committed as `docs/compare.schema.json`, and a test checks that it is up to date. Within a version, keys
may be added, and no key is changed or removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from workbench.analysis.comparison import Cell
from workbench.analysis.side_by_side import CaseRow, Comparison, ModelPair, weakest_models
from workbench.grading.status import Status
from workbench.show.json.base import (
    BROKEN_SUITES,
    BrokenSuiteReport,
    CountsReport,
    Finite,
    GateReport,
    IntervalReport,
    LatencyReport,
    ReportModel,
    SuitePath,
    ValidArgumentsReport,
    broken_suites,
)
from workbench.show.json.batch_diff import BaselineReport, PairedReport, baseline_report, paired_fields
from workbench.show.json.records import dumped, json_lines
from workbench.show.views.baseline import AgainstBaseline
from workbench.show.views.runs_report import BrokenSuite
from workbench.suite.grading_model import RepeatRule


class CellReport(ReportModel):
    """The result of a case with a model, combined from all of its runs by `repeat_rule`."""

    model: str
    status: Status
    repeat_rule: RepeatRule = Field(description="the rule for the status of a case with several runs")
    good: int = Field(description="number of graded runs that passed or were warned")
    graded: int = Field(description="number of graded runs")
    score: Finite | None = Field(description="mean of the graded runs, 0..1")
    spread: Finite | None = Field(description="population standard deviation of their scores")
    latency_ms: float | None = Field(description="mean model latency of the graded runs")
    valid_arguments: float | None = Field(
        None, description="share of the checked calls whose arguments are valid, 0..1; null if none was checked"
    )
    reason: str | None = Field(description="why the case did not pass, if there is a single reason")
    statuses: tuple[Status, ...] = Field(description="the statuses of all runs, in the order of the repeats")
    gave_up: int = Field(0, description="number of runs whose user gave up")
    user_errors: int = Field(0, description="number of runs that their user invalidated")


class ComparedCaseReport(ReportModel):
    """A case, with a cell for each model that ran it."""

    suite: SuitePath
    suite_name: str
    case_id: str
    case_name: str
    differs: bool = Field(description="whether graded statuses differ, or scores by more than 0.005")
    cells: tuple[CellReport, ...]


class PassingReport(ReportModel):
    """The chance that at least one of `k` runs is good, and the chance that all `k` runs are good.

    Both are means over the cases with at least `k` graded runs."""

    k: int
    cases: int
    at_least_one: float = Field(description="pass@k: the chance that at least one of k runs is good, 0..1")
    all_of_them: float = Field(description="pass^k: the chance that all of k runs are good, 0..1")


class ModelReport(CountsReport):
    """The totals of a model's cases.

    Counts are numbers of cases unless the name says runs. No rate or mean includes cases that were not graded."""

    model: str
    cases: int
    graded: int
    runs: int
    runs_in_error: int
    pass_rate: float | None = Field(description="passed and warned over graded cases, 0..1; null if none was graded")
    interval: IntervalReport | None = Field(
        description="95% interval of the pass rate; null if runs were stopped early"
    )
    mean_score: Finite | None = Field(description="mean over the cases that have a score")
    score_interval: IntervalReport | None = Field(
        description="95% interval of the mean score; null if runs were stopped early or a score is above 1"
    )
    latency: LatencyReport | None
    first_token: LatencyReport | None = Field(description="time to the first token of the first answer of a run")
    input_tokens: int | None = Field(description="null if the endpoint did not count them")
    output_tokens: int | None
    cost_usd: float | None = Field(
        description=(
            "US dollars for the runs of known cost; 0 if no model was asked over a network; null without runs, or if "
            "only runs of unknown cost were paid for"
        )
    )
    runs_of_unknown_cost: int = Field(description="number of runs of unknown cost, not in `cost_usd`")
    cases_a_minute: float | None = Field(
        description="graded cases per minute in which at least one run was in progress"
    )
    passing: tuple[PassingReport, ...] = Field(
        description="for each k from 1 to the highest number of graded runs of a case"
    )
    repeat_rules: tuple[RepeatRule, ...] = Field(
        description="the rules for the status of cases with several runs; empty without repeats"
    )
    gates: tuple[GateReport, ...] = Field(description="the gates of each suite for this model")
    endpoint_faults: int = Field(
        0, description="number of failed cases with a run that failed through a fault of the endpoint"
    )
    metrics: dict[str, float] = Field(
        default_factory=dict, description="means of the named checks of answers over the graded runs that have them"
    )
    valid_arguments: ValidArgumentsReport | None = Field(
        None, description="validity of the graded runs' calls by the tools' own schemas"
    )


class DiscordantReport(ReportModel):
    """A case that is good with only one of two models."""

    suite: SuitePath
    case_id: str
    case_name: str
    first: Status
    second: Status


class _Sides(ReportModel):
    first: str
    second: str


# Pydantic puts the fields of the last base class first. A separate base class therefore has the names of both models.
class PairReport(PairedReport, _Sides):
    """The comparison of two models case by case.

    `better` and `worse` describe the second model compared with the first."""

    discordant: tuple[DiscordantReport, ...]


class WeakestReport(ReportModel):
    """The models that fail most among the cases graded with every model."""

    models: tuple[str, ...]
    failed: int = Field(description="number of cases that fail with each of these models")
    cases: int = Field(description="number of cases that were graded with every model")
    only_there: tuple[str, ...] = Field(description="names of the cases that fail with no other model")
    best: tuple[str, ...] = Field(description="the models that fail least")
    best_failed: int = Field(description="number of cases that fail with each of them")
    differs: bool = Field(description="false if each case fails with all models or with none")


class ComparisonReport(ReportModel):
    """A comparison of models."""

    report: Literal["workbench compare"] = "workbench compare"
    version: Literal[1] = 1
    workbench: str = Field(description="version of the program")
    started_at: str = Field(description="original start of the batch, even if it was resumed; ISO 8601, UTC")
    interrupted: bool
    exit_code: int
    nothing_graded: bool = Field(False, description="whether no run was graded")
    batch: int | None = Field(description="number of the batch in the history; null if it is not stored")
    models: tuple[str, ...] = Field(description="the columns; each model is compared at least with the first")
    only_differences: bool = Field(
        description="whether `cases` lists only cases that differ; everything else covers all cases"
    )
    cases: tuple[ComparedCaseReport, ...]
    totals: tuple[ModelReport, ...]
    pairs: tuple[PairReport, ...]
    baseline: BaselineReport | None = Field(
        default=None, description="the comparison with the batch of --baseline; null without this option"
    )
    broken_suites: tuple[BrokenSuiteReport, ...] = Field((), description=BROKEN_SUITES)
    most_failures: WeakestReport | None = Field(
        None, description="null for fewer than three models, or if no case was graded with all of them"
    )


def comparison_report(
    comparison: Comparison,
    *,
    only_differences: bool = False,
    program_version: str,
    started_at: str,
    interrupted: bool,
    exit_code: int,
    nothing_graded: bool = False,
    batch: int | None,
    against: AgainstBaseline | None = None,
    broken: Sequence[BrokenSuite] = (),
) -> ComparisonReport:
    """Return the report on a comparison. With `only_differences`, cases that do not differ are omitted."""
    baseline = None
    if against is not None:
        baseline = baseline_report(against)
    most_failures = None
    if (found := weakest_models(comparison.columns)) is not None:
        most_failures = WeakestReport.model_validate(found)
    rows = comparison.rows
    if only_differences:
        rows = tuple(row for row in rows if row.differs)
    return ComparisonReport(
        workbench=program_version,
        started_at=started_at,
        interrupted=interrupted,
        exit_code=exit_code,
        nothing_graded=nothing_graded,
        broken_suites=broken_suites(broken),
        most_failures=most_failures,
        batch=batch,
        models=comparison.models,
        only_differences=only_differences,
        cases=tuple(map(compared_case, rows)),
        totals=tuple(map(ModelReport.model_validate, comparison.totals)),
        pairs=tuple(map(pair_report, comparison.pairs)),
        baseline=baseline,
    )


def compared_case(row: CaseRow) -> ComparedCaseReport:
    # A case that did not run with a model has no cell.
    return ComparedCaseReport.made(row, cells=tuple(_cell(cell) for cell in row.cells if cell is not None))


def _cell(cell: Cell) -> CellReport:
    return CellReport.made(cell, statuses=tuple(run.status for run in cell.runs))


def pair_report(pair: ModelPair) -> PairReport:
    """Return the report on the tests between two models."""
    discordant = []
    for first, second in pair.found.discordant:
        discordant.append(DiscordantReport.made(first, first=first.status, second=second.status))
    return PairReport.model_validate(
        {
            "first": pair.first,
            "second": pair.second,
            **paired_fields(pair.found, pair.first, pair.second),
            "discordant": tuple(discordant),
        }
    )


def cells_of(report: ComparisonReport) -> Iterator[dict[str, Any]]:
    """Yield an object for each cell of a comparison. A cell is a case with a model."""
    for case in dumped(report.cases):
        cells = case.pop("cells")
        for cell in cells:
            # Each object repeats the facts of its case, so that every line can be read alone.
            yield {**case, **cell}


def lines_of_comparison(report: ComparisonReport) -> Iterator[str]:
    """Yield a line of JSON for each cell of a comparison. A cell is a case with a model."""
    return json_lines(cells_of(report))
