"""The results of the paired tests of two columns as JSON, the same wherever two are compared."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from workbench.analysis.paired import Paired
from workbench.show.json.base import Finite, IntervalReport, ReportModel
from workbench.suite.model import ComparedBy


class WatchedReport(ReportModel):
    """What was known of two columns when their runs stopped early, or when all were made."""

    rule: Literal["e-value", "looks"] = Field(description="by an e-value after each case, or at a few looks")
    decided: bool
    cases: int = Field(description="number of cases, in their random order, after which that was known")
    of: int = Field(description="number of cases that were planned")
    better: int = Field(description="number of these cases that are good only with the second")
    worse: int = Field(description="number of these cases that are good only with the first")
    e_value: Finite | None = Field(description="the greatest one so far; null for looks")
    p: float = Field(description="adjusted for all comparisons of this report; by the e-value it holds at any time")
    level: float = Field(description="what `p` has to reach at this look")
    look: int = Field(description="number of looks that were taken; 0 for an e-value")
    looks: int | None
    saved: int = Field(description="number of runs that were planned and not needed")


class PairedReport(ReportModel):
    """The paired tests of a first and a second column: `better` and `worse` tell how the second does against the first.
    Pass and fail is one question, scores are another; the level of 5% applies to each by itself."""

    pairs: int = Field(description="number of cases graded with both")
    better: int = Field(description="number of cases that are good only with the second")
    worse: int = Field(description="number of cases that are good only with the first")
    both_good: int
    both_bad: int
    left_out: int = Field(
        description="number of cases that ran with at least one of the two, and were not graded with both"
    )
    p_status: float | None = Field(
        description="exact McNemar test on pass and fail, by cluster where there are any, two-sided; null without pairs"
    )
    holm_status: float | None = Field(
        description="`p_status` times the number of comparisons of this report (Bonferroni, formerly Holm); `sentence`"
        " uses it"
    )
    p_score: float | None = Field(description="paired permutation test on the scores, two-sided")
    holm_score: float | None = Field(
        description="`p_score` times the number of comparisons (Bonferroni, formerly Holm); `score_sentence` uses it"
    )
    mean_difference: Finite | None = Field(description="of the scores, second minus first")
    more_cases: int | None = Field(
        description="about how many more cases like these would show a difference; 0 if these do, null if unknown"
    )
    watched: WatchedReport | None = Field(
        None,
        description="of a batch that may stop early; tests for a fixed number of cases do not hold and are null",
    )
    primary: ComparedBy = Field(description="the question that decides: only its sentence may call a difference real")
    clusters: int | None = Field(
        description="number of groups of cases that depend on each other; null where no case has a cluster"
    )
    rate_difference: float | None = Field(description="of the pass rates on the pairs, second minus first")
    rate_interval: IntervalReport | None = Field(
        description="of `rate_difference`, 95% for all comparisons of this report together; a bound of 0 is outside"
        " where `holm_status` is at most 0.05"
    )
    score_interval: IntervalReport | None = Field(
        description="of `mean_difference`, likewise by `holm_score`; null with fewer than two cases or clusters"
    )
    detectable_rate: float | None = Field(
        description="about the smallest difference in pass rates that so many cases show four times in five"
    )
    detectable_score: Finite | None = Field(description="the same for mean scores")
    arguments_difference: float | None = Field(
        None, description="of the shares of calls with valid arguments, second minus first, the mean over cases"
    )
    p_arguments: float | None = Field(None, description="paired permutation test on these shares, two-sided")
    adjusted_arguments: float | None = Field(
        None, description="`p_arguments` times the number of comparisons; `arguments_sentence` uses it"
    )
    arguments_sentence: str | None = Field(
        None, description="the result of that test in a sentence; null where the two do not differ"
    )
    sizes: tuple[str, ...] = Field(description="these differences in sentences")
    sentence: str = Field(description="the result of the test on pass and fail in a sentence")
    score_sentence: str = Field(description="the result of the test on scores in a sentence")


def paired_fields(found: Paired, first: str, second: str) -> dict[str, object]:
    """Returns the values of a `PairedReport`; `first` and `second` name the columns in its sentences."""
    return {
        "pairs": found.count,
        "better": found.better,
        "worse": found.worse,
        "both_good": found.both_good,
        "both_bad": found.both_bad,
        "left_out": found.left_out,
        "p_status": found.p_status,
        "holm_status": found.adjusted_status,
        "p_score": found.p_score,
        "holm_score": found.adjusted_score,
        "mean_difference": found.mean_difference,
        "more_cases": found.more_cases,
        "watched": found.watched,
        "primary": found.primary,
        "clusters": found.clusters,
        "rate_difference": found.rate_difference,
        "rate_interval": found.rate_interval,
        "score_interval": found.score_interval,
        "detectable_rate": found.detectable_rate,
        "detectable_score": found.detectable_score,
        "arguments_difference": found.arguments_difference,
        "p_arguments": found.p_arguments,
        "adjusted_arguments": found.adjusted_arguments,
        "arguments_sentence": found.arguments_sentence(first, second),
        "sizes": tuple(found.sizes()),
        "sentence": found.sentence(first, second),
        "score_sentence": found.score_sentence(first, second),
    }
