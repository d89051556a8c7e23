"""Signs of the app and the reports, and bars for shares."""

from __future__ import annotations

from collections.abc import Iterable

FORK = "↳ fork"
"""The sign before the name of a forked run."""

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(shares: Iterable[float]) -> str:
    """Return a text with one block character for each share, on a fixed scale from 0 to 1.

    Only a share of 1 has the highest block, so "all" and "nearly all" differ."""
    return "".join(BLOCKS[_level(share, len(BLOCKS) - 1)] for share in shares)


def _level(share: float, top: int) -> int:
    if share >= 1:
        return top
    # A mean score may be negative infinity.
    return min(int(max(share, 0.0) * top), top - 1)
