"""Whether a batch is good enough: by `--min-score`, else by each suite's gate, else by the statuses of its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from workbench.analysis.aggregates import SLACK, AggregateResult
from workbench.analysis.totals import totals_of
from workbench.grading.grade import RunResult
from workbench.grading.repeats import CaseResult, case_results, path_of_suite
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
        return self.reached is not None and self.reached >= self.minimum - SLACK


@dataclass(frozen=True)
class Quality:
    """The verdict on a batch, the demands behind it, what each case with each model came to, and what the suites
    aggregate."""

    met: bool
    gates: tuple[GateResult, ...]
    cases: tuple[CaseResult, ...] = ()
    aggregates: tuple[AggregateResult, ...] = ()

    @property
    def demands_met(self) -> bool:
        """Whether the demands are met, whatever the statuses of cases."""
        return all(gate.met for gate in self.gates) and all(each.met for each in self.aggregates)


def quality_of(
    results: Iterable[RunResult],
    gates: Mapping[str, Gate],
    min_score: float | None = None,
    *,
    suite_of: Callable[[RunResult], str] = path_of_suite,
    aggregates: tuple[AggregateResult, ...] = (),
) -> Quality:
    """Judge a batch. `gates` holds the gate of each suite by its path; cases are of the same suite where `suite_of`
    answers the same. The gates of `aggregates` count among those of their suites. `min_score` (0..1) stands in for all
    of these gates, so that none of them is in the answer.

    A suite without a gate is good enough when no case failed, by the rule for its repeats.
    """
    results = tuple(results)
    cases = tuple(case_results(results, suite_of))
    if min_score is not None:
        gate = GateResult(None, "mean score", min_score, totals_of(results).mean_score)
        return Quality(gate.met, (gate,), cases, tuple(replace(each, gates=()) for each in aggregates))
    with_failures = {case.runs[0].suite for case in cases if case.status == "failed"}
    checked: list[GateResult] = []
    met = True
    for suite in dict.fromkeys(result.suite for result in results):
        runs = [result for result in results if result.suite == suite]
        demands = _demands(suite, gates.get(suite, Gate()), runs)
        checked += demands
        gated = [demand.met for demand in demands]
        gated += [gate.met for each in aggregates if each.suite == suite for gate in each.gates]
        met = met and (all(gated) if gated else suite not in with_failures)
    return Quality(met, tuple(checked), cases, aggregates)


def _demands(suite: str, gate: Gate, runs: list[RunResult]) -> list[GateResult]:
    totals = totals_of(runs)
    demands: list[GateResult] = []
    if gate.min_score is not None:
        demands.append(GateResult(suite, "mean score", gate.min_score, totals.mean_score))
    if gate.min_pass_rate is not None:
        demands.append(GateResult(suite, "pass rate", gate.min_pass_rate, totals.pass_rate))
    return demands
