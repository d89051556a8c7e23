"""What is demanded of a batch, and what was reached: gates and aggregates of suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from workbench.analysis.gates import AggregateGate, AggregateResult, GateResult, Quality
from workbench.analysis.measures import GATE_MEASURES, Unit
from workbench.numerals import (
    NOTHING,
    cost_text,
    counted,
    counted_of,
    demanded_text,
    figure,
    mean_text,
    rate_text,
    rates_text,
    reached_text,
    setting_text,
)
from workbench.show.doc import line_of
from workbench.show.spans import Line, Span
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.analysis.watched import GateWatched


class Demand(NamedTuple):
    """A gate or an aggregate with what was reached, and what there is to say of it below.

    An aggregate that demands nothing has no `met`."""

    met: bool | None
    line: Line
    below: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """All of it, with what stands below indented."""
        return (self.line, *((Span("  "), *line) for line in self.below))


def gate_demands(gates: Iterable[GateResult], suite_names: Mapping[str, str], *, with_model: bool) -> Iterator[Demand]:
    """Yield each gate, with the model where `with_model` is true."""
    for gate in gates:
        measure = GATE_MEASURES[gate.measure]
        demanded = measure.option if gate.suite is None else f"gate of {suite_names.get(gate.suite, gate.suite)}"
        subject = one_line(demanded + (_whose(gate.model) if with_model else ""))
        reached = "unknown, because nothing was graded"
        if gate.reached is not None:
            reached = reached_text(gate.reached, gate.minimum, is_rate=measure.is_rate)
        rests = f" of {counted(gate.graded, 'graded run')}" if measure.is_rate and gate.graded else ""
        demand = demanded_text(gate.minimum, is_rate=measure.is_rate)
        head = f"{subject}: {gate.measure} {reached}{rests}{_zeros(gate.counted_zero)}, {demand} required: "
        below = (line_of(watched_text(gate.watched)),) if gate.watched is not None else ()
        yield Demand(gate.met, (Span(head), _verdict(gate.met)), below)


def aggregate_demands(
    aggregates: Iterable[AggregateResult], suite_names: Mapping[str, str], *, with_model: bool
) -> Iterator[Demand]:
    """Yield each aggregate with its gates, with the model where `with_model` is true."""
    for result in aggregates:
        suite = suite_names.get(result.suite, result.suite)
        tags = f", tagged {' or '.join(result.tags)}" if result.tags else ""
        model = _whose(result.model) if with_model else ""
        subject = one_line(f"{result.name} of {suite}{model}: {result.of}{tags}")
        statistics = ", ".join(f"{name} {_number(value, result.unit)}" for name, value in result.statistics.items())
        head = f"{subject}, {counted(result.count, 'run')}{_zeros(result.counted_zero)}"
        met = result.met if result.gates else None
        below = tuple(_gate_line(gate, result.count) for gate in result.gates)
        yield Demand(met, line_of(f"{head}: {statistics}" if statistics else head), below)


def demands(quality: Quality, suite_names: Mapping[str, str], *, with_model: bool) -> Iterator[Demand]:
    """Yield the gates of a batch, then its aggregates."""
    yield from gate_demands(quality.gates, suite_names, with_model=with_model)
    yield from aggregate_demands(quality.aggregates, suite_names, with_model=with_model)


def watched_text(gate: GateWatched) -> str:
    """Return what is known of a pass rate in a batch that may stop early."""
    clusters = f" in {counted(gate.clusters, 'cluster')}" if gate.clusters is not None else ""
    runs = f", {counted(gate.runs, 'run')}" if gate.runs != gate.cases else ""
    worse = demanded_text(gate.worse, is_rate=True)
    if gate.verdict is None:
        after = f"not decided against {worse} after {counted(gate.cases, 'case')}{clusters}{runs}"
        return f"{after}: {_watched_rate(gate)}; the rate itself counts, without a bound on errors"
    of = f"{counted_of(gate.cases, gate.of_cases, 'case')}{clusters}{runs}"
    why = "at least the gate" if gate.verdict == "reached" else f"no better than {worse}"
    biased = "; the rate of runs that were stopped is biased" if gate.saved else ""
    return f"decided after {of}: {why} (errors of 5% either way); {counted(gate.saved, 'run')} saved{biased}"


def _watched_rate(gate: GateWatched) -> str:
    if gate.rate is None or gate.interval is None:
        return "nothing was graded"
    return f"{rate_text(gate.rate)} (95%: {rates_text(*gate.interval)})"


def _gate_line(gate: AggregateGate, count: int) -> Line:
    if gate.reached is not None:
        reached = reached_text(gate.reached, gate.threshold)
    else:
        reached = f"unknown, because there was {'only one value' if count == 1 else 'no value'}"
    head = f"{gate.statistic} {reached}, {gate.demand} {setting_text(gate.threshold)} required: "
    return (Span(head), _verdict(gate.met))


def _verdict(met: bool) -> Span:
    return Span("met", "passed") if met else Span("missed", "failed")


def _whose(model: str | None) -> str:
    return " with all models" if model is None else f" with {model}"


def _zeros(runs: int) -> str:
    if not runs:
        return ""
    return f" ({counted(runs, 'failed run')} {'counts' if runs == 1 else 'count'} 0)"


def _number(value: float | None, unit: Unit) -> str:
    if value is None:
        return NOTHING
    if unit == "usd":
        return cost_text(value)
    return mean_text(value) if unit == "share" else figure(value)
