"""Gates and aggregates of suites as lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from workbench.analysis.gates import AggregateGate, AggregateResult, GateResult
from workbench.analysis.measures import GATE_MEASURES, Unit
from workbench.numerals import (
    NOTHING,
    cost_text,
    counted,
    demanded_text,
    figure,
    mean_text,
    rate_text,
    rates_text,
    reached_text,
    setting_text,
)
from workbench.show.text import Paint
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.analysis.watched import GateWatched


def gate_lines(
    gates: Iterable[GateResult], suite_names: Mapping[str, str], paint: Paint, *, with_model: bool
) -> Iterator[str]:
    """Yields a line for each gate, with the model where `with_model` is true."""
    for gate in gates:
        measure = GATE_MEASURES[gate.measure]
        demanded = measure.option if gate.suite is None else f"gate of {suite_names.get(gate.suite, gate.suite)}"
        subject = one_line(demanded + (_whose(gate.model) if with_model else ""))
        reached = "unknown, because nothing was graded"
        if gate.reached is not None:
            reached = reached_text(gate.reached, gate.minimum, is_rate=measure.is_rate)
        rests = f" of {counted(gate.graded, 'graded run')}" if measure.is_rate and gate.graded else ""
        demand = demanded_text(gate.minimum, is_rate=measure.is_rate)
        zeros = f" ({_zeros_text(gate.counted_zero)})" if gate.counted_zero else ""
        verdict = paint("met", "passed") if gate.met else paint("missed", "failed")
        yield f"{subject}: {gate.measure} {reached}{rests}{zeros}, {demand} required: {verdict}"
        if gate.watched is not None:
            yield f"  {watched_text(gate.watched)}"


def watched_text(gate: GateWatched) -> str:
    """Returns what is known of a pass rate in a batch that may stop early."""
    clusters = f" in {counted(gate.clusters, 'cluster')}" if gate.clusters is not None else ""
    runs = f", {counted(gate.runs, 'run')}" if gate.runs != gate.cases else ""
    worse = demanded_text(gate.worse, is_rate=True)
    if gate.verdict is None:
        after = f"not decided against {worse} after {counted(gate.cases, 'case')}{clusters}{runs}"
        return f"{after}: {_rate_text(gate)}; the rate itself counts, without a bound on errors"
    of = f"{gate.cases:,} of {counted(gate.of_cases, 'case')}{clusters}{runs}"
    why = "at least the gate" if gate.verdict == "reached" else f"no better than {worse}"
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
    if value is None:
        return NOTHING
    if unit == "usd":
        return cost_text(value)
    return mean_text(value) if unit == "share" else figure(value)
