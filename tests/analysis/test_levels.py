"""Simulations of the promised levels: the coverage of intervals, and wrong decisions on equal models and on rates at
the threshold.

Each setting has its measured figures. The seeds are fixed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from random import Random

import pytest

from tests.analysis.cells import ran
from workbench.analysis.comparison import Cell, cell_of
from workbench.analysis.measures import PASS_RATE, SCORE
from workbench.analysis.paired import PairedComparison, compare_pairs, corrected_for_count
from workbench.analysis.statistics import (
    SIGNIFICANCE_LEVEL,
    GateEvidence,
    Interval,
    bounded_interval,
    mean_difference_interval,
)
from workbench.grading.status import Status

pytestmark = pytest.mark.slow

NEAR = 0.0006
"""The measured shares have three digits."""


def off(trials: int) -> float:
    return 3 * math.sqrt(SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / trials)


def _score(random: Random, good: float) -> float:
    return 1.0 if random.random() < good else random.choice((0.0, 0.5, 0.75))


def _held(trials: int, seed: str, truth: float, draw: Callable[[Random], Interval | None]) -> float:
    """Return how often the interval of the drawn values covers the truth."""
    random = Random(seed)
    found = [draw(random) for _ in range(trials)]
    return sum(each is not None and each.low <= truth <= each.high for each in found) / trials


@pytest.mark.parametrize(
    ("cases", "good", "found"),
    [
        (10, 0.7, 0.975),
        (10, 0.95, 0.975),
        (30, 0.7, 0.96),
        (30, 0.95, 0.985),
        (100, 0.95, 0.98),
        (100, 0.99, 0.9825),
    ],
)
def test_the_interval_of_a_mean_holds_the_true_one(cases: int, good: float, found: float) -> None:
    truth = good + (1 - good) * 1.25 / 3
    held = _held(
        400, f"{cases} {good}", truth, lambda random: bounded_interval([_score(random, good) for _ in range(cases)])
    )
    assert held == pytest.approx(found, abs=NEAR)
    assert held >= 1 - SIGNIFICANCE_LEVEL - off(400)


@pytest.mark.parametrize(("alike", "found"), [(0.0, 0.99), (0.5, 0.96), (1.0, 0.9975)])
def test_so_it_does_where_cases_are_variations(alike: float, found: float) -> None:
    """Twelve requests with five variations each. A share of the variations has the request's result."""

    def draw(random: Random) -> Interval | None:
        values: list[float] = []
        for _ in range(12):
            whole = float(random.random() < 0.9)
            values += [whole if random.random() < alike else float(random.random() < 0.9) for _ in range(5)]
        return bounded_interval(values, [place // 5 for place in range(60)])

    held = _held(400, f"clusters {alike}", 0.9, draw)
    assert held == pytest.approx(found, abs=NEAR)
    assert held >= 1 - SIGNIFICANCE_LEVEL - off(400)


@pytest.mark.parametrize(("cases", "found"), [(10, 0.998), (30, 0.971), (100, 0.959)])
def test_the_interval_of_a_mean_difference_holds_the_true_one(cases: int, found: float) -> None:
    truth = 0.1 * (1 - 1.25 / 3)

    def draw(random: Random) -> Interval | None:
        return mean_difference_interval([_score(random, 0.9) - _score(random, 0.8) for _ in range(cases)])

    held = _held(1_000, f"differences {cases}", truth, draw)
    assert held == pytest.approx(found, abs=NEAR)
    assert held >= 1 - SIGNIFICANCE_LEVEL - off(1_000)


@cache
def _cell(case: int, good: int, of: int, cluster: int | None) -> Cell:
    runs = [
        ran(Status.PASSED if nth < good else Status.FAILED, case=str(case), repeat=nth, rule="majority")
        for nth in range(of)
    ]
    named = None if cluster is None else str(cluster)
    return cell_of([replace(run, grading=replace(run.grading, cluster=named)) for run in runs])


def _equal(random: Random, models: int, cases: int, repeats: int, clusters: int | None) -> list[list[Cell]]:
    """Columns of equal models: how hard a request is for a model is one chance for its variations and repeats."""
    columns: list[list[Cell]] = []
    for _ in range(models):
        shares = [random.choice((0.2, 0.6, 0.95)) for _ in range(clusters or cases)]
        of_cases = [case * len(shares) // cases for case in range(cases)]
        good = [sum(random.random() < shares[at] for _ in range(repeats)) for at in of_cases]
        named = of_cases if clusters else [None] * cases
        columns.append([_cell(case, good[case], repeats, named[case]) for case in range(cases)])
    return columns


def _is_wrong(pairs: Sequence[PairedComparison], score: bool) -> bool:
    adjusted = [pair.by(SCORE).adjusted if score else pair.by(PASS_RATE).adjusted for pair in pairs]
    intervals = [pair.by(SCORE).interval if score else pair.by(PASS_RATE).interval for pair in pairs]
    for p, interval in zip(adjusted, intervals, strict=True):
        assert p is not None and interval is not None
        assert (
            (interval.low >= 0 or interval.high <= 0) if p <= SIGNIFICANCE_LEVEL else interval.low <= 0 <= interval.high
        )
    return any(p is not None and p <= SIGNIFICANCE_LEVEL for p in adjusted)


@pytest.mark.parametrize(
    ("models", "cases", "repeats", "clusters", "status", "score"),
    [
        (2, 40, 1, None, 0.035, 0.035),
        (2, 30, 3, None, 0.0275, 0.0375),
        (3, 30, 1, None, 0.035, 0.035),
        (2, 48, 1, 12, 0.04, 0.04),
        (3, 48, 2, 12, 0.04, 0.0375),
    ],
)
def test_equal_models_differ_in_at_most_one_of_twenty_comparisons(
    models: int, cases: int, repeats: int, clusters: int | None, status: float, score: float
) -> None:
    random, trials, wrong = Random(f"{models} {cases} {repeats} {clusters}"), 400, [0, 0]
    for _ in range(trials):
        pairs = corrected_for_count(
            compare_pairs(*two) for two in combinations(_equal(random, models, cases, repeats, clusters), 2)
        )
        wrong = [wrong[at] + _is_wrong(pairs, bool(at)) for at in (0, 1)]
    assert [each / trials for each in wrong] == pytest.approx([status, score], abs=NEAR)
    assert max(wrong) / trials <= SIGNIFICANCE_LEVEL + off(trials)


@pytest.mark.parametrize(
    ("cases", "repeats", "alike", "reached", "missed"),
    [
        (200, 1, 0.0, 0.0375, 0.026),
        (40, 5, 0.0, 0.0005, 0.016),
        (40, 5, 0.5, 0.002, 0.0135),
        (40, 5, 1.0, 0.0365, 0.016),
        (20, 10, 1.0, 0.0, 0.0095),
    ],
)
def test_a_gate_is_decided_wrongly_in_at_most_one_of_twenty_batches(
    cases: int, repeats: int, alike: float, reached: float, missed: float
) -> None:
    """A decision is wrong if a model no better than `worse` reaches the gate, or one as good as the gate misses it.
    Repeats are independent or follow their case."""
    random, trials = Random(f"{cases} {repeats} {alike}"), 2_000

    def verdict(rate: float) -> str | None:
        evidence = GateEvidence(0.95, 0.85)
        for _ in range(cases):
            whole = random.random() < rate
            good = sum(whole if random.random() < alike else random.random() < rate for _ in range(repeats))
            evidence.add(good / repeats)
        return evidence.verdict

    found = [
        sum(verdict(rate) == wrong for _ in range(trials)) / trials
        for rate, wrong in ((0.85, "reached"), (0.95, "missed"))
    ]
    assert found == pytest.approx([reached, missed], abs=NEAR)
    assert max(found) <= SIGNIFICANCE_LEVEL + off(trials)


def test_clusters_of_other_sizes_that_are_harder_decide_no_gate_wrongly() -> None:
    """The rate is over cases: large clusters, which are harder, count by their size."""
    random, trials, wrong = Random("sizes"), 1_000, 0
    for _ in range(trials):
        evidence = GateEvidence(0.95, 0.85)
        for _ in range(60):
            size = random.choice((1, 8))
            rate = 0.97 if size == 1 else 0.835
            evidence.add(sum(random.random() < rate for _ in range(size)) / size, size / 8)
        wrong += evidence.verdict == "reached"
    assert wrong / trials <= SIGNIFICANCE_LEVEL
