"""What Evalite reports: the metadata of one score, and the average of a run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from workbench.analysis.published.system import Summary, System
from workbench.grading.grade import Grade, RunResult
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


def _summary(runs: Sequence[RunResult]) -> Summary:
    average = statistics.fmean(run.score or 0.0 for run in runs)
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
