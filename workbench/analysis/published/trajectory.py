"""The two metrics of Apple's tool-call evaluator over a suite, each with its statistics."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.analysis.gates import median, mode, spread
from workbench.analysis.published.system import Summary, System
from workbench.grading.grade import RunResult
from workbench.grading.scoring import mean
from workbench.grading.status import Status
from workbench.numerals import decimals
from workbench.trajectory.events import JsonValue


def _summary(runs: Sequence[RunResult]) -> Summary:
    all_pass = [float(run.status == Status.PASSED) for run in runs]
    percentages = [run.score or 0.0 for run in runs]
    passed = sum(run.status == Status.PASSED for run in runs)
    headline = f"{passed} of {len(runs)} all pass, percentage mean {decimals(mean(percentages))}"
    statistics = ", ".join(f"{name} {_figure(value)}" for name, value in _statistics(percentages).items())
    numbers: dict[str, JsonValue] = {
        "samples": len(runs),
        "all_pass": {**_statistics(all_pass)},
        "percentage": {**_statistics(percentages)},
    }
    return Summary(headline, (f"percentage: {statistics}",), numbers)


def _statistics(values: Sequence[float]) -> dict[str, float | None]:
    return {
        "mean": mean(values),
        "median": median(values),
        "mode": mode(values),
        "minimum": min(values),
        "maximum": max(values),
        "spread": spread(values),
    }


def _figure(value: float | None) -> str:
    return "–" if value is None else decimals(value)


SYSTEM = System(_summary)
