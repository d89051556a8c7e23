"""From scores to verdicts: means, weights of arguments, thresholds, and the score with which a run counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol

from workbench.grading.grade import Status
from workbench.suite.checks import NAMED_WEIGHTS, CheckBase, Weight
from workbench.suite.settings import Grading


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, also where the sum is beyond a float. Raises ZeroDivisionError for want of values."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


def is_required(check: CheckBase, *, without_weight: bool = False) -> bool:
    """Whether the run fails when the check does not hold: as written, else `without_weight` where it has no weight."""
    return without_weight and check.weight is None if check.required is None else check.required


def resolve_weights(weights: Sequence[Weight | None]) -> list[float]:
    """The weights in force, in the same order.

    Numbers stay as they are and need not sum to 1. Arguments without a weight share 1 equally. As soon as one weight is
    named, all are divided by their sum, named ones counting 1 (`minimal`) to 7 (`critical`): Arcade's fuzzy weights.
    """
    unweighted = sum(weight is None for weight in weights)
    raw = [
        1 / unweighted if weight is None else float(NAMED_WEIGHTS[weight] if isinstance(weight, str) else weight)
        for weight in weights
    ]
    if not any(isinstance(weight, str) for weight in weights):
        return raw
    total = sum(raw)
    return [weight / total for weight in raw]


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


class Scored(Protocol):
    """What the rule needs of a run or of a single grade."""

    @property
    def status(self) -> Status | None: ...
    @property
    def score(self) -> float | None: ...
    @property
    def is_broken(self) -> bool: ...


def counts_zero(run: Scored) -> bool:
    """Whether a graded run counts 0 whatever its score is: it failed for a reason beside the score, or without one."""
    return run.is_broken or (run.status == "failed" and run.score is None)


def counted_score(run: Scored) -> float | None:
    """The score with which a graded run counts in gates, aggregates and baselines; `None` where it has none and did not
    fail."""
    return 0.0 if counts_zero(run) else run.score
