"""Numbers as text for a person: counted nouns and figures."""

from __future__ import annotations

import math


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun: `0 runs`, `1 run`, `2,000 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def figure(value: float) -> str:
    """Returns a number with at most three decimals, or three significant digits where it is smaller than that."""
    if not math.isfinite(value):
        return str(value)
    shown = f"{value:.3f}".rstrip("0").rstrip(".") if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"
    return shown.replace("-", "−", 1) if shown.startswith("-") else shown
