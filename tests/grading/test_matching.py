from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from workbench.grading.matching import maximum_matching

Table = list[list[bool]]
"""For each member, whether each call fits it."""

tables: st.SearchStrategy[Table] = st.integers(0, 5).flatmap(
    lambda calls: st.lists(st.lists(st.booleans(), min_size=calls, max_size=calls), max_size=4)
)


def paired(table: Table) -> dict[int, int]:
    calls = range(len(table[0]) if table else 0)
    return maximum_matching(range(len(table)), calls, lambda member, call: table[member][call])


def can_all_be_taken(table: Table, calls: tuple[int, ...]) -> bool:
    """Return whether these calls fit as many members, found by trying all pairings."""
    return any(
        all(table[member][call] for member, call in zip(members, calls, strict=True))
        for members in permutations(range(len(table)), len(calls))
    )


def best_calls(table: Table) -> tuple[int, ...]:
    """Of the largest sets of calls that can be taken the one with the earliest calls."""
    calls = range(len(table[0]) if table else 0)
    for size in range(min(len(table), len(calls)), 0, -1):
        for chosen in combinations(calls, size):
            if can_all_be_taken(table, chosen):
                return chosen
    return ()


@given(tables)
def test_as_many_as_possible_are_paired_and_the_earliest_calls_taken(table: Table) -> None:
    assert tuple(sorted(paired(table).values())) == best_calls(table)


@given(tables)
def test_every_pair_fits_and_no_call_serves_two(table: Table) -> None:
    pairs = paired(table)
    assert all(table[member][call] for member, call in pairs.items())
    assert len(set(pairs.values())) == len(pairs)


@given(tables, st.data())
def test_how_many_are_paired_does_not_depend_on_the_order_of_the_members(table: Table, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(table))
    assert len(paired(shuffled)) == len(paired(table))
    assert set(paired(shuffled).values()) == set(paired(table).values())


def test_a_call_passes_to_another_member_so_that_both_get_one() -> None:
    assert paired([[True, True], [True, False]]) == {0: 1, 1: 0}


def test_nothing_more_is_asked_once_every_member_has_a_call() -> None:
    asked: list[int] = []

    def fits(_: int, call: int) -> bool:
        asked.append(call)
        return True

    assert maximum_matching([0], [3, 4, 5], fits) == {0: 3}
    assert asked == [3]
