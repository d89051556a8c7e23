from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from workbench.grading.matching import best_pairing, certain_pairs, clear_pairing

NARROW, WIDE = st.integers(-3, 3), st.integers(-(10**40), 10**40)


@st.composite
def tables(draw: st.DrawFn, *kinds: st.SearchStrategy[int]) -> list[list[int]]:
    """Draw a table of up to five rows and columns. By default its values are narrow, so that ties are common."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    values = draw(st.sampled_from(kinds or (NARROW,)))
    return draw(st.lists(st.lists(values, min_size=columns, max_size=columns), min_size=rows, max_size=rows))


def total(gains: list[list[int]], pairs: list[tuple[int, int]]) -> int:
    return sum(gains[row][column] for row, column in pairs)


def best_by_trying_all(gains: list[list[int]]) -> int:
    rows, columns = range(len(gains)), range(len(gains[0]))
    if len(rows) <= len(columns):
        return max(total(gains, list(zip(rows, chosen, strict=True))) for chosen in permutations(columns, len(rows)))
    return max(total(gains, list(zip(chosen, columns, strict=True))) for chosen in permutations(rows, len(columns)))


def all_best_pairings(gains: list[list[int]]) -> list[set[tuple[int, int]]]:
    rows, columns = range(len(gains)), range(len(gains[0]))
    if len(rows) <= len(columns):
        tried = [list(zip(rows, chosen, strict=True)) for chosen in permutations(columns, len(rows))]
    else:
        tried = [list(zip(chosen, columns, strict=True)) for chosen in permutations(rows, len(columns))]
    best = best_by_trying_all(gains)
    return [set(pairs) for pairs in tried if total(gains, pairs) == best]


@given(tables())
def test_what_is_seen_at_once_is_the_only_best_pairing(gains: list[list[int]]) -> None:
    seen = clear_pairing(gains, 0.5)
    assert seen is None or all_best_pairings(gains) == [set(seen)]


@given(tables())
def test_sure_pairs_are_in_every_best_pairing(gains: list[list[int]]) -> None:
    sure = set(certain_pairs(gains, 0.5).items())
    assert all(sure <= pairs for pairs in all_best_pairings(gains))


def test_a_row_alone_in_its_best_column_is_sure_of_it() -> None:
    assert certain_pairs([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]], 0.5) == {0: 0}


@given(tables(NARROW, WIDE))
def test_no_other_pairing_is_better(gains: list[list[int]]) -> None:
    assert total(gains, best_pairing(gains)) == best_by_trying_all(gains)


@given(tables(NARROW, WIDE))
def test_all_of_the_shorter_side_are_paired_once(gains: list[list[int]]) -> None:
    pairs = best_pairing(gains)
    assert len(pairs) == min(len(gains), len(gains[0]))
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert pairs == sorted(pairs)


def test_the_best_total_beats_the_best_row() -> None:
    assert best_pairing([[5, 4], [4, 0]]) == [(0, 1), (1, 0)]


def test_nothing_pairs_with_nothing() -> None:
    assert best_pairing([]) == []
    assert best_pairing([[], []]) == []


def test_forty_calls_are_paired() -> None:
    size = 40
    gains = [[-((row * 7 + column * 3) % size) for column in range(size)] for row in range(size)]
    assert len(best_pairing(gains)) == size
