"""Simulations of the levels and powers of the tests that stop early."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import repeat

import pytest

from tests.sampled_rows import first_of
from workbench.analysis.statistics import (
    DECIDING_E_VALUE,
    SIGNIFICANCE_LEVEL,
    GateEvidence,
    e_value,
    fewest_units_to_reach,
    level_of_look,
    looks_after,
    mcnemar,
)
from workbench.limits import MAX_LOOKS

CASES = 200
TRIALS = 2_000


def trial(seed: int, good_a: float, good_b: float) -> list[tuple[bool, bool]]:
    """Cases in random order, each good with A and with B by itself."""
    drawn = random.Random(seed)
    return [(drawn.random() < good_a, drawn.random() < good_b) for _ in range(CASES)]


def decided_by_e(pairs: list[tuple[bool, bool]]) -> int | None:
    """After how many cases looking after each one decides."""
    one = other = 0
    for number, (a, b) in enumerate(pairs, 1):
        one, other = one + (a and not b), other + (b and not a)
        if e_value(one, other) >= DECIDING_E_VALUE:
            return number
    return None


def decided_by_looks(pairs: list[tuple[bool, bool]], looks: int = 4) -> int | None:
    """After how many cases one of a few looks decides."""
    for look, cases in enumerate(looks_after(CASES, looks), 1):
        seen = pairs[:cases]
        one, other = sum(a and not b for a, b in seen), sum(b and not a for a, b in seen)
        if mcnemar(one, other) <= level_of_look(look, looks):
            return cases
    return None


def share(decide: Callable[[list[tuple[bool, bool]]], int | None], good_a: float, good_b: float) -> tuple[float, float]:
    """The share of trials that are decided, and the mean number of cases until they ended."""
    ends = [decide(trial(seed, good_a, good_b)) for seed in range(TRIALS)]
    return sum(end is not None for end in ends) / TRIALS, sum(end or CASES for end in ends) / TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("decide", [decided_by_e, decided_by_looks])
@pytest.mark.parametrize("good", first_of([0.6, 0.9], 1))
def test_equal_models_are_rarely_told_apart_however_often_one_looks(
    decide: Callable[[list[tuple[bool, bool]]], int | None], good: float
) -> None:
    found, _ = share(decide, good, good)
    assert found <= SIGNIFICANCE_LEVEL + 3 * math.sqrt(SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / TRIALS)


@pytest.mark.slow
def test_a_clear_difference_is_decided_early_and_a_small_one_less_surely() -> None:
    assert share(decided_by_e, 0.9, 0.6) > (0.999, 0)
    assert share(decided_by_e, 0.9, 0.6)[1] < 50
    found, cases = share(decided_by_looks, 0.9, 0.75)
    assert found > 0.95
    assert cases < 150


def test_the_e_value_is_a_martingale_if_both_sides_are_alike() -> None:
    """The mean of the next two is the present one."""
    for one in range(12):
        for other in range(12):
            after = (e_value(one + 1, other) + e_value(one, other + 1)) / 2
            assert after == pytest.approx(e_value(one, other))
    assert e_value(0, 0) == pytest.approx(1)
    assert e_value(10_000, 0) == math.inf


def test_the_levels_of_looks_are_those_of_the_source() -> None:
    """Four looks: z of 4.049, 2.863, 2.337 and 2.024."""
    assert [level_of_look(look, 4) for look in (1, 2, 3, 4)] == pytest.approx(
        [5.2e-5, 0.0042, 0.0194, 0.0430], rel=0.02
    )
    assert level_of_look(1, 1) == pytest.approx(0.05, abs=1e-4)
    assert looks_after(10, 4) == (3, 5, 8, 10)
    assert looks_after(2, 4) == (1, 2)
    with pytest.raises(ValueError, match="look 1 of 11"):
        level_of_look(1, MAX_LOOKS + 1)


GATE, WORSE = 0.95, 0.85


def evidence_of(*units: float | tuple[float, float]) -> GateEvidence:
    evidence = GateEvidence(GATE, WORSE)
    for unit in units:
        evidence.add(*unit) if isinstance(unit, tuple) else evidence.add(unit)
    return evidence


@pytest.mark.parametrize(
    ("units", "up", "down", "verdict"),
    [
        ((1.0,) * 20, 17.785269, 0.114031, None),
        ((1.0,) * 21, 20.615590, 0.106256, "reached"),
        ((0.0, 0.0), 0.040404, 29.75, "missed"),
        ((0.8,) * 5, 0.773802, 19.239624, None),
        (((1.0, 1.0), (0.5, 0.5), (1.0, 0.25), (0.75, 1.0)), 0.884947, 2.483034, None),
    ],
)
def test_the_evidence_about_a_gate_has_known_values(
    units: tuple[float | tuple[float, float], ...], up: float, down: float, verdict: str | None
) -> None:
    found = evidence_of(*units)
    assert (found.evidence_above, found.evidence_below) == pytest.approx((up, down), abs=5e-7)
    assert found.verdict == verdict


def test_what_is_decided_stays_decided() -> None:
    found = evidence_of(0.0, 0.0, *[1.0] * 200)
    assert found.verdict == "missed"
    assert found.evidence_below == pytest.approx(29.75)


@pytest.mark.parametrize(
    ("gate", "worse", "fewest"), [(0.95, 0.85, 21), (0.9, 0.8, 16), (0.99, 0.9, 31), (0.8, 0.7, 10)]
)
def test_it_takes_so_many_units_to_reach_a_gate(gate: float, worse: float, fewest: int) -> None:
    assert fewest_units_to_reach(gate, worse, repeat(1.0)) == fewest
    assert fewest_units_to_reach(gate, worse, repeat(1.0, fewest - 1)) is None


def test_a_gate_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(ValueError, match="`gate` must be above `worse`"):
        GateEvidence(0.8, 0.9)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("size", [0.125, 1.0])
def test_the_evidence_is_a_fair_game_at_its_rate_however_the_runs_of_a_case_depend(share: float, size: float) -> None:
    """The expected evidence does not change for units whose mean is the rate, however they depend on each other."""
    for rate, worth in ((WORSE, "evidence_above"), (GATE, "evidence_below")):
        before = evidence_of(1.0, 0.5)
        likely = (1 - rate) / (1 - share) if share < 1 else 0.0
        if not 0 <= likely <= 1:
            continue
        expected = 0.0
        for next_share, chance in ((share, likely), (1.0, 1 - likely)):
            after = evidence_of(1.0, 0.5)
            after.add(next_share, size)
            expected += chance * getattr(after, worth)
        if likely:
            assert expected == pytest.approx(getattr(before, worth))
