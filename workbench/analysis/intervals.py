"""Confidence intervals of shares."""

from __future__ import annotations

import math
from typing import NamedTuple

Z_95 = 1.959963984540054
"""Between minus and plus this lie 95 % of a standard normal distribution."""


class Interval(NamedTuple):
    """The bounds of a share, each 0..1."""

    low: float
    high: float


def wilson(good: int, of: int, z: float = Z_95) -> Interval:
    """Returns Wilson's score interval for the share behind `good` of `of` independent trials; 95 % unless `z` says
    otherwise.

    It contains the shares p from which the observed one is at most z standard errors away, with standard errors under
    p: so it stays within 0..1, and has a width at 0 and at 1 too (Wilson 1927). Raises ValueError unless 0 <= good <=
    of and of > 0.
    """
    if not 0 <= good <= of or not of:
        raise ValueError(f"{good} of {of} is no share")
    share, weight = good / of, z * z / of
    middle = (share + weight / 2) / (1 + weight)
    reach = z / (1 + weight) * math.sqrt(share * (1 - share) / of + weight / (4 * of))
    return Interval(max(middle - reach, 0.0) if good else 0.0, min(middle + reach, 1.0) if good < of else 1.0)
