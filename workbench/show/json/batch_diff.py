"""Parts of the JSON reports on differences: between two models, two batches, or a batch and its baseline."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from workbench.analysis.batch_diff import CaseChange, CaseSide, ChangeKind
from workbench.analysis.confirmation import Confirmation, ConfirmationReport, ConfirmedCase
from workbench.analysis.measures import GOOD_RUNS, PASS_RATE, SCORE, VALID_ARGUMENTS, Measure
from workbench.analysis.paired import PairedComparison
from workbench.grading.status import Status
from workbench.history.records import SuiteRef
from workbench.show.json.base import Finite, IntervalReport, ReportModel, SuitePath
from workbench.show.views.baseline import BATCH_NAMES, AgainstBaseline, Confirm, FailOn
from workbench.show.views.batch_diff import notes_of
from workbench.suite.grading_model import ComparedBy


class WatchedReport(ReportModel):
    """The result of the sequential test of two models, which can end a batch early."""

    rule: Literal["e-value", "looks"] = Field(description="the rule: an e-value after each case, or a few looks")
    decided: bool
    cases: int = Field(description="number of cases after which the test decided")
    of: int = Field(description="number of cases that were planned")
    better: int = Field(description="number of these cases that are good only with the second model")
    worse: int = Field(description="number of these cases that are good only with the first model")
    e_value: Finite | None = Field(description="the greatest e-value so far; null for looks")
    p: float = Field(description="adjusted for all comparisons of this report; by e-value, valid after every case")
    level: float = Field(description="the level that `p` must not exceed at this look")
    look: int = Field(description="number of looks so far; 0 for an e-value")
    looks: int | None
    saved: int = Field(description="number of planned runs that were not needed")


class PairedReport(ReportModel):
    """The paired tests of two columns, which are two models, or one model in two batches.

    `better` and `worse` describe the second column compared with the first. Pass rates and scores are tested
    separately, each at the level of 5%."""

    pairs: int = Field(description="number of cases graded with both models")
    better: int = Field(description="number of cases that are good only with the second model")
    worse: int = Field(description="number of cases that are good only with the first model")
    both_good: int
    both_bad: int
    left_out: int = Field(
        description="number of cases that ran with at least one of the models, but were not graded with both"
    )
    p_status: float | None = Field(
        description=(
            "p of the exact two-sided McNemar test on pass and fail, by cluster if there are clusters; null without "
            "pairs"
        )
    )
    holm_status: float | None = Field(
        description="`p_status` times the number of comparisons of this report (Bonferroni, formerly Holm); `sentence`"
        " uses it"
    )
    p_score: float | None = Field(description="p of the two-sided paired permutation test on the scores")
    holm_score: float | None = Field(
        description="`p_score` times the number of comparisons (Bonferroni, formerly Holm); `score_sentence` uses it"
    )
    mean_difference: Finite | None = Field(description="mean difference of the scores, second minus first")
    more_cases: int | None = Field(
        description=(
            "approximate number of further cases like these that would show a difference; 0 if these do, null if "
            "unknown"
        )
    )
    watched: WatchedReport | None = Field(
        None,
        description=(
            "the sequential test of a batch that may stop early; tests for a fixed number of cases are then invalid, "
            "and null"
        ),
    )
    primary: ComparedBy = Field(description="the question that decides: only its sentence may call a difference real")
    clusters: int | None = Field(description="number of clusters of dependent cases; null if no case has a cluster")
    rate_difference: float | None = Field(description="difference of the pass rates on the pairs, second minus first")
    rate_interval: IntervalReport | None = Field(
        description=(
            "95% interval of `rate_difference`, for all comparisons of this report together; it excludes 0 if "
            "`holm_status` is at most 0.05"
        )
    )
    score_interval: IntervalReport | None = Field(
        description="95% interval of `mean_difference`, by `holm_score`; null with fewer than two cases or clusters"
    )
    detectable_rate: float | None = Field(
        description=(
            "approximate smallest difference in pass rates that this many cases detect in four of five comparisons"
        )
    )
    detectable_score: Finite | None = Field(
        description=(
            "approximate smallest difference in mean scores that this many cases detect in four of five comparisons"
        )
    )
    arguments_difference: float | None = Field(
        None,
        description="mean difference over the cases in the shares of calls with valid arguments, second minus first",
    )
    p_arguments: float | None = Field(None, description="p of the two-sided paired permutation test on these shares")
    adjusted_arguments: float | None = Field(
        None, description="`p_arguments` times the number of comparisons; `arguments_sentence` uses it"
    )
    arguments_sentence: str | None = Field(
        None, description="the result of that test in a sentence; null if the shares are equal"
    )
    sizes: tuple[str, ...] = Field(description="the differences in sentences")
    sentence: str = Field(description="the result of the test on pass and fail in a sentence")
    score_sentence: str = Field(description="the result of the test on scores in a sentence")


# Each key is read from an attribute of a measure. The keys must not change within version 1 of the report.
_TESTED: Mapping[str, tuple[Measure, str]] = {
    "p_status": (PASS_RATE, "p"),
    "holm_status": (PASS_RATE, "adjusted"),
    "rate_difference": (PASS_RATE, "difference"),
    "rate_interval": (PASS_RATE, "interval"),
    "detectable_rate": (PASS_RATE, "detectable"),
    "p_score": (SCORE, "p"),
    "holm_score": (SCORE, "adjusted"),
    "mean_difference": (SCORE, "difference"),
    "score_interval": (SCORE, "interval"),
    "detectable_score": (SCORE, "detectable"),
    "p_arguments": (VALID_ARGUMENTS, "p"),
    "adjusted_arguments": (VALID_ARGUMENTS, "adjusted"),
    "arguments_difference": (VALID_ARGUMENTS, "difference"),
}
"""The attribute of a measure's `Contrast` with the value for each key of a test."""


def paired_fields(comparison: PairedComparison, first: str, second: str) -> dict[str, object]:
    """Return the values of a `PairedReport`. `first` and `second` name the columns in its sentences."""
    given: dict[str, object] = {
        "arguments_sentence": comparison.arguments_sentence(first, second),
        "sizes": tuple(comparison.difference_sentences()),
        "sentence": comparison.sentence(first, second),
        "score_sentence": comparison.score_sentence(first, second),
        "pairs": comparison.count,
    }
    for name, (measure, part) in _TESTED.items():
        given[name] = getattr(comparison.by(measure), part)
    for name in PairedReport.model_fields:
        if name not in given:
            given[name] = getattr(comparison, name)
    return given


class ChangedCellReport(ReportModel):
    """The result of a case with a model, combined from all of its runs."""

    model: str
    status: Status
    score: Finite | None
    good: int = Field(description="number of graded runs that passed or were warned")
    graded: int = Field(description="number of graded runs")
    latency_ms: float | None = Field(description="mean model latency of the graded runs")
    reason: str | None


class ChangeReport(ReportModel):
    """The change of a case from the earlier batch, or from the baseline, to the later batch."""

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


# Pydantic puts the fields of the last base class first. A separate base class therefore has the model's name.
class BatchTestReport(PairedReport, _OfModel):
    """The paired tests of one model.

    The first column is the earlier batch or the baseline, and the second column is the later batch."""


def change_report(change: CaseChange, suites: Mapping[str, SuiteRef]) -> ChangeReport:
    """Return the report on a change of a case, with the results before and after it.

    `suites` has the suites by `SuiteRef.key`."""
    suite = str(suites[change.suite].file)
    return ChangeReport.made(change, suite=suite, before=_cell(change.before), after=_cell(change.after))


def test_reports(tests: Mapping[str, PairedComparison], before: str, after: str) -> tuple[BatchTestReport, ...]:
    """Return the reports on the models' paired tests. `before` and `after` name the batches."""
    reports = []
    for model, test in tests.items():
        reports.append(BatchTestReport.model_validate({"model": model, **paired_fields(test, before, after)}))
    return tuple(reports)


def _cell(cell: CaseSide | None) -> ChangedCellReport | None:
    if cell is not None:
        return ChangedCellReport.model_validate(cell)
    return None


class ConfirmedReport(ReportModel):
    """The reruns of a case that broke since the baseline, and whether they confirm that it broke."""

    suite: SuitePath
    case_id: str
    case_name: str
    model: str
    outcome: Confirmation = Field(description="only `confirmed` is a regression")
    failed: int = Field(description="number of reruns that failed")
    good: int = Field(description="number of reruns that passed or were warned")
    why: str | None = Field(description="why there are no further reruns")
    sentence: str


class GoodRunsReport(ReportModel):
    """The result of the test of whether a model has fewer good runs than in the baseline, over all cases.

    This result takes precedence over the results of single cases."""

    model: str
    cases: int
    difference: float = Field(description="the later share minus that of the baseline, the mean over the cases")
    low: float | None = Field(description="lower end of its 95% interval, for the tests of all models")
    high: float | None
    p: float = Field(description="p of the permutation test, adjusted for the tests of all models")
    worse: bool = Field(description="whether there are fewer good runs, by more than chance")
    sentence: str


class BaselineReport(ReportModel):
    """The comparison of a batch with its baseline."""

    batch: int = Field(description="number of the baseline in the history")
    name: str | None
    started_at: str = Field(description="ISO 8601")
    grading: int | None = Field(description="number of the baseline's grading that was used; null for the original one")
    fail_on: FailOn | None = Field(description="the value of --fail-on")
    regressed: bool = Field(
        description="whether a case broke, is gone or missing, or all cases together are worse; with `confirm`, whether"
        " that is more than chance"
    )
    compared: int = Field(description="number of cases graded in both batches")
    as_before: int = Field(description="number of these cases with the same status and score")
    left_out: int = Field(
        description="number of cases in both batches that were not graded in both, without new errors"
    )
    changes: tuple[ChangeReport, ...]
    tests: tuple[BatchTestReport, ...]
    notes: tuple[str, ...] = Field(description="notes on the comparison, such as models that are left out")
    confirm: Confirm = Field("none", description="how broken cases were confirmed; `none` without `fail_on`")
    confirmed: tuple[ConfirmedReport, ...] = Field(
        (), description="the cases that broke, unless the test of all cases decided"
    )
    reruns: int = Field(0, description="number of reruns; they count nowhere else in this report")
    reruns_batch: int | None = Field(None, description="number of the batch of reruns in the history")
    good_runs: tuple[GoodRunsReport, ...] = ()
    suite_changes: tuple[str, ...] = Field((), description="differences of the suites since the baseline")
    verdict: str = ""


def baseline_report(against: AgainstBaseline) -> BaselineReport:
    diff, confirmed, grading = against.diff, against.confirmed or ConfirmationReport(()), None
    if against.grading is not None:
        grading = against.grading.number
    changes = tuple(change_report(change, against.suites) for change in diff.changes)
    return BaselineReport.made(
        against,
        batch=against.batch.number,
        name=against.batch.name,
        started_at=against.batch.started_at,
        grading=grading,
        compared=diff.compared,
        as_before=diff.unchanged_cases,
        left_out=diff.left_out,
        changes=changes,
        tests=test_reports(against.diff.tests, *BATCH_NAMES),
        notes=(*notes_of(diff, *BATCH_NAMES, against.suites), *against.notes),
        confirmed=tuple(_confirmed_report(case, against.suites) for case in confirmed.cases),
        reruns=confirmed.reruns,
        reruns_batch=confirmed.batch,
        good_runs=tuple(_good_runs(diff.tests)),
    )


def _good_runs(tests: Mapping[str, PairedComparison]) -> Iterator[GoodRunsReport]:
    for model, test in tests.items():
        found, sentence = test.by(GOOD_RUNS), test.shares_sentence()
        if found.difference is None or found.adjusted is None or sentence is None:
            continue
        low, high = found.interval or (None, None)
        yield GoodRunsReport(
            model=model,
            cases=found.count,
            difference=found.difference,
            low=low,
            high=high,
            p=found.adjusted,
            worse=test.is_worse,
            sentence=sentence,
        )


def _confirmed_report(case: ConfirmedCase, suites: Mapping[str, SuiteRef]) -> ConfirmedReport:
    return ConfirmedReport.made(case, suite=str(suites[case.suite].file))
