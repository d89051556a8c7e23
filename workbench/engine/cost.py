"""What a run cost: the tokens that were counted, at the price of its model. Nobody else decides what costs nothing and
what is not known: `None` is unknown, here and wherever it is shown."""

from __future__ import annotations

from workbench.config.models import Price
from workbench.trajectory.trajectory import Trajectory

FREE = Price(0.0, 0.0)
"""The price of what is asked over no network."""

_PRICED_TOKENS = 1_000_000


def cost_of(trajectory: Trajectory, price: Price | None) -> float | None:
    """US dollars: nothing where no model was asked, or one that is free, whatever it counted; `None` where the price is
    not known, or the tokens of some answer are not. Attempts that failed have no count and are not in it; what a fork
    replays costs nothing."""
    if not trajectory.asked:
        return 0.0
    if price is not None and not any((price.input, price.output, price.cached_input)):
        return 0.0
    usage = trajectory.usage
    uncounted = any(each.stop_reason is not None and each.usage is None for each in trajectory.asked)
    if price is None or usage is None or uncounted:
        return None
    cached = min(usage.cached_input_tokens, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    dollars = (usage.input_tokens - cached) * price.input + cached * cached_price + usage.output_tokens * price.output
    return dollars / _PRICED_TOKENS
