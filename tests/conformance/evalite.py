"""What the vectors have of Evalite beyond its scores, its summary of a run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class RunSummary:
    """`average` is that of all single scores, 0..1, `None` without any; `exit_code` is `None` where it has no say."""

    average: float | None
    exit_code: int | None
    failed_threshold: Literal["yes", "no", "unknown"]


def run_summary(
    evals: Sequence[Sequence[float | None]], threshold: float | None = None, failed_evals: int = 0
) -> RunSummary:
    """A run of evals, each with its scores; a score that is `None` counts as 0, `threshold` is in 0..100.

    The average is over the scores, not over the evals' averages. An eval that failed makes the exit code 1, as does an
    average below the threshold, or none at all; without a threshold nothing else is asked.
    """
    scores = [score or 0.0 for scores in evals for score in scores]
    average = statistics.fmean(scores) if scores else None
    if threshold is None:
        return RunSummary(average, 1 if failed_evals else None, "unknown")
    below = average is None or average * 100 < threshold
    return RunSummary(average, int(below or failed_evals > 0), "yes" if below else "no")
