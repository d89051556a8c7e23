"""Gates and aggregates of suites, as lines for a report and as parts of the JSON report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from workbench.analysis.gates import AggregateGate, AggregateResult, GateResult
from workbench.analysis.measures import GATE_MEASURES, GateMeasureName, Unit
from workbench.numerals import (
    NOTHING,
    cost_text,
    counted,
    figure,
    rate_text,
    rates_text,
    reached_text,
    setting_text,
)
from workbench.show.json.base import Finite, IntervalReport, ReportModel, SuitePath
from workbench.show.text import Paint
from workbench.show.visible import one_line
from workbench.suite.model import Statistic

if TYPE_CHECKING:
    from workbench.analysis.watched import GateWatched


class GateWatchedReport(ReportModel):
    """What was known of a pass rate when its runs stopped early, or when all were made."""

    verdict: Literal["reached", "missed"] | None = Field(
        description="decided by a sequential test, and by it `met`; null if all runs left it open"
    )
    worse: float = Field(description="the pass rate that the gate is told apart from")
    runs: int = Field(description="number of graded runs, in their random order, after which that was known")
    of: int = Field(description="number of runs that were planned")
    saved: int = Field(description="number of runs that were planned and not needed")
    cases: int = Field(description="number of cases with a graded run, after which that was known")
    of_cases: int = Field(description="number of cases that were planned")
    clusters: int | None = Field(description="number of clusters that these cases are in; null where each is one")
    rate: float | None = Field(description="mean over these cases of the share of good runs, 0..1")
    interval: IntervalReport | None = Field(description="of `rate`, 95%; null where runs were stopped early")


class GateReport(ReportModel):
    """A demand on the runs of a model and what was reached; `suite` is null for the command line's own."""

    suite: SuitePath | None
    model: str | None = Field(description="null for the runs of all models together")
    measure: GateMeasureName
    minimum: float
    reached: Finite | None
    met: bool
    counted_zero: int = Field(
        description="number of failed runs that count 0 in the mean score, because they failed for a reason besides the"
        " score or have none"
    )
    watched: GateWatchedReport | None = Field(None, description="of a batch that may stop early")


class AggregateGateReport(ReportModel):
    """What a statistic had to reach."""

    statistic: Statistic
    threshold: float
    strictly: bool = Field(description="the statistic must be greater than the threshold, not equal to it")
    reached: Finite | None = Field(description="null without any value, which meets no gate")
    met: bool
    at_most: bool = Field(False, description="the threshold is the most that the statistic may be")


class AggregateReport(ReportModel):
    """Statistics over the graded runs of a suite with a model that have a value; null where the values have no such
    statistic."""

    suite: SuitePath
    model: str | None = Field(description="null for the runs of all models together")
    name: str
    of: str
    unit: Unit = Field("number", description="of the values")
    tags: tuple[str, ...]
    count: int = Field(description="number of runs with a value")
    statistics: dict[Statistic, Finite | None]
    gates: tuple[AggregateGateReport, ...]
    met: bool
    counted_zero: int = Field(
        description="for a score: failed runs that count 0, because they failed for another reason or have none"
    )


def aggregate_report(result: AggregateResult) -> AggregateReport:
    """Returns one aggregate for the JSON report."""
    return AggregateReport.model_validate(result)


def gate_lines(
    gates: Iterable[GateResult], suite_names: Mapping[str, str], paint: Paint, *, with_model: bool
) -> Iterator[str]:
    """Yields a line for each gate, with the model where `with_model` is true."""
    for gate in gates:
        measure = GATE_MEASURES[gate.measure]
        demanded = measure.option if gate.suite is None else f"gate of {suite_names.get(gate.suite, gate.suite)}"
        subject = one_line(demanded + (_whose(gate.model) if with_model else ""))
        reached = (
            "unknown, because nothing was graded" if gate.reached is None else reached_text(gate.reached, gate.minimum)
        )
        rests = f" of {counted(gate.graded, 'graded run')}" if measure.rests_on_runs and gate.graded else ""
        zeros = f" ({_zeros_text(gate.counted_zero)})" if gate.counted_zero else ""
        verdict = paint("met", "passed") if gate.met else paint("missed", "failed")
        yield f"{subject}: {gate.measure} {reached}{rests}{zeros}, {setting_text(gate.minimum)} required: {verdict}"
        if gate.watched is not None:
            yield f"  {watched_text(gate.watched)}"


def watched_text(gate: GateWatched) -> str:
    """Returns what is known of a pass rate in a batch that may stop early."""
    clusters = f" in {counted(gate.clusters, 'cluster')}" if gate.clusters is not None else ""
    runs = f", {counted(gate.runs, 'run')}" if gate.runs != gate.cases else ""
    if gate.verdict is None:
        after = f"not decided against {setting_text(gate.worse)} after {counted(gate.cases, 'case')}{clusters}{runs}"
        return f"{after}: {_rate_text(gate)}; the rate itself counts, without a bound on errors"
    of = f"{gate.cases:,} of {counted(gate.of_cases, 'case')}{clusters}{runs}"
    why = "at least the gate" if gate.verdict == "reached" else f"no better than {setting_text(gate.worse)}"
    biased = "; the rate of runs that were stopped is biased" if gate.saved else ""
    return f"decided after {of}: {why} (errors of 5% either way); {counted(gate.saved, 'run')} saved{biased}"


def _rate_text(gate: GateWatched) -> str:
    if gate.rate is None or gate.interval is None:
        return "nothing was graded"
    return f"{rate_text(gate.rate)} (95%: {rates_text(*gate.interval)})"


def aggregate_lines(
    aggregates: Iterable[AggregateResult], suite_names: Mapping[str, str], paint: Paint, *, with_model: bool
) -> Iterator[str]:
    """Yields a line for each aggregate, and one for each of its gates, with the model where `with_model` is true."""
    for result in aggregates:
        suite = suite_names.get(result.suite, result.suite)
        tags = f", tagged {' or '.join(result.tags)}" if result.tags else ""
        model = _whose(result.model) if with_model else ""
        subject = one_line(f"{result.name} of {suite}{model}: {result.of}{tags}")
        statistics = ", ".join(f"{name} {_number(value, result.unit)}" for name, value in result.statistics.items())
        zeros = f" ({_zeros_text(result.counted_zero)})" if result.counted_zero else ""
        yield f"{subject}, {counted(result.count, 'run')}{zeros}{': ' if statistics else ''}{statistics}"
        yield from (_gate_line(gate, result.count, paint) for gate in result.gates)


def _gate_line(gate: AggregateGate, count: int, paint: Paint) -> str:
    if gate.reached is None:
        reached = f"unknown, because there was {'only one value' if count == 1 else 'no value'}"
    else:
        reached = reached_text(gate.reached, gate.threshold)
    verdict = paint("met", "passed") if gate.met else paint("missed", "failed")
    return f"  {gate.statistic} {reached}, {gate.demand} {setting_text(gate.threshold)} required: {verdict}"


def _whose(model: str | None) -> str:
    return " with all models" if model is None else f" with {model}"


def _zeros_text(runs: int) -> str:
    return f"{counted(runs, 'failed run')} {'counts' if runs == 1 else 'count'} 0"


def _number(value: float | None, unit: Unit) -> str:
    return cost_text(value) if unit == "usd" and value is not None else NOTHING if value is None else figure(value)
