"""How much each argument of a call counts, from the weights that a suite writes."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.suite.checks import NAMED_WEIGHTS, Weight


def resolve_weights(weights: Sequence[Weight | None]) -> list[float]:
    """The weights in force, in the same order.

    Numbers stay as they are and need not sum to 1. Arguments without a weight share 1 equally. As soon as one weight is
    named, all are divided by their sum, named ones counting 1 (`minimal`) to 7 (`critical`): Arcade's fuzzy weights.
    """
    unweighted = sum(weight is None for weight in weights)
    raw = [
        1 / unweighted if weight is None else float(NAMED_WEIGHTS[weight] if isinstance(weight, str) else weight)
        for weight in weights
    ]
    if not any(isinstance(weight, str) for weight in weights):
        return raw
    total = sum(raw)
    return [weight / total for weight in raw]
