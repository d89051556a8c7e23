"""How many examples a property is tried with where that is not left to the profile."""

from __future__ import annotations

from hypothesis import settings


def examples(thorough: int) -> int:
    """Returns so many where 100 are the ordinary number, as in the profile `thorough`, and in proportion in another."""
    return thorough * settings().max_examples // 100
