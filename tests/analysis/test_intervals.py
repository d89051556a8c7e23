"""Wilson's interval covers the true share about as often as it says, and behaves at the ends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.intervals import wilson

COUNTS = st.integers(1, 5_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))


def coverage(of: int, share: float) -> float:
    """How often the interval of `of` trials holds the share that is behind them: exactly, over all outcomes."""
    covered = 0.0
    for good in range(of + 1):
        low, high = wilson(good, of)
        if low <= share <= high:
            covered += math.comb(of, good) * share**good * (1 - share) ** (of - good)
    return covered


@given(COUNTS)
def test_it_holds_what_was_found_and_stays_within_0_and_1(counts: tuple[int, int]) -> None:
    good, of = counts
    low, high = wilson(good, of)
    assert 0 <= low <= good / of <= high <= 1
    assert low < high


@given(COUNTS)
def test_good_and_bad_mirror_each_other(counts: tuple[int, int]) -> None:
    good, of = counts
    low, high = wilson(good, of)
    assert wilson(of - good, of) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@given(COUNTS)
def test_more_of_the_same_make_it_narrower(counts: tuple[int, int]) -> None:
    good, of = counts
    (low, high), (lower, higher) = wilson(2 * good, 2 * of), wilson(good, of)
    assert high - low < higher - lower


def test_none_and_all_leave_room_on_one_side_only() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)


@pytest.mark.parametrize("of", [10, 20, 50, 100, 300])
def test_it_covers_the_true_share_in_95_of_100_suites(of: int) -> None:
    covered = [coverage(of, percent / 100) for percent in range(5, 96)]
    assert sum(covered) / len(covered) == pytest.approx(0.95, abs=0.01)
    assert min(covered) > 0.88


@pytest.mark.parametrize(("good", "of"), [(0, 0), (-1, 3), (4, 3)])
def test_what_is_no_share_has_none(good: int, of: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        wilson(good, of)
