"""The gates and aggregates of a batch, with the values that its runs reached."""

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
from workbench.show.spans import Line, Span, indented
from workbench.show.visible import after, one_line

if TYPE_CHECKING:
    from workbench.analysis.early_stop_state import GateEarlyStop


class Demand(NamedTuple):
    """A gate or an aggregate as a line with the reached value, and further lines below it.

    `met` is `None` for an aggregate without gates."""

    met: bool | None
    line: Line
    below: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines. The lines below the first line are indented."""
        return (self.line, *indented(self.below, 2))


def gate_demands(gates: Iterable[GateResult], suite_names: Mapping[str, str], *, with_model: bool) -> Iterator[Demand]:
    """Yield a line for each gate. With `with_model`, the line names the gate's model."""
    for gate in gates:
        measure = GATE_MEASURES[gate.measure]
        subject = measure.option
        if gate.suite is not None:
            subject = f"gate of {suite_names.get(gate.suite, gate.suite)}"
        if with_model:
            subject += _whose(gate.model)
        reached = "unknown, because nothing was graded"
        if gate.reached is not None:
            reached = reached_text(gate.reached, gate.minimum, is_rate=measure.is_rate)
        # A rate over few runs means little, so the number of runs follows.
        if measure.is_rate and gate.graded:
            reached += f" of {counted(gate.graded, 'graded run')}"
        demand = demanded_text(gate.minimum, is_rate=measure.is_rate)
        head = f"{one_line(subject)}: {gate.measure} {reached}{_zeros(gate.counted_zero)}, {demand} required: "
        below: list[Line] = []
        if gate.watched is not None:
            below.append(line_of(watched_text(gate.watched)))
        yield Demand(gate.met, (Span(head), _verdict(gate.met)), tuple(below))


def aggregate_demands(
    aggregates: Iterable[AggregateResult], suite_names: Mapping[str, str], *, with_model: bool
) -> Iterator[Demand]:
    """Yield lines for each aggregate and its gates. With `with_model`, they name the aggregate's model."""
    for result in aggregates:
        subject = f"{result.name} of {suite_names.get(result.suite, result.suite)}"
        if with_model:
            subject += _whose(result.model)
        subject += f": {result.of}" + after(", tagged ", " or ".join(result.tags))
        statistics = []
        for name, value in result.statistics.items():
            statistics.append(f"{name} {_number(value, result.unit)}")
        head = f"{one_line(subject)}, {counted(result.count, 'run')}{_zeros(result.counted_zero)}"
        met = None
        if result.gates:
            met = result.met
        below = tuple(_gate_line(gate, result.count) for gate in result.gates)
        yield Demand(met, line_of(head + after(": ", ", ".join(statistics))), below)


def demands(quality: Quality, suite_names: Mapping[str, str], *, with_model: bool) -> Iterator[Demand]:
    """Yield the gates of a batch, then its aggregates."""
    yield from gate_demands(quality.gates, suite_names, with_model=with_model)
    yield from aggregate_demands(quality.aggregates, suite_names, with_model=with_model)


def watched_text(gate: GateEarlyStop) -> str:
    """Return what the sequential test of a gate decided, after how many cases, and how many runs it saved."""
    worse = demanded_text(gate.worse, is_rate=True)
    size = ""
    if gate.clusters is not None:
        size += f" in {counted(gate.clusters, 'cluster')}"
    if gate.runs != gate.cases:
        size += f", {counted(gate.runs, 'run')}"
    if gate.verdict is None:
        undecided = f"not decided against {worse} after {counted(gate.cases, 'case')}{size}"
        return f"{undecided}: {_watched_rate(gate)}; the rate itself counts, without a bound on errors"
    why = f"no better than {worse}"
    if gate.verdict == "reached":
        why = "at least the gate"
    decided = f"decided after {counted_of(gate.cases, gate.of_cases, 'case')}{size}: {why} (errors of 5% either way)"
    saved = f"{decided}; {counted(gate.saved, 'run')} saved"
    if gate.saved:
        # A batch stops when its rate is far from the limit, so the rate of the finished runs is exaggerated.
        saved += "; the rate of runs that were stopped is biased"
    return saved


def _watched_rate(gate: GateEarlyStop) -> str:
    if gate.rate is None or gate.interval is None:
        return "nothing was graded"
    return f"{rate_text(gate.rate)} (95%: {rates_text(*gate.interval)})"


def _gate_line(gate: AggregateGate, count: int) -> Line:
    if gate.reached is not None:
        reached = reached_text(gate.reached, gate.threshold)
    elif count == 1:
        reached = "unknown, because there was only one value"
    else:
        reached = "unknown, because there was no value"
    head = f"{gate.statistic} {reached}, {gate.demand} {setting_text(gate.threshold)} required: "
    return (Span(head), _verdict(gate.met))


def _verdict(met: bool) -> Span:
    if met:
        return Span("met", "passed")
    return Span("missed", "failed")


def _whose(model: str | None) -> str:
    if model is None:
        return " with all models"
    return f" with {model}"


def _zeros(runs: int) -> str:
    if not runs:
        return ""
    verb = "count"
    if runs == 1:
        verb = "counts"
    return f" ({counted(runs, 'failed run')} {verb} 0)"


def _number(value: float | None, unit: Unit) -> str:
    if value is None:
        return NOTHING
    match unit:
        case "usd":
            return cost_text(value)
        case "share":
            return mean_text(value)
        case _:
            return figure(value)
