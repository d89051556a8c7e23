"""Measurements as parts of the JSON reports: latency, tokens, and the cost of judges."""

from __future__ import annotations

from pydantic import Field

from workbench.reports.json_base import ReportModel


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


class JudgeUseReport(ReportModel):
    """The cost of asking judges; it is part of no other number."""

    asked: int = Field(description="number of judgements for which a model was asked, without those that were known")
    usage: UsageReport | None
    cost_usd: float | None = Field(description="US dollars; null if unknown")
