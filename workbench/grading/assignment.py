"""Finds the best one-to-one pairing of rows with columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

MAX_PAIRS = 10_000
"""Up to this many pairs, a hundred by a hundred, the best pairing is computed. With more, each row takes its best in
turn."""

_MAX_VERIFIED = 20_000
_SLACK = 1e-9
_LOOKED_AT = 100
_LOOKED_AT_IN_ALL = 100_000


def pairs_in_turn(
    rows: Sequence[int], columns: Sequence[int], gain: Callable[[int, int], float]
) -> list[tuple[int, int]]:
    """Pair each row with the column that gains most among the first hundred that are left: fast, but not always the
    best. With more than a thousand rows each considers fewer columns, so that the time is linear in the rows.

    Returns the pairs in the order of the rows; among equal gains the earliest column wins.
    """
    left = list(columns)
    looked_at = max(min(_LOOKED_AT, _LOOKED_AT_IN_ALL // (len(rows) or 1)), 1)
    pairs = []
    for row in rows:
        if not left:
            break
        column = max(left[:looked_at], key=lambda each: gain(row, each))
        left.remove(column)
        pairs.append((row, column))
    return pairs


class LargePairing(NamedTuple):
    """Pairs of rows with columns, and whether they certainly have the largest total gain."""

    pairs: dict[int, int]
    surely_best: bool


def large_pairing(
    rows: Sequence[int],
    columns: Sequence[int],
    perfect: Mapping[int, int],
    best: Callable[[Sequence[int], Sequence[int]], Mapping[int, int]],
    in_turn: Callable[[Sequence[int], Sequence[int]], Mapping[int, int]],
    gain: Callable[[int, int], float],
    most: Callable[[int], float],
) -> LargePairing:
    """Pair more rows and columns than can be compared pair by pair: the `perfect` pairs first, then the rest.

    The rest is paired by `best` where it is small enough, otherwise by `in_turn`. `most(row)` is an upper bound for the
    gain of a row. The result is certain when each line of the shorter side has its best.
    """
    taken = set(perfect.values())
    rows_left = [row for row in rows if row not in perfect]
    columns_left = [column for column in columns if column not in taken]
    few = len(rows_left) * len(columns_left) <= MAX_PAIRS
    pairs = {**perfect, **(best if few else in_turn)(rows_left, columns_left)}
    return LargePairing(pairs, _each_has_its_best(rows, columns, pairs, gain, most))


def _each_has_its_best(
    rows: Sequence[int],
    columns: Sequence[int],
    pairs: Mapping[int, int],
    gain: Callable[[int, int], float],
    most: Callable[[int], float],
) -> bool:
    """Returns whether each row, or each column where those are fewer, gains as much as it can; `False` if that is
    unknown."""
    by_row = len(rows) <= len(columns)
    if len(pairs) < min(len(rows), len(columns)):
        return False
    limit = max(map(most, rows), default=0.0)
    doubtful = [
        (row, column) for row, column in pairs.items() if gain(row, column) < (most(row) if by_row else limit) - _SLACK
    ]
    if len(doubtful) * max(len(rows), len(columns)) > _MAX_VERIFIED:
        return False
    others = columns if by_row else rows
    return all(
        gain(row, column) >= max(gain(row, other) if by_row else gain(other, column) for other in others) - _SLACK
        for row, column in doubtful
    )


def best_pairing(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair rows with columns so that the sum of the gains is as large as possible. All of the shorter side are paired.

    Gains are integers, so that equal sums are recognised as equal; they may be negative. Returns the pairs in the order
    of their rows. Implements the Hungarian method with potentials, O(rows² · columns).
    """
    if not gains or not gains[0]:
        return []
    if len(gains) > len(gains[0]):
        turned = best_pairing(list(zip(*gains, strict=True)))
        return sorted((row, column) for column, row in turned)
    at_once = _each_row_its_best(gains)
    return at_once if at_once is not None else _hungarian(gains)


def clear_pairing(gains: Sequence[Sequence[float]], margin: float) -> list[tuple[int, int]] | None:
    """Returns the best pairing where it is obvious, else `None`. It is obvious when every line of the shorter side
    gains most with a partner of its own, by more than `margin` over any other."""
    if not gains or not gains[0]:
        return []
    if len(gains) > len(gains[0]):
        turned = clear_pairing(list(zip(*gains, strict=True)), margin)
        return None if turned is None else [(row, column) for column, row in turned]
    columns = []
    for row in gains:
        most = max(row)
        if len(row) > 1 and sorted(row)[-2] >= most - margin:
            return None
        columns.append(row.index(most))
    return list(enumerate(columns)) if len(set(columns)) == len(columns) else None


def sure_pairs(gains: Sequence[Sequence[float]], margin: float) -> dict[int, int]:
    """Returns the pairs that every best pairing contains: a row with the only column in which it gains anything, which
    also gains most with that row, by more than `margin` over any other column. Returns none when a gain is negative."""
    if any(min(row) < 0 for row in gains):
        return {}
    gained_by = [[number for number, gain in enumerate(column) if gain] for column in zip(*gains, strict=True)]
    sure = {}
    for number, row in enumerate(gains):
        best = row.index(max(row))
        clear = all(other == best or gain < row[best] - margin for other, gain in enumerate(row))
        if clear and gained_by[best] == [number]:
            sure[number] = best
    return sure


def _each_row_its_best(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]] | None:
    """Returns the pairing in which every row has its largest gain, which is the best possible one, if it exists."""
    pairs = [(number, row.index(max(row))) for number, row in enumerate(gains)]
    return pairs if len({column for _, column in pairs}) == len(pairs) else None


def _hungarian(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Add one row after another along a cheapest augmenting path. Index 0 stands for "none" on both sides."""
    rows, columns = len(gains), len(gains[0])
    unreached = 1 + 4 * rows * (1 + max(abs(gain) for row in gains for gain in row))
    row_potential = [0] * (rows + 1)
    column_potential = [0] * (columns + 1)
    row_of = [0] * (columns + 1)
    for new_row in range(1, rows + 1):
        row_of[0] = new_row
        column = 0
        slack = [unreached] * (columns + 1)
        came_from = [0] * (columns + 1)
        visited = [False] * (columns + 1)
        while row_of[column]:
            visited[column] = True
            row = row_of[column]
            row_gains = gains[row - 1]
            step, nearest = unreached, 0
            for other in range(1, columns + 1):
                if visited[other]:
                    continue
                reduced = -row_gains[other - 1] - row_potential[row] - column_potential[other]
                if reduced < slack[other]:
                    slack[other], came_from[other] = reduced, column
                if slack[other] < step:
                    step, nearest = slack[other], other
            for other in range(columns + 1):
                if visited[other]:
                    row_potential[row_of[other]] += step
                    column_potential[other] -= step
                else:
                    slack[other] -= step
            column = nearest
        while column:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    return sorted((row_of[column] - 1, column - 1) for column in range(1, columns + 1) if row_of[column])
