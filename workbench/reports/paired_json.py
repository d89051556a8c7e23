"""The results of the paired tests of two columns as JSON, the same wherever two are compared."""

from __future__ import annotations

from pydantic import Field

from workbench.analysis.paired import Paired
from workbench.reports.json_base import Finite, ReportModel


class PairedReport(ReportModel):
    """The paired tests of a first and a second column: `better` and `worse` tell how the second does against the first.
    Pass and fail is one question, scores are another; the level of 5 % applies to each by itself."""

    pairs: int = Field(description="number of cases graded with both")
    better: int = Field(description="number of cases that are good only with the second")
    worse: int = Field(description="number of cases that are good only with the first")
    both_good: int
    both_bad: int
    left_out: int = Field(
        description="number of cases that ran with at least one of the two, and were not graded with both"
    )
    p_status: float | None = Field(description="exact McNemar test on pass and fail, two-sided; null without pairs")
    holm_status: float | None = Field(
        description="`p_status` adjusted for all comparisons of this report; `sentence` uses it"
    )
    p_score: float | None = Field(description="paired permutation test on the scores, two-sided")
    holm_score: float | None = Field(
        description="`p_score` adjusted for all comparisons of this report; `score_sentence` uses it"
    )
    mean_difference: Finite | None = Field(description="of the scores, second minus first")
    more_cases: int | None = Field(
        description="about how many more cases like these would show a difference; 0 if these do, null if unknown"
    )
    sentence: str = Field(description="the result of the test on pass and fail in a sentence")
    score_sentence: str = Field(description="the result of the test on scores in a sentence")


def paired_fields(found: Paired, first: str, second: str) -> dict[str, object]:
    """Returns the values of a `PairedReport`; `first` and `second` name the columns in its sentences."""
    return {
        "pairs": len(found.pairs),
        "better": found.better,
        "worse": found.worse,
        "both_good": found.both_good,
        "both_bad": found.both_bad,
        "left_out": found.left_out,
        "p_status": found.p_status,
        "holm_status": found.holm_status,
        "p_score": found.p_score,
        "holm_score": found.holm_score,
        "mean_difference": found.mean_difference,
        "more_cases": found.more_cases,
        "sentence": found.sentence(first, second),
        "score_sentence": found.score_sentence(first, second),
    }
