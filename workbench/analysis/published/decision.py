"""The report of Toolvaluator: the overall score, and the latency of the model's answers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from workbench.analysis.published.system import Summary, System
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.numerals import counted

MIN_FOR_PERCENTILES = 20
"""With fewer values none lies beyond the 95th percentile."""


@dataclass(frozen=True)
class PrintedLatency:
    """Milliseconds of single answers of the model. `p95` is the published system's own: see `printed_latency`."""

    mean: float
    p50: float
    p95: float
    max: float
    answers: int

    @property
    def has_percentiles(self) -> bool:
        """Whether there are enough answers for percentiles: of two, this p95 is the smaller one, and below p50."""
        return self.answers >= MIN_FOR_PERCENTILES

    def __str__(self) -> str:
        percentiles = f", p50 {self.p50:.1f}, p95 {self.p95:.1f}" if self.has_percentiles else ""
        return f"latency mean {self.mean:.1f}{percentiles}, max {self.max:.1f} ms"


def printed_latency(latencies_ms: Sequence[float]) -> PrintedLatency:
    """Returns the latency statistics of some answers. Raises ValueError without any.

    The 95th percentile is the value before the one at 95% of the sorted list: of two values the smaller one, of twenty
    the 19th. That is how the published system counts; the totals of a batch use the nearest rank.
    """
    if not latencies_ms:
        raise ValueError("no latencies")
    ascending = sorted(latencies_ms)
    number = len(ascending)
    return PrintedLatency(
        statistics.fmean(ascending),
        statistics.median(ascending),
        ascending[int(0.95 * number) - 1] if number > 1 else ascending[0],
        ascending[-1],
        number,
    )


def overall_score(scores: Sequence[float]) -> float:
    """Returns the mean of the scores of all examples, or of all chains however many steps they have; 0 without any."""
    return statistics.fmean(scores) if scores else 0.0


def _summary(runs: Sequence[RunResult]) -> Summary:
    score = overall_score([run.score or 0.0 for run in runs])
    answers = (round_ for run in runs for round_ in run.trajectory.rounds)
    latencies = [round_.latency_ms for round_ in answers if round_.latency_ms is not None]
    headline = f"overall score {score:.3f} of {counted(len(runs), 'example')}"
    if not latencies:
        return Summary(headline, (), {"score": score, "examples": len(runs), "latency": None})
    latency = printed_latency(latencies)
    percentiles = (latency.p50, latency.p95) if latency.has_percentiles else (None, None)
    printed = {"mean": latency.mean, "p50": percentiles[0], "p95": percentiles[1], "max": latency.max}
    return Summary(f"{headline}, {latency}", (), {"score": score, "examples": len(runs), "latency": {**printed}})


SYSTEM = System(_summary)
