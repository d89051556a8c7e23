"""Whether a batch is good enough: by `--min-score`, else by each suite's gate, else by the statuses of its cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.analysis.totals import GRADED, totals_of
from workbench.grading.grade import RunResult
from workbench.suite.model import Gate

GateMeasure = Literal["mean score", "pass rate"]


@dataclass(frozen=True)
class GateResult:
    """One demand and what was reached. `suite` is the suite's path, `None` for the command line's own demand."""

    suite: str | None
    measure: GateMeasure
    minimum: float
    reached: float | None
    """`None` when nothing was graded, which meets no gate."""

    @property
    def met(self) -> bool:
        return self.reached is not None and self.reached >= self.minimum - 1e-9


@dataclass(frozen=True)
class Quality:
    """The verdict on a batch, and the demands behind it."""

    met: bool
    gates: tuple[GateResult, ...]


def quality_of(results: Iterable[RunResult], gates: Mapping[str, Gate], min_score: float | None = None) -> Quality:
    """Judge a batch. `gates` holds the gate of each suite by its path; `min_score` (0..1) overrides them all.

    A suite without a gate is good enough when every case passed or warned in the last of its repeats.
    """
    results = tuple(results)
    if min_score is not None:
        gate = GateResult(None, "mean score", min_score, totals_of(results).mean_score)
        return Quality(gate.met, (gate,))
    checked: list[GateResult] = []
    met = True
    for suite in dict.fromkeys(result.suite for result in results):
        runs = [result for result in results if result.suite == suite]
        demands = _demands(suite, gates.get(suite, Gate()), runs)
        checked += demands
        met = met and (all(demand.met for demand in demands) if demands else _no_case_failed(runs))
    return Quality(met, tuple(checked))


def _demands(suite: str, gate: Gate, runs: list[RunResult]) -> list[GateResult]:
    totals = totals_of(runs)
    demands: list[GateResult] = []
    if gate.min_score is not None:
        demands.append(GateResult(suite, "mean score", gate.min_score, totals.mean_score))
    if gate.min_pass_rate is not None:
        demands.append(GateResult(suite, "pass rate", gate.min_pass_rate, totals.pass_rate))
    return demands


def _no_case_failed(runs: list[RunResult]) -> bool:
    last = {(run.case_id, run.model): run.status for run in sorted(runs, key=_repeat) if run.status in GRADED}
    return "failed" not in last.values()


def _repeat(run: RunResult) -> int:
    return run.repeat
