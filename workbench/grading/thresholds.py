"""From a score to a verdict."""

from __future__ import annotations

from typing import Literal

from workbench.suite.settings import Grading

ROUNDING_SLACK = 1e-9
"""By how much a score may miss a threshold and still count as having reached it: sums of shares such as 0.2 are a hair
off in binary."""

PASS_SCORE = 0.8
"""What `dimensions` asks of a score, whatever the suite's thresholds say."""


def verdict_of(score: float, grading: Grading, slack: float = ROUNDING_SLACK) -> Literal["passed", "warned", "failed"]:
    """failed < fail threshold ≤ warned < warn threshold ≤ passed; the lower of the two is the one that fails."""
    lower, upper = grading.fail_threshold, grading.warn_threshold
    if lower > upper:
        lower, upper = upper, lower
    if score >= upper - slack:
        return "passed"
    return "warned" if score >= lower - slack else "failed"
