"""Measures how close numbers and times are to the expected ones, and reads numbers from texts."""

from __future__ import annotations

import json
import math
from datetime import datetime
from fractions import Fraction

from pydantic import JsonValue

from workbench.checks.kinds import Near
from workbench.late_patterns import late_pattern

_SPACE = " \t\n\r"
_NUMBER = late_pattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def spelled_number(text: str) -> int | float | None:
    """Returns the number that a text spells by JSON's grammar, with optional JSON white space around it; `None` for any
    other text, and for an integer of more digits than Python reads (4,300)."""
    spelled = text.strip(_SPACE)
    if _NUMBER.fullmatch(spelled) is None:
        return None
    try:
        number: int | float = json.loads(spelled)
    except ValueError:
        return None
    return number


def json_number(value: JsonValue) -> int | float:
    """Returns the number that a value is or, as a text, spells. Raises TypeError for everything else, booleans
    included."""
    number = spelled_number(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError("not a number")
    return number


def published_number(value: JsonValue) -> float:
    """Returns the number that Arcade's numeric critic reads: Python's `float`, with booleans as 1 and 0.

    Raises TypeError, ValueError or OverflowError as `float` does.
    """
    if value is None or isinstance(value, list | dict):
        raise TypeError("not a number")
    return float(value)


def closeness(check: Near, actual: float) -> float:
    """Returns how close a number is to `check.near`, at most 1. With `value_range` there is no lower bound.

    - `value_range = [low, high]`: 1 - |e - a| with both scaled to the range, in exactly this order of operations, as
      Arcade's numeric critic computes it.
    - `tolerance`: 1 within it, then falling linearly to 0 at twice the tolerance; integers are compared exactly.

    Raises ValueError or OverflowError when there is nothing to compare.
    """
    if check.value_range is not None:
        low, high = map(float, check.value_range)
        result = 1 - abs((float(check.near) - low) / (high - low) - (float(actual) - low) / (high - low))
    else:
        result = _tolerant(check.near, actual, check.tolerance or 0)
    if not math.isfinite(result):
        raise ValueError("not a finite number")
    return result


def is_close(check: Near, credit: float) -> bool:
    """Returns whether a closeness is sufficient for the check to hold."""
    return credit >= (check.match_threshold if check.value_range is not None else 1.0)


def _tolerant(near: float, actual: float, tolerance: float) -> float:
    if not (math.isfinite(near) and math.isfinite(actual)):
        away = abs(near - actual)
        return away if math.isnan(away) else float(away <= tolerance)
    distance = abs(Fraction(near) - Fraction(actual))
    if distance <= tolerance:
        return 1.0
    exact = all(isinstance(number, int) for number in (near, actual, tolerance))
    # In binary, 0.3 and 0.4 are slightly more than 0.1 apart: what is within the tolerance as written counts as within
    # it.
    if not exact and math.isclose(float(distance), tolerance, rel_tol=1e-9):
        return 1.0
    return min(max(0.0, 2 - float(distance) / tolerance), _BELOW_ONE) if tolerance else 0.0


_BELOW_ONE = math.nextafter(1.0, 0.0)
"""The largest credit for a number beyond the tolerance, however close it is."""


def seconds_between(left: datetime, right: datetime) -> float:
    """Returns the distance of two times in seconds, never negative. If only one has an offset, it is dropped.

    Raises ValueError when both have an offset and one of them is a day or more.
    """
    if left.tzinfo is None or right.tzinfo is None:
        left, right = left.replace(tzinfo=None), right.replace(tzinfo=None)
    return abs((left - right).total_seconds())


def timestamp_credit(distance_s: float, tolerance_s: float, max_difference_s: float) -> float:
    """Returns the credit, 0..1, for a time `distance_s` from the expected one: 1 within the tolerance, 0 from the
    maximum on, and `1 - distance / maximum` in between. It jumps down just past the tolerance, as Arcade's datetime
    critic does."""
    if distance_s <= tolerance_s:
        return 1.0
    return 0.0 if distance_s >= max_difference_s else 1 - distance_s / max_difference_s
