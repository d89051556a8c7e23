"""Signs of the app and the reports, and bars for shares."""

from __future__ import annotations

from collections.abc import Iterable

FORK = "↳ fork"
"""Precedes a run that was forked from another one."""


BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(shares: Iterable[float], blocks: str = BLOCKS) -> str:
    """Return one block for each share, on a fixed scale from 0 to 1.

    Only 1 has the highest block, because all and nearly all are not the same.
    """
    return "".join(blocks[_level(share, len(blocks) - 1)] for share in shares)


def _level(share: float, top: int) -> int:
    return top if share >= 1 else min(int(max(share, 0.0) * top), top - 1)  # a share may be negative infinity
