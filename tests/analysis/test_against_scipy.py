"""The statistics agree with SciPy. SciPy is imported in the tests, because the import is slow and each worker collects
all tests."""

from __future__ import annotations

import importlib
from random import Random
from typing import Any

import pytest

from workbench.analysis.statistics import SIGNIFICANCE_LEVEL, _beta_below, mcnemar, permutation, share_interval

pytestmark = pytest.mark.slow


def _binomtest(good: int, of: int) -> Any:
    return importlib.import_module("scipy.stats").binomtest(good, of)


@pytest.mark.parametrize("counts", [(0, 1), (7, 2), (12, 1), (0, 9), (15, 15), (130, 100), (511, 490), (1_000, 900)])
def test_mcnemar_is_the_binomial_test_of_discordant_pairs(counts: tuple[int, int]) -> None:
    assert mcnemar(*counts) == pytest.approx(_binomtest(counts[0], sum(counts)).pvalue, rel=1e-9)


@pytest.mark.parametrize(("good", "of"), [(1, 2), (1, 12), (7, 9), (50, 100), (1_999, 2_000)])
def test_a_share_is_beyond_each_bound_of_its_interval_in_one_of_forty_by_mid_p(good: int, of: int) -> None:
    binom = importlib.import_module("scipy.stats").binom
    low, high = share_interval(good, of)
    assert binom.sf(good, of, low) + binom.pmf(good, of, low) / 2 == pytest.approx(SIGNIFICANCE_LEVEL / 2, rel=1e-9)
    assert binom.cdf(good - 1, of, high) + binom.pmf(good, of, high) / 2 == pytest.approx(
        SIGNIFICANCE_LEVEL / 2, rel=1e-9
    )


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.4), (1.0, 20.0), (57.5, 3.2), (4_000.0, 900.0)])
def test_the_beta_distribution_is_theirs(a: float, b: float) -> None:
    beta = importlib.import_module("scipy.stats").beta
    for at in (0.0, 0.001, 0.2, 0.5, 0.8, 0.94, 1.0):
        assert _beta_below(at, a, b) == pytest.approx(beta.cdf(at, a, b), rel=1e-9, abs=1e-12)


def _their_permutation(first: list[float], second: list[float], ways: float) -> float:
    numpy, stats = importlib.import_module("numpy"), importlib.import_module("scipy.stats")
    found = stats.permutation_test(
        (first, second),
        lambda one, other, axis: numpy.mean(one - other, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=ways,
        rng=numpy.random.default_rng(0),
    )
    return float(found.pvalue)


@pytest.mark.parametrize("pairs", [2, 5, 9, 12])
@pytest.mark.parametrize("grid", [2, 4, 10, None])
def test_the_permutation_test_of_few_pairs_is_exactly_theirs(pairs: int, grid: int | None) -> None:
    random = Random(f"{pairs} {grid}")
    scores = [random.random() if grid is None else random.randint(0, grid) / grid for _ in range(2 * pairs)]
    first, second = scores[:pairs], scores[pairs:]
    ours = permutation([one - other for one, other in zip(first, second, strict=True)])
    assert ours == pytest.approx(_their_permutation(first, second, float("inf")), abs=1e-12)


@pytest.mark.parametrize(("pairs", "grid"), [(30, 4), (120, 20), (60, None)])
def test_that_of_many_pairs_comes_near_to_theirs(pairs: int, grid: int | None) -> None:
    random = Random(f"{pairs} {grid}")
    scores = [random.random() if grid is None else random.randint(0, grid) / grid for _ in range(2 * pairs)]
    first, second = [min(1.0, score + 0.1) for score in scores[:pairs]], scores[pairs:]
    ours = permutation([one - other for one, other in zip(first, second, strict=True)])
    assert ours == pytest.approx(_their_permutation(first, second, 9_999), abs=0.02)
