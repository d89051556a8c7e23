"""Rows of a table of which a few are tried every time."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def first_of(values: Iterable[object], count: int) -> list[object]:
    """Return the values as parameters of a test, of which all after the first `count` are slow."""
    rows: list[object] = list(values)
    return rows[:count] + [pytest.param(value, marks=pytest.mark.slow) for value in rows[count:]]
