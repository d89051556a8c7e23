"""Simulations of `--fail-on regression`: how often it fails by chance, and how often it finds a broken case.

Each setting has its measured figures. The seeds are fixed."""

from __future__ import annotations

from random import Random

import pytest

from tests.analysis.regressions import Draw, Shares, agent, told
from workbench.analysis.confirmation import FALSE_ALARM_RATE, TYPICAL_PASS_RATE

pytestmark = pytest.mark.slow

NEAR = 0.0006
MOST_BY_CHANCE = 0.03


def steady(share: float, cases: int) -> Draw:
    return lambda random: ([share] * cases, [share] * cases)


def the_same(cases: int) -> Draw:
    def draw(random: Random) -> tuple[Shares, Shares]:
        shares = agent(random, cases)
        return shares, shares

    return draw


def one_broke(cases: int) -> Draw:
    def draw(random: Random) -> tuple[Shares, Shares]:
        shares = agent(random, cases - 1)
        return [0.95, *shares], [0.05, *shares]

    return draw


def three_broke(cases: int) -> Draw:
    def draw(random: Random) -> tuple[Shares, Shares]:
        shares = agent(random, cases)
        return shares, [0.0, 0.0, 0.0, *shares[3:]]

    return draw


def all_worse(cases: int) -> Draw:
    def draw(random: Random) -> tuple[Shares, Shares]:
        shares = agent(random, cases)
        return shares, [share - 0.05 for share in shares]

    return draw


@pytest.mark.parametrize(
    ("draw", "repeats", "found", "extra"),
    [
        (steady(0.95, 30), 1, 0.001, 3.23),
        (steady(0.95, 30), 3, 0.009, 8.03),
        (the_same(30), 1, 0.001, 1.96),
        (the_same(30), 3, 0.004, 4.44),
        (the_same(100), 1, 0.005, 6.58),
        (the_same(100), 3, 0.014, 14.25),
    ],
)
def test_the_same_agent_twice_is_seldom_a_regression(draw: Draw, repeats: int, found: float, extra: float) -> None:
    red, made = told(1_000, f"chance {repeats}", repeats, draw)
    assert red == pytest.approx(found, abs=NEAR)
    assert made == pytest.approx(extra, abs=0.06)
    assert red <= MOST_BY_CHANCE


@pytest.mark.parametrize(("repeats", "found"), [(1, 0.02), (3, 0.034)])
def test_both_parts_together_are_red_by_chance_in_at_most_one_of_twenty_trials(repeats: int, found: float) -> None:
    """All cases pass just the share that the reruns take for typical: each of both parts may be wrong in 2.5%."""
    red, _ = told(1_000, f"chance {repeats}", repeats, steady(TYPICAL_PASS_RATE, 30))
    assert red == pytest.approx(found, abs=NEAR)
    assert red <= 2 * FALSE_ALARM_RATE


@pytest.mark.parametrize(
    ("draw", "repeats", "found", "least"),
    [
        (one_broke(30), 1, 0.914, 0.8),
        (one_broke(30), 3, 0.842, 0.8),
        (one_broke(100), 1, 0.892, 0.8),
        (one_broke(100), 3, 0.836, 0.8),
        (three_broke(30), 1, 1.0, 0.98),
        (three_broke(30), 3, 1.0, 0.98),
        (three_broke(100), 1, 1.0, 0.98),
        (three_broke(100), 3, 1.0, 0.98),
        (all_worse(30), 1, 0.03, 0.0),
        (all_worse(30), 3, 0.176, 0.15),
        (all_worse(100), 1, 0.246, 0.2),
        (all_worse(100), 3, 0.714, 0.7),
    ],
)
def test_what_got_worse_is_found(draw: Draw, repeats: int, found: float, least: float) -> None:
    red, _ = told(500, f"worse {repeats}", repeats, draw)
    assert red == pytest.approx(found, abs=NEAR)
    assert red >= least
