"""How many examples a property is tried with where that is not left to the profile."""

from __future__ import annotations

from hypothesis import settings


def examples(thorough: int) -> int:
    """Return `thorough` in a profile of 100 examples, fewer in proportion in another, and 3 at least."""
    return max(thorough * settings().max_examples // 100, min(thorough, 3))
