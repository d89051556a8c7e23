"""How close a value is to a number."""

from __future__ import annotations

import math

from pydantic import JsonValue

from workbench.suite.checks import Near


def as_number(value: JsonValue) -> float:
    """The number that a value is or spells: numbers, texts such as `"1.5e3"`, and booleans as 1 and 0, as Arcade's
    numeric critic reads them. Raises TypeError, ValueError or OverflowError for everything else."""
    if value is None or isinstance(value, list | dict):
        raise TypeError("not a number")
    return float(value)


def closeness(check: Near, value: JsonValue) -> float:
    """How close a value is to `check.near`: 1 at the number itself. With `value_range` not bounded below.

    - `value_range = [low, high]`: 1 - |e - a| with both scaled to the range, in just this order of operations (Arcade).
    - `tolerance`: 1 within it, then falling linearly to 0 at twice the tolerance.

    Raises TypeError, ValueError or OverflowError when there is no number to compare.
    """
    actual = as_number(value)
    if check.value_range is not None:
        low, high = check.value_range
        result = 1 - abs((check.near - low) / (high - low) - (actual - low) / (high - low))
    else:
        result = _tolerant(abs(check.near - actual), check.tolerance or 0.0)
    if not math.isfinite(result):
        raise ValueError("not a finite number")
    return result


def is_close(check: Near, credit: float) -> bool:
    """Whether a closeness is close enough."""
    return credit >= (check.match_threshold if check.value_range is not None else 1.0)


def _tolerant(distance: float, tolerance: float) -> float:
    if math.isnan(distance):
        return distance
    # 0.3 and 0.4 are a hair more than 0.1 apart in binary: what is written as within the tolerance is within it.
    if distance <= tolerance or math.isclose(distance, tolerance, rel_tol=1e-9):
        return 1.0
    return max(0.0, 2 - distance / tolerance) if tolerance else 0.0
