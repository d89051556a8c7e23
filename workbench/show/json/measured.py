"""Measurements as parts of the JSON reports: latency, tokens, and the cost of judges."""

from __future__ import annotations

from pydantic import Field

from workbench.show.json.base import ReportModel


class LatencyReport(ReportModel):
    """Model latency of the graded runs in milliseconds, percentiles by nearest rank."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    max_ms: float


class UsageReport(ReportModel):
    """Tokens as the providers counted them."""

    input_tokens: int
    output_tokens: int
    cached_input_tokens: int = Field(description="number of input tokens that were read from a cache")
    reasoning_tokens: int = Field(description="number of output tokens for reasoning")


class ToolArgumentsReport(ReportModel):
    """Calls of one tool whose arguments were checked against its own schema."""

    tool: str
    valid: int
    checked: int
    unknown: int = Field(description="number of calls that no schema could check")


class ValidArgumentsReport(ReportModel):
    """How many calls of graded runs have arguments that the tool's own schema accepts."""

    valid: int
    checked: int = Field(description="number of calls that a schema could check")
    unknown: int = Field(
        description="number of calls that none could: there is no tool of that name, or its schema is invalid"
    )
    rate: float | None = Field(description="valid calls divided by checked ones, 0..1; null where none was checked")
    tools: tuple[ToolArgumentsReport, ...]


class JudgeUseReport(ReportModel):
    """The cost of asking judges; it is part of no other number."""

    asked: int = Field(description="number of judgements for which a model was asked, without those that were known")
    usage: UsageReport | None
    cost_usd: float | None = Field(description="US dollars; null if unknown")


class DifferenceReport(ReportModel):
    """Something of which the source's verdict is another one."""

    about: str
    value: float = Field(description="the source's score, 0..1")
    passed_here: bool


class AgreementReport(ReportModel):
    """The verdicts of the system that made the runs beside those of their cases, by one of its scores."""

    name: str
    agree: int = Field(description="how many verdicts are the same")
    of: int = Field(description="how many have a verdict on both sides")
    ungraded: int = Field(description="how many have none here")
    differ: tuple[DifferenceReport, ...]
