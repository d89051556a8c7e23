"""The mean of scores and numbers, which can be as large as a float."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, also where the sum is beyond a float. Raises ZeroDivisionError for want of values."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)
