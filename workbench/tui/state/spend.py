"""What runs used: tokens, and money as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.grading.grade import RunResult


@dataclass(frozen=True, slots=True)
class Spend:
    """Tokens in and out, and what is known of their cost in US dollars; `unknown`: the price of some is not."""

    tokens: int = 0
    cost_usd: float = 0.0
    unknown: bool = False


def spend_of(result: RunResult) -> Spend:
    """What a run used."""
    usage = result.trajectory.usage
    tokens = usage.input_tokens + usage.output_tokens if usage is not None else 0
    return Spend(tokens, result.cost_usd or 0.0, unknown=result.cost_usd is None)


def total(spends: Iterable[Spend]) -> Spend:
    """What several runs used together."""
    tokens, cost_usd, unknown = 0, 0.0, False
    for spend in spends:
        tokens, cost_usd, unknown = tokens + spend.tokens, cost_usd + spend.cost_usd, unknown or spend.unknown
    return Spend(tokens, cost_usd, unknown)
