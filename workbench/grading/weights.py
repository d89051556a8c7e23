"""How much each argument of a call counts, and which must hold, from what a suite writes."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.suite.checks import NAMED_WEIGHTS, CheckBase, Weight


def is_required(check: CheckBase, *, without_weight: bool = False) -> bool:
    """Whether the run fails when the check does not hold: as written, else `without_weight` where it has no weight."""
    return without_weight and check.weight is None if check.required is None else check.required


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
