"""How far two moments are apart, and what credit one deserves for being close to another."""

from __future__ import annotations

from datetime import datetime


def seconds_between(left: datetime, right: datetime) -> float:
    """The distance of two moments in seconds, never negative. If only one has an offset, the offset is dropped.

    Raises ValueError when both have one and one of them is a day or more.
    """
    if left.tzinfo is None or right.tzinfo is None:
        left, right = left.replace(tzinfo=None), right.replace(tzinfo=None)
    return abs((left - right).total_seconds())


def moment_credit(distance_s: float, tolerance_s: float, max_difference_s: float) -> float:
    """Credit 0..1: full within the tolerance, none from the maximum on, between them falling linearly from the
    expected moment itself, so that it jumps down just past the tolerance (Arcade's datetime critic)."""
    if distance_s <= tolerance_s:
        return 1.0
    return 0.0 if distance_s >= max_difference_s else 1 - distance_s / max_difference_s
