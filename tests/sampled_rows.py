"""Tables of tests of which only a few rows are quick enough for every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from _pytest.mark import ParameterSet


def first_of(values: Iterable[object], count: int) -> list[object]:
    """Return the values as parameters of a test. All after the first `count` are slow."""
    rows: list[object] = list(values)
    return rows[:count] + [pytest.param(value, marks=pytest.mark.slow) for value in rows[count:]]


def first_rows(rows: Iterable[Sequence[object] | ParameterSet], count: int) -> list[object]:
    """Return rows of several parameters. All after the first `count` are slow."""
    return [row if place < count else _slow(row) for place, row in enumerate(rows)]


def in_turn(rows: Sequence[object], columns: Sequence[object]) -> list[object]:
    """Return each row with each column. For each row, all columns but one are slow."""
    return [
        pytest.param(row, column, marks=[pytest.mark.slow] if (place - turn) % len(columns) else [])
        for place, row in enumerate(rows)
        for turn, column in enumerate(columns)
    ]


def _slow(row: Sequence[object] | ParameterSet) -> ParameterSet:
    values, marks, name = row if isinstance(row, ParameterSet) else (row, (), None)
    return pytest.param(*values, marks=[*marks, pytest.mark.slow], id=name)
