"""What Evalite reports: the metadata of one score, the average of a run, and whether the threshold is reached."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.analysis.published.system import Summary, System
from workbench.grading.accuracy import EXACT, EXTRA, NAME_ONLY
from workbench.grading.grade import Grade, RunResult
from workbench.suite.model import ExpectedCall
from workbench.trajectory.messages import JsonValue


def score_metadata(grade: Grade) -> dict[str, JsonValue]:
    """The counts that the scorer tells beside its score, under its own names.

    Where nothing was expected or nothing called there is nothing to count, only the number of the other side.
    """
    counts = {name: int(amount) for name, amount in grade.numbers.items()}
    expected, made = counts["expected"], counts["made"]
    if not expected:
        return {"outputCount": made} if made else {}
    if not made:
        return {"referenceCount": expected}
    matched: dict[str, JsonValue] = {"exactMatches": counts["exact"], "nameOnlyMatches": counts["name_only"]}
    totals: dict[str, JsonValue] = {"reference": expected, "output": made}
    if "wrong" in counts:
        return {"mode": "exact", **matched, "wrongOrMissing": counts["wrong"], "totals": totals}
    return {"mode": "flexible", **matched, "extras": counts["extra"], "missing": counts["missing"], "totals": totals}


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


def _summary(runs: Sequence[RunResult]) -> Summary:
    average = run_summary([(run.score,) for run in runs]).average
    details = tuple(f"{run.case_name}: {_percent(run.score)}%" for run in runs)
    scores: list[JsonValue] = [
        {"name": run.case_name, "score": run.score, "metadata": score_metadata(run.grade)}
        for run in runs
        if run.grade is not None
    ]
    headline = f"score {_percent(average)}%, {len(runs)} eval{'' if len(runs) == 1 else 's'}"
    return Summary(headline, details, {"average": average, "evals": scores})


def _percent(score: float | None) -> int:
    """Rounded as JavaScript does, halves up."""
    return math.floor(100 * (score or 0.0) + 0.5)


ACCURACY = System(_summary)
