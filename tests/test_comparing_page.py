"""The tables and sentences of docs/comparing.md equal what the program computes."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import pytest

from tests.analysis.cells import columns
from workbench.analysis.paired import MAX_MORE_CASES, PairedComparison, compare_pairs
from workbench.analysis.statistics import (
    _ENUMERATED,
    PERMUTATION_STEPS,
    RANDOM_DRAWS,
    SIGNIFICANCE_LEVEL,
    mcnemar,
    normal_quantile,
    pass_at_k,
    share_interval,
)

PAGE = (Path(__file__).parents[1] / "docs" / "comparing.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
NUMBER = re.compile(r"[\d.]+")


def table(marker: str) -> tuple[list[int], list[list[str]]]:
    """Return the numbers in the head of the table after a marker, and its rows."""
    found = re.search(rf"<!-- {marker} -->\n\n(.*?)\n\n", PAGE, re.DOTALL)
    assert found is not None
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]
    return [int(NUMBER.findall(cell)[0]) for cell in head if NUMBER.search(cell)], rows


def compared(better: int, worse: int, both_good: int, both_bad: int) -> PairedComparison:
    return compare_pairs(*columns(better=better, worse=worse, both_good=both_good, both_bad=both_bad))


def just_enough(better: float, worse: float) -> int | None:
    """Return the number of cases at which the test shows a difference, if the shares (twentieths) are exact."""
    found = compared(round(20 * better), round(20 * worse), 0, 20 - round(20 * (better + worse)))
    return None if found.more_cases is None else 20 + found.more_cases


def test_the_table_of_intervals_is_true() -> None:
    sizes, rows = table("intervals")
    assert len(rows) == 3
    for found, *cells in rows:
        share = int(NUMBER.findall(found)[0]) / 100
        told = [share_interval(round(share * of), of) for of in sizes]
        assert cells == [f"{100 * low:.0f} – {100 * high:.0f}%" for low, high in told]


@pytest.mark.parametrize("counts", re.findall(r"<!-- sentence: ([\d ]+) -->", PAGE))
def test_the_sentences_are_what_the_program_says(counts: str) -> None:
    after = PAGE.split(f"<!-- sentence: {counts} -->")[1]
    told = after.split("```")[1].strip()
    better, worse, both_good, both_bad = map(int, counts.split())
    assert compared(better, worse, both_good, both_bad).sentence("A", "B") == told


def test_mid_p_would_find_equal_models_different_too_often_where_most_cases_differ() -> None:
    def wrong(of: int) -> float:
        ways = [math.comb(of, some) for some in range(of + 1)]
        tells = [way for some, way in enumerate(ways) if mcnemar(some, of - some) - way / 2**of <= SIGNIFICANCE_LEVEL]
        return float(sum(tells)) / float(2**of)

    levels = [0.0, *map(wrong, range(1, 51))]
    assert min(levels[16], levels[50]) > SIGNIFICANCE_LEVEL
    shares = (share / 100 for share in range(1, 51))
    assert max(sum(_binomial(50, of, share) * levels[of] for of in range(51)) for share in shares) < SIGNIFICANCE_LEVEL


@pytest.mark.slow
def test_the_chances_to_tell_are_those_of_the_test() -> None:
    sizes, rows = table("power")
    assert len(rows) == 5
    for (shares, *cells, enough), (better, worse) in zip(rows, [_shares(row[0]) for row in rows], strict=True):
        assert cells == [_percent(_power(of, better, worse)) for of in sizes], shares
        assert enough == str(just_enough(better, worse) or "–")


def test_what_is_just_enough_is_no_more_than_even_odds_and_four_in_five_take_up_to_twice_as_many() -> None:
    for better, worse in [(0.05, 0.0), (0.1, 0.05), (0.15, 0.05), (0.3, 0.1)]:
        just = just_enough(better, worse)
        assert just is not None
        assert _power(just, better, worse) < 0.5
        assert _power(math.ceil(2.05 * just), better, worse) > 0.8 > _power(math.floor(1.4 * just), better, worse)


def test_the_examples_are_computed_rightly() -> None:
    assert round(normal_quantile(SIGNIFICANCE_LEVEL), 2) == 1.96
    low, high = share_interval(3, 3)
    assert f"the interval is {100 * low:.0f} to {100 * high:.0f}%" in TEXT
    low, high = share_interval(24, 30)
    assert f"At 80% of thirty cases, the interval of each rate is {100 * (high - low):.0f} points wide" in TEXT
    once, twice, *_ = pass_at_k([(3, 5)])
    said = f"pass@1 = pass^1 = {once.at_least_one:.1f}, pass@2 = {twice.at_least_one:.1f}"
    assert f"{said}, but pass^2 = {twice.all_of_them:.1f}" in TEXT
    assert mcnemar(7, 2) == 2 * (1 + 9 + 36) / 512
    assert mcnemar(5, 0) > SIGNIFICANCE_LEVEL > mcnemar(6, 0)


def test_the_limits_are_those_of_the_program() -> None:
    assert f"Up to {_ENUMERATED} differences, all choices are summed" in TEXT
    assert f"{RANDOM_DRAWS:,} random choices are drawn" in TEXT
    assert f"÷ {RANDOM_DRAWS + 1:,}" in TEXT
    assert f"to steps of 1 ÷ {PERMUTATION_STEPS:,}" in TEXT
    assert f"numbers above {MAX_MORE_CASES:,} are not printed" in TEXT


def _shares(cell: str) -> tuple[float, float]:
    better, worse = NUMBER.findall(cell)
    return int(better) / 100, int(worse) / 100


def _percent(share: float) -> str:
    return "<1%" if share < 0.005 else ">99%" if share > 0.995 else f"{100 * share:.0f}%"


def _power(of: int, better: float, worse: float) -> float:
    """Return the probability that McNemar's test distinguishes two models on `of` cases, over all outcomes."""
    discordant, of_better = better + worse, better / (better + worse)
    return math.fsum(
        likely * math.fsum(_binomial(count, few, of_better) + _binomial(count, count - few, of_better) for few in told)
        for count in range(of + 1)
        if (likely := _binomial(of, count, discordant)) > 1e-9 and (told := range(_largest_that_tells(count) + 1))
    )


@cache
def _largest_that_tells(of: int) -> int:
    """Return the largest smaller count at which `of` discordant cases are significant, or -1 if there is none."""
    return next((few - 1 for few in range(of // 2 + 1) if mcnemar(few, of - few) > SIGNIFICANCE_LEVEL), -1)


def _binomial(of: int, count: int, share: float) -> float:
    if share in (0, 1):
        return float(count == of * share)
    ways = math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
    return math.exp(ways + count * math.log(share) + (of - count) * math.log(1 - share))
