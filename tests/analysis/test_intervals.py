"""Confidence intervals of means in 0..1 and of paired differences: known values, and coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.analysis.statistics import (
    SIGNIFICANCE_LEVEL,
    adjusted_to_test,
    bounded_interval,
    mean_difference_interval,
    normal_quantile,
    paired_shares_interval,
    share_interval,
)

COUNTS = st.integers(1, 400).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))
SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]), min_size=1, max_size=40)
OFF = 5e-7


@each_row(
    ("values", "bounds"),
    [
        ([1.0] * 10, (0.741134, 1.0)),
        ([1.0] * 9 + [0.0], (0.596524, 0.994999)),
        ([1.0] * 27 + [0.75, 0.5, 0.0], (0.821596, 0.987773)),
        ([1.0] * 180 + [0.75] * 10 + [0.5] * 6 + [0.0] * 4, (0.922960, 0.971809)),
        ([1.0] * 95 + [0.0] * 5, (0.892679, 0.981452)),
        ([0.75] * 5, (0.443787, 0.849640)),
        ([tenth / 10 for tenth in range(11)], (0.303980, 0.696020)),
        ([0.0] * 20, (0.0, 0.139108)),
        ([1.0], (0.05, 1.0)),
    ],
)
def test_the_interval_of_a_mean_has_known_values(values: list[float], bounds: tuple[float, float]) -> None:
    assert bounded_interval(values) == pytest.approx(bounds, abs=OFF)
    mirrored = bounded_interval([1 - value for value in values])
    assert mirrored == pytest.approx((1 - bounds[1], 1 - bounds[0]), abs=OFF)


def test_clusters_count_for_less_by_their_design_effect_and_their_number() -> None:
    pairs = [1.0, 1.0, 0.0, 0.0] * 15
    alone, together = bounded_interval(pairs), bounded_interval(pairs, [place // 2 for place in range(60)])
    assert alone is not None and together is not None
    # The values of a pair are the same: 30 of them, and Student's quantile for 29.
    counted = 60 / (2 * (30 / 29) * (59 / 60)) * (normal_quantile(SIGNIFICANCE_LEVEL) / 2.0452296) ** 2
    wide = (counted + 1) / (60 + 1)
    assert (together.high - together.low) ** 2 * wide == pytest.approx((alone.high - alone.low) ** 2, rel=0.02)
    lone = bounded_interval([1.0] * 8, ["x"] * 8)
    assert lone is not None and lone.low < 0.05


def test_a_rate_and_the_mean_of_a_suite_of_0_and_1_have_one_interval() -> None:
    assert share_interval(9, 15) == bounded_interval([1.0] * 9 + [0.0] * 6)
    assert share_interval(9, 15) == pytest.approx((0.345, 0.819), abs=5e-4)


@pytest.mark.parametrize("values", [[], [1.2, 0.5], [math.inf, 1.0], [math.nan], [-0.1]])
def test_values_that_are_not_in_0_to_1_have_none(values: list[float]) -> None:
    assert bounded_interval(values) is None


@given(SCORES)
def test_it_holds_the_mean_and_has_a_width(values: Sequence[float]) -> None:
    found = bounded_interval(values)
    assert found is not None
    assert 0 <= found.low <= math.fsum(values) / len(values) + 1e-12
    assert math.fsum(values) / len(values) - 1e-12 <= found.high <= 1
    assert found.low < found.high


@given(COUNTS)
def test_more_of_the_same_make_it_narrower(counts: tuple[int, int]) -> None:
    good, of = counts
    (low, high), (lower, higher) = share_interval(2 * good, 2 * of), share_interval(good, of)
    assert high - low < higher - lower


@cache
def _coverage(of: int) -> list[float]:
    """Return the exact coverage of the interval of `of` trials for several true shares, over all outcomes."""
    found = [share_interval(good, of) for good in range(of + 1)]
    return [
        math.fsum(
            math.comb(of, good) * share**good * (1 - share) ** (of - good)
            for good, (low, high) in enumerate(found)
            if low <= share <= high
        )
        for share in (percent / 100 for percent in range(5, 96))
    ]


@pytest.mark.parametrize("of", [10, 20, 50, 100])
def test_it_covers_the_true_share_in_95_of_100_suites(of: int) -> None:
    covered = _coverage(of)
    assert 0.95 <= sum(covered) / len(covered) <= 0.98
    assert min(covered) > 0.919


@pytest.mark.parametrize(("good", "of"), [(0, 0), (-1, 3), (4, 3)])
def test_what_is_no_share_has_none(good: int, of: int) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        share_interval(good, of)


@each_row(
    ("counts", "comparisons", "bounds"),
    [
        ((7, 2, 52), 1, (-0.020156, 0.223143)),
        ((12, 1, 52), 1, (0.090661, 0.347113)),
        ((0, 0, 30), 1, (-0.113513, 0.113513)),
        ((6, 0, 100), 1, (0.020787, 0.124768)),
        ((0, 3, 20), 1, (-0.360419, 0.035294)),
        ((12, 1, 52), 3, (0.057914, 0.379392)),
        ((7, 0, 100), 3, (0.012001, 0.157120)),
    ],
)
def test_the_interval_of_paired_shares_is_tango_s(
    counts: tuple[int, int, int], comparisons: int, bounds: tuple[float, float]
) -> None:
    assert paired_shares_interval(*counts, z=normal_quantile(SIGNIFICANCE_LEVEL / comparisons)) == pytest.approx(
        bounds, abs=OFF
    )


def test_the_interval_of_a_mean_difference_has_known_values() -> None:
    scores = [1.0, 0.5, 0.5, 0.25, *[0.0] * 25, -0.25]
    assert mean_difference_interval(scores) == pytest.approx((-0.030704, 0.161852), abs=OFF)
    assert mean_difference_interval([0.0] * 20) == pytest.approx((-0.074023, 0.074023), abs=OFF)
    assert mean_difference_interval([0.5]) is None
    assert mean_difference_interval([0.5] * 4, ["x"] * 4) is None


def test_the_test_decides_about_0_and_the_interval_follows() -> None:
    low, high = adjusted_to_test(paired_shares_interval(7, 2, 52), is_real=True, distance=0.1)
    assert low == 0.0 < high
    assert adjusted_to_test(paired_shares_interval(12, 1, 52), is_real=False, distance=0.2)[0] == 0.0
    assert adjusted_to_test(paired_shares_interval(2, 7, 52), is_real=True, distance=-0.1)[1] == 0.0
