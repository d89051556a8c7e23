"""Numbers as decimal text for a person, rounded as one does by hand."""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

_TEXT_DIGITS = 12
"""Digits of the text that is rounded: what lies beyond them are the leftovers of binary sums."""

_LONG = 1e12
"""From here on there is nothing to round."""


def decimals(value: float, digits: int = 2, *, full: float = 1.0) -> str:
    """A number with so many decimals. A half goes up: 0.625 is `0.63`. What is below `full` is never shown as `full`:
    0.9999 is `0.99`, for it did not reach 1."""
    if not math.isfinite(value) or abs(value) >= _LONG:
        return f"{value:.{digits}f}"
    exact, unit = Decimal(f"{value:.{_TEXT_DIGITS}g}"), Decimal(1).scaleb(-digits)
    rounded = exact.quantize(unit, ROUND_HALF_UP)
    return str(exact.quantize(unit, ROUND_DOWN) if exact < full <= rounded else rounded)
