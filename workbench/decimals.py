"""Rounds numbers for a person, as by hand."""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import lru_cache

_TEXT_DIGITS = 12
"""Significant digits that are rounded; those beyond are errors of binary sums."""

_LONG = 1e12
"""Larger numbers are shown as they are."""


def decimals(value: float, digits: int = 2, *, full: float = 1.0) -> str:
    """Returns a number with `digits` decimals. A half is rounded up: 0.625 is `0.63`. A number below `full` is never
    shown as `full`: 0.9999 is `0.99`, because it did not reach 1."""
    if not math.isfinite(value) or abs(value) >= _LONG:
        return f"{value:.{digits}f}"
    return _decimals(f"{value:.{_TEXT_DIGITS}g}", digits, full)


@lru_cache(maxsize=1024)
def _decimals(number: str, digits: int, full: float) -> str:
    exact, unit = Decimal(number), Decimal(1).scaleb(-digits)
    rounded = exact.quantize(unit, ROUND_HALF_UP)
    return str(exact.quantize(unit, ROUND_DOWN) if exact < full <= rounded else rounded)
