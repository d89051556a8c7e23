"""The tests of differences are exact where they claim to be, ignore irrelevant data, and raise at most one false alarm
in twenty."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.analysis import statistics
from workbench.analysis.statistics import SIGNIFICANCE_LEVEL, bonferroni, mcnemar, permutation
from workbench.numerals import p_text

COUNTS = st.tuples(st.integers(0, 80), st.integers(0, 80))
TWELFTHS = st.integers(-12, 12).map(lambda twelfths: twelfths / 12)
SMALL = st.lists(TWELFTHS, max_size=8)
TRIALS = 2_000
AT_MOST = SIGNIFICANCE_LEVEL + 3 * math.sqrt(SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / TRIALS)
"""The bound that 2,000 trials with one wrong in twenty exceed in one of a thousand such simulations."""


@given(COUNTS)
def test_mcnemar_is_twice_the_smaller_tail_of_the_fair_binomial(counts: tuple[int, int]) -> None:
    of, few = sum(counts), min(counts)
    tail = sum(Fraction(math.comb(of, count), 2**of) for count in range(few + 1))
    assert mcnemar(*counts) == float(min(Fraction(1), 2 * tail))


@given(COUNTS)
def test_mcnemar_does_not_mind_which_side_is_which(counts: tuple[int, int]) -> None:
    assert mcnemar(*counts) == mcnemar(*reversed(counts))


def test_mcnemar_is_wrong_in_at_most_one_of_twenty_whatever_the_number_of_discordant_pairs() -> None:
    for of in range(1, 250):
        wrong = sum(math.comb(of, one) for one in range(of + 1) if mcnemar(one, of - one) <= SIGNIFICANCE_LEVEL)
        assert Fraction(wrong, 2**of) <= Fraction(1, 20)


@given(SMALL)
def test_a_permutation_test_of_few_pairs_is_the_share_of_all_signs(differences: list[float]) -> None:
    twelfths = [round(12 * difference) for difference in differences]
    sums = [abs(sum(map(int.__mul__, signs, twelfths))) for signs in product((1, -1), repeat=len(twelfths))]
    assert permutation(differences) == sum(found >= abs(sum(twelfths)) for found in sums) / len(sums)


@given(st.lists(st.floats(-1, 1), max_size=14), st.randoms(use_true_random=False))
def test_neither_order_nor_sides_nor_equal_pairs_matter(differences: list[float], random: Random) -> None:
    shuffled = [-difference for difference in random.sample(differences, len(differences))]
    assert permutation([*shuffled, 0.0, 0.0]) == permutation(differences)
    assert 0 < permutation(differences) <= 1


@given(st.lists(TWELFTHS.filter(bool), min_size=1, max_size=8))
def test_all_ways_of_counting_agree(differences: list[float]) -> None:
    sizes = [round(12 * abs(difference)) for difference in differences]
    for light in range(sum(sizes) // 2 + 1):
        assert statistics._counted(sizes, light) == statistics._enumerated(sizes, light)


@pytest.mark.parametrize("lean", [0.0, 0.15, 0.3])
def test_drawing_comes_near_to_counting(lean: float) -> None:
    random = Random(7)
    differences = [random.randint(-10, 10) / 10 + lean for _ in range(60)]
    exact = permutation(differences)
    sizes = [round(20 * abs(difference)) for difference in differences]
    light = (sum(sizes) - abs(sum(round(20 * difference) for difference in differences))) // 2
    drawn = (1 + statistics._drawn(sizes, light, Random(0))) / (1 + statistics.RANDOM_DRAWS)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / statistics.RANDOM_DRAWS) + 1e-4)


def test_too_many_ways_to_count_give_the_same_answer_every_time() -> None:
    random = Random(1)
    differences = [random.gauss(0.1, 0.5) for _ in range(80)]
    assert permutation(differences) == permutation(differences) > 1 / (1 + statistics.RANDOM_DRAWS)
    assert permutation(differences) != permutation(differences, seed=1)


def test_pass_and_fail_as_scores_are_tested_as_mcnemar_does() -> None:
    assert permutation([1.0] * 7 + [-1.0] * 2 + [0.0] * 30) == mcnemar(7, 2)
    assert permutation([1.0] * 300 + [-1.0] * 250) == pytest.approx(mcnemar(300, 250))


@pytest.mark.parametrize("differences", [[], [0.0], [0.5, -0.5], [1e300, -1e300]])
def test_without_a_difference_on_the_whole_p_is_1(differences: list[float]) -> None:
    assert permutation(differences) == 1.0


def test_scores_beyond_1_are_compared_too() -> None:
    assert permutation([1e300] * 6) == permutation([5.0] * 6) == 2 / 64


def _passes(random: Random, cases: int, share: float) -> bool:
    """Two models of equal worth on cases that are easy or hard for both, by pass and fail."""
    counts = [0, 0]
    for _ in range(cases):
        of_case = random.betavariate(4 * share, 4 * (1 - share))
        first, second = random.random() < of_case, random.random() < of_case
        if first != second:
            counts[first] += 1
    return mcnemar(*counts) <= SIGNIFICANCE_LEVEL


def _in_halves(random: Random, cases: int, share: float) -> bool:
    """The same by scores of 0, 1/2 and 1."""
    scores = [0.0, 0.5, 1.0]
    weights = [1 - share, 0.3, share]
    pairs = [random.choices(scores, weights, k=2) for _ in range(cases)]
    return permutation([first - second for first, second in pairs]) <= SIGNIFICANCE_LEVEL


def _continuous(random: Random, cases: int, share: float) -> bool:
    """The same by scores of any value."""
    shape = (4 * share, 4 * (1 - share))
    return (
        permutation([random.betavariate(*shape) - random.betavariate(*shape) for _ in range(cases)])
        <= SIGNIFICANCE_LEVEL
    )


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    ("trial", "cases"),
    [(_passes, 10), (_passes, 30), (_passes, 100), (_in_halves, 10), (_in_halves, 40), (_continuous, 10)],
)
def test_equal_models_are_told_apart_in_at_most_one_of_twenty_comparisons(
    trial: Callable[[Random, int, float], bool], cases: int, share: float
) -> None:
    random = Random(f"{trial.__name__} {cases} {share}")
    assert sum(trial(random, cases, share) for _ in range(TRIALS)) / TRIALS <= AT_MOST


@pytest.mark.slow
def test_so_are_those_whose_signs_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RANDOM_DRAWS", 199)
    random = Random(5)
    assert sum(_continuous(random, 50, 0.7) for _ in range(TRIALS)) / TRIALS <= AT_MOST


@pytest.mark.slow
def test_a_difference_that_is_there_is_mostly_found() -> None:
    random = Random(6)
    found = [permutation([random.gauss(0.1, 0.2) for _ in range(40)]) <= SIGNIFICANCE_LEVEL for _ in range(40)]
    assert sum(found) > 30


def test_one_of_several_tests_is_adjusted_for_their_number() -> None:
    assert bonferroni(0.01, 3) == pytest.approx(0.03)
    assert (bonferroni(0.4, 3), bonferroni(0.03, 1), bonferroni(0.03, 0)) == (1.0, 0.03, 0.03)


@each_row(
    ("p", "text"),
    [
        (0.1796875, "p = 0.18"),
        (0.00342, "p = 0.0034"),
        (0.0009, "p < 0.001"),
        (1.0, "p = 1"),
        (0.0502, "p = 0.0502"),
        (0.050004, "p = 0.050004"),
        (math.nextafter(0.05, 1), "p = 0.05000000000000001"),
        (0.05, "p = 0.05"),
        (0.0496, "p = 0.05"),
    ],
)
def test_a_p_is_told_in_few_digits_and_on_its_side_of_the_level(p: float, text: str) -> None:
    assert p_text(p, SIGNIFICANCE_LEVEL) == text


@given(st.floats(0.001, 1) | st.floats(-1e-6, 1e-6).map(lambda apart: SIGNIFICANCE_LEVEL + apart))
def test_a_p_that_is_told_is_on_its_side_of_the_level(p: float) -> None:
    assert (float(p_text(p, SIGNIFICANCE_LEVEL).removeprefix("p = ")) <= SIGNIFICANCE_LEVEL) == (
        p <= SIGNIFICANCE_LEVEL
    )
