"""Aggregates of suites, as lines for a report and as part of the JSON report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from workbench.analysis.aggregates import AggregateGate, AggregateResult
from workbench.reports.paint import Paint
from workbench.reports.report_model import Finite, ReportModel, SuitePath
from workbench.reports.values import counted, reached_text
from workbench.reports.visible import one_line
from workbench.suite.decimals import decimals
from workbench.suite.model import Statistic


class AggregateGateReport(ReportModel):
    """What a statistic had to reach."""

    statistic: Statistic
    threshold: float
    strictly: bool = Field(description="the statistic must lie above the threshold, not only on it")
    reached: Finite | None = Field(description="null where there was no value, which meets no gate")
    met: bool


class AggregateReport(ReportModel):
    """Statistics over the graded runs of a suite that have a value; null where the values have no such statistic."""

    suite: SuitePath
    name: str
    of: str
    tags: tuple[str, ...]
    count: int = Field(description="how many runs have a value")
    statistics: dict[Statistic, Finite | None]
    gates: tuple[AggregateGateReport, ...]
    met: bool


def aggregate_report(result: AggregateResult) -> AggregateReport:
    """One aggregate for the JSON report."""
    return AggregateReport.model_validate(result)


def aggregate_lines(
    aggregates: Sequence[AggregateResult], suite_names: Mapping[str, str], paint: Paint
) -> Iterator[str]:
    """A line for each aggregate, and one for each of its gates."""
    for result in aggregates:
        suite = suite_names.get(result.suite, result.suite)
        tags = f", tagged {' or '.join(result.tags)}" if result.tags else ""
        subject = one_line(f"{result.name} of {suite}: {result.of}{tags}")
        said = ", ".join(f"{name} {_number(value)}" for name, value in result.statistics.items())
        yield f"{subject}, {counted(result.count, 'run')}{': ' if said else ''}{said}"
        yield from (_gate_line(gate, result.count, paint) for gate in result.gates)


def _gate_line(gate: AggregateGate, count: int, paint: Paint) -> str:
    if gate.reached is None:
        reached = f"unknown, for there was {'but one value' if count == 1 else 'no value'}"
    else:
        reached = reached_text(gate.reached, gate.threshold)
    demand = "above" if gate.strictly else "at least"
    verdict = paint("met", "good") if gate.met else paint("missed", "bad")
    return f"  {gate.statistic} {reached}, {demand} {gate.threshold:.12g} demanded: {verdict}"


def _number(value: float | None) -> str:
    return "–" if value is None else decimals(value, 3)
