"""What the vectors have of Evalite beyond its scores, made from our grades: its details and its summary of a run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.grading.accuracy import EXACT, EXTRA, NAME_ONLY
from workbench.grading.grade import Grade
from workbench.suite.model import ExpectedCall


@dataclass(frozen=True)
class FlexibleDetails:
    """Which calls flexible mode counted as what, as indices of actual calls and, at last, of expected ones."""

    matches: tuple[int, ...]
    name_only: tuple[int, ...]
    extras: tuple[int, ...]
    missing: tuple[int, ...]


def flexible_details(grade: Grade, expected: Sequence[ExpectedCall]) -> FlexibleDetails:
    """The details of a score in flexible mode.

    Expected calls that only found their name again count as missing here too, unlike in the counts; equal ones stand
    together, in the order of their first.
    """

    def made(outcome: str) -> tuple[int, ...]:
        return tuple(sorted(line.call for line in grade.pairings if line.outcome == outcome and line.call is not None))

    missing = [
        line.expected_call for line in grade.pairings if line.expected_call is not None and line.outcome != EXACT
    ]
    by_first = sorted(missing, key=lambda index: (next(i for i in missing if expected[i] == expected[index]), index))
    return FlexibleDetails(made(EXACT), made(NAME_ONLY), made(EXTRA), tuple(by_first))


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
