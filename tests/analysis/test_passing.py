"""pass@k and pass^k are the shares of all draws of k runs that hold a good one, or only good ones."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.statistics import pass_at_k

CASES = st.lists(
    st.integers(1, 7).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))), min_size=1, max_size=6
)


@given(CASES)
def test_they_count_draws_of_k_runs(cases: list[tuple[int, int]]) -> None:
    shares = pass_at_k(cases)
    assert [share.k for share in shares] == list(range(1, max(of for _, of in cases) + 1))
    for k, among, at_least_one, all_of_them in shares:
        draws = [list(combinations([True] * good + [False] * (of - good), k)) for good, of in cases if of >= k]
        assert among == len(draws)
        assert at_least_one == pytest.approx(sum(sum(map(any, d)) / len(d) for d in draws) / among)
        assert all_of_them == pytest.approx(sum(sum(map(all, d)) / len(d) for d in draws) / among)


@given(st.integers(1, 60), st.integers(1, 10))
def test_with_equal_repeats_more_tries_help_the_first_and_hurt_the_second(of: int, several: int) -> None:
    shares = pass_at_k([((of * place) // several, of) for place in range(several)])
    for fewer, more in pairwise(shares):
        assert fewer.at_least_one <= more.at_least_one + 1e-12
        assert fewer.all_of_them >= more.all_of_them - 1e-12


def test_a_case_with_fewer_runs_is_in_no_mean_of_more_tries() -> None:
    shares = pass_at_k([(1, 1), (0, 2)])
    assert [(share.cases, share.at_least_one) for share in shares] == [(2, 0.5), (1, 0.0)]


def test_a_thousand_repeats_are_no_trouble() -> None:
    shares = pass_at_k([(500, 1_000)])
    expected = math.comb(500, 10) / math.comb(1_000, 10)
    assert shares[9].at_least_one == pytest.approx(1 - expected)
    assert shares[9].all_of_them == pytest.approx(expected)
    assert shares[-1] == (1_000, 1, 1.0, 0.0)


def test_cases_without_a_graded_run_have_nothing_to_say() -> None:
    assert pass_at_k([(0, 0)]) == ()
