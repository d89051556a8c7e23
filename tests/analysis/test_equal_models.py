"""Of twenty comparisons of equal models, at most one reports a difference, for any number of models.

This holds for the test on statuses and for the test on scores, each alone. Choosing the more convenient of the two is
wrong more often."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from tests.analysis.equal_models import equal_models
from workbench.analysis.measures import PASS_RATE, SCORE
from workbench.analysis.paired import compare_pairs, corrected_for_count
from workbench.analysis.side_by_side import MAX_ALL_PAIRS
from workbench.analysis.statistics import SIGNIFICANCE_LEVEL

PAGE = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text(encoding="utf-8")
TWO = (2, 60, 4_000)
FOUR = (4, 30, 1_000)
"""The numbers of models, cases and comparisons."""


def off(trials: int) -> float:
    """Return the deviation of a share of wrong trials that one of a thousand such simulations exceeds."""
    return 3 * math.sqrt(SIGNIFICANCE_LEVEL * (1 - SIGNIFICANCE_LEVEL) / trials)


@dataclass(frozen=True)
class Wrong:
    """How often some pair of equal models is called different: by each test, by either test, and by scores without the
    correction for several pairs."""

    status: float
    score: float
    either: float
    unadjusted: float


@cache
def wrong(models: int, cases: int, trials: int) -> Wrong:
    random = Random(f"{models} models, {cases} cases")
    found = [_trial(random, models, cases) for _ in range(trials)]
    return Wrong(*(sum(each) / trials for each in zip(*found, strict=True)))


def _trial(random: Random, models: int, cases: int) -> tuple[bool, bool, bool, bool]:
    columns = equal_models(random, models, cases)
    pairs = combinations(columns, 2) if models <= MAX_ALL_PAIRS else ((columns[0], other) for other in columns[1:])
    found = corrected_for_count(compare_pairs(first, second) for first, second in pairs)
    status = any(_tells(pair.by(PASS_RATE).adjusted) for pair in found)
    score = any(_tells(pair.by(SCORE).adjusted) for pair in found)
    return status, score, status or score, any(_tells(pair.by(SCORE).p) for pair in found)


def _tells(p: float | None) -> bool:
    return p is not None and p <= SIGNIFICANCE_LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(("models", "cases", "trials"), [TWO, (3, 30, 1_000), FOUR])
def test_each_question_by_itself_is_wrong_in_at_most_one_of_twenty_comparisons(
    models: int, cases: int, trials: int
) -> None:
    found = wrong(models, cases, trials)
    assert found.status <= SIGNIFICANCE_LEVEL + off(trials)
    assert found.score <= SIGNIFICANCE_LEVEL + off(trials)


@pytest.mark.slow
def test_without_an_adjustment_several_pairs_would_be_wrong_more_often() -> None:
    assert wrong(*FOUR).unadjusted > SIGNIFICANCE_LEVEL + off(FOUR[-1])


@pytest.mark.slow
def test_who_goes_by_whichever_suits_is_wrong_as_often_as_the_page_says() -> None:
    told = re.search(r"(\d+) of 100\s+comparisons\s+of\s+equal\s+models\s+would\s+find\s+a\s+difference", PAGE)
    assert told is not None
    assert wrong(*TWO).either == pytest.approx(int(told[1]) / 100, abs=off(TWO[-1]))
    assert wrong(*TWO).either > SIGNIFICANCE_LEVEL + off(TWO[-1])
