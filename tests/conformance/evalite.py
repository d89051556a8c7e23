"""Evalite's summary of a run, as the test vectors describe it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class RunSummary:
    """The mean of all scores (0..1, or `None` without scores) and the exit code (`None` if undefined)."""

    average: float | None
    exit_code: int | None
    failed_threshold: Literal["yes", "no", "unknown"]


def run_summary(
    evals: Sequence[Sequence[float | None]], threshold: float | None = None, failed_evals: int = 0
) -> RunSummary:
    """Return the summary of a run of evals. A score of `None` counts as 0, and `threshold` is 0..100.

    The average is over all scores, not over the averages of the evals. The exit code is 1 if an eval failed, or if the
    average is missing or below the threshold. Without a threshold, the average does not count."""
    scores = [score or 0.0 for scores in evals for score in scores]
    average = statistics.fmean(scores) if scores else None
    if threshold is None:
        return RunSummary(average, 1 if failed_evals else None, "unknown")
    below = average is None or average * 100 < threshold
    return RunSummary(average, int(below or failed_evals > 0), "yes" if below else "no")
