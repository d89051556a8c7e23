"""Numbers as text for a person: decimals, figures, counted nouns."""

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


# Numbers as text for a person: counted nouns and figures.


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun: `0 runs`, `1 run`, `2,000 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def figure(value: float) -> str:
    """Returns a number with at most three decimals, or three significant digits where it is smaller than that."""
    if not math.isfinite(value):
        return str(value)
    shown = f"{value:.3f}".rstrip("0").rstrip(".") if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"
    return shown.replace("-", "−", 1) if shown.startswith("-") else shown
