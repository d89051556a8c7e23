"""The number of examples of a property test that does not leave it to the profile."""

from __future__ import annotations

from hypothesis import settings


def examples(thorough: int) -> int:
    """Return `thorough` in a profile of 100 examples, proportionally fewer in a smaller profile, and at least 3."""
    return max(thorough * settings().max_examples // 100, min(thorough, 3))
