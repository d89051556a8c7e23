"""Runs that Workbench did not make, such as imported runs: a model's answers and the results of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypeVar

from workbench.dataclasses import dataclass
from workbench.trajectory.events import Deviation, StopReason, ToolCall, Usage


@dataclass(frozen=True)
class ExternalResult:
    """The result of a call in an external run."""

    content: str
    is_error: bool = False


@dataclass(frozen=True)
class ExternalRound:
    """One answer of a model, and the results of its calls by call id.

    `deviations` are the repaired deviations of the endpoint in this answer. They refer to calls by call id. If
    `stop_reason` is `None`, the answer ended with its calls or, without calls, with its text."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: Mapping[str, ExternalResult] = field(default_factory=dict)
    latency_ms: float = 0.0
    usage: Usage | None = None
    first_token_ms: float | None = None
    deviations: tuple[Deviation, ...] = ()
    stop_reason: StopReason | None = None
    cost_usd: float | None = None

    def join(self, later: ExternalRound) -> ExternalRound:
        """Return one round with the texts and calls of this round and a later round. Their call ids must differ."""
        return replace(
            later,
            text="\n\n".join(filter(None, (self.text, later.text))),
            reasoning="\n\n".join(filter(None, (self.reasoning, later.reasoning))),
            calls=(*self.calls, *later.calls),
            results={**self.results, **later.results},
            latency_ms=self.latency_ms + later.latency_ms,
            usage=_sum(self.usage, later.usage, Usage()),
            first_token_ms=self.first_token_ms,
            deviations=(*self.deviations, *later.deviations),
            cost_usd=_sum(self.cost_usd, later.cost_usd, 0.0),
        )


_Amount = TypeVar("_Amount", Usage, float)


def _sum(first: _Amount | None, second: _Amount | None, none: _Amount) -> _Amount | None:
    if first is None and second is None:
        return None
    return (first or none) + (second or none)


@dataclass(frozen=True)
class ExternalRun:
    """A run that Workbench did not make, with at least one round.

    If `error` is set, the run broke off after its last round. `latency_ms` is `None` if it is unknown. `started_at` is
    an ISO 8601 time with an offset, or empty if it is unknown."""

    rounds: tuple[ExternalRound, ...]
    error: str | None = None
    latency_ms: float | None = None
    started_at: str = ""

    def with_latency(self, took_ms: float) -> ExternalRun:
        """Return the run with the measured latency in milliseconds, unless it already has a latency."""
        if self.latency_ms is not None:
            return self
        *before, last = self.rounds
        return replace(self, rounds=(*before, replace(last, latency_ms=took_ms)))
