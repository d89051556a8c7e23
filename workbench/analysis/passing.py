"""Estimates from repeats how likely at least one of k tries is good (pass@k), and how likely all are (pass^k)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple


class Passing(NamedTuple):
    """Means over the `cases` that have at least `k` graded runs, each 0..1."""

    k: int
    cases: int
    at_least_one: float
    all_of_them: float


def passing(cases: Iterable[tuple[int, int]]) -> tuple[Passing, ...]:
    """Returns pass@k and pass^k for each k from 1 to the most runs of a case; a case is given as its good and its
    graded runs.

    Of n runs, c of them good, both are shares of the C(n, k) ways to draw k runs: 1 - C(n-c, k) / C(n, k) is pass@k
    (Chen et al. 2021), C(c, k) / C(n, k) is pass^k (Yao et al. 2024). Neither is biased by n being more than k.
    """
    counts = Counter(cases)
    shares = [(times, list(_shares(of - good, of)), list(_shares(good, of))) for (good, of), times in counts.items()]
    return tuple(
        _mean([share for share in shares if len(share[1]) >= k], k)
        for k in range(1, max((of for _, of in counts), default=0) + 1)
    )


def _shares(some: int, of: int) -> Iterator[float]:
    """Returns C(some, k) / C(of, k) for k from 1 to `of`, one draw after the other, so that no factorial overflows."""
    return accumulate(((some - drawn) / (of - drawn) if drawn < some else 0.0 for drawn in range(of)), float.__mul__)


def _mean(shares: list[tuple[int, list[float], list[float]]], k: int) -> Passing:
    cases = sum(times for times, _, _ in shares)
    none = math.fsum(times * bad[k - 1] for times, bad, _ in shares) / cases
    every = math.fsum(times * good[k - 1] for times, _, good in shares) / cases
    return Passing(k, cases, 1 - none, every)
