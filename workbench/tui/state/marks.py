"""Marks on two rows of a list, which are then put beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")

_MARKS_MAX = 2


def turned(marked: tuple[int, ...], one: int) -> tuple[int, ...]:
    """The ids that are marked once `one` is, or is no longer; of three the first loses its mark."""
    if one in marked:
        return tuple(other for other in marked if other != one)
    return (*marked, one)[-_MARKS_MAX:]


def pair_of(found: Sequence[Row]) -> tuple[Row, Row] | None:
    """Two rows that are marked; `None` while there are not two."""
    return (found[0], found[1]) if len(found) == _MARKS_MAX else None
