"""The cost of a run is its tokens at the price of its model, and unknown if either is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.config.models import Price
from workbench.engine.model_specs import FREE, cost_of
from workbench.trajectory.events import Usage
from workbench.trajectory.trajectory import Round, Trajectory


def run_of(*usages: Usage | None) -> Trajectory:
    rounds = tuple(Round(number, stop_reason="answered", usage=usage) for number, usage in enumerate(usages, start=1))
    return Trajectory("run", rounds=rounds)


TWO = run_of(Usage(1_000, 100, 400), Usage(2_000, 300, 0, 200))


@pytest.mark.parametrize(
    ("price", "dollars"),
    [
        (Price(2.0, 10.0), (3_000 * 2 + 400 * 10) / 1e6),
        (Price(2.0, 10.0, 0.5), (2_600 * 2 + 400 * 0.5 + 400 * 10) / 1e6),
        (Price(2.0, 10.0, 0.0), (2_600 * 2 + 400 * 10) / 1e6),
        (Price(0.0, 0.0), 0.0),
    ],
)
def test_tokens_of_all_rounds_are_counted_and_cached_ones_at_their_own_price(price: Price, dollars: float) -> None:
    assert cost_of(TWO, price) == pytest.approx(dollars)


@pytest.mark.parametrize("price", [None, FREE, Price(2.0, 10.0)])
def test_a_run_that_asked_nobody_cost_nothing(price: Price | None) -> None:
    replayed = replace(run_of(Usage(1, 1)).rounds[0], replayed=True)
    assert cost_of(run_of(), price) == cost_of(Trajectory("fork", rounds=(replayed,)), price) == 0.0


def test_what_is_free_costs_nothing_whatever_was_counted() -> None:
    assert cost_of(run_of(Usage(1, 1), None), FREE) == 0.0
    assert cost_of(run_of(None), Price(0.0, 0.0, 1.0)) is None


@pytest.mark.parametrize("trajectory", [run_of(None), run_of(Usage(1, 1), None)])
def test_a_cost_is_unknown_where_an_answer_was_not_counted(trajectory: Trajectory) -> None:
    assert cost_of(trajectory, Price(2.0, 10.0)) is None


def test_a_cost_is_unknown_without_a_price() -> None:
    assert cost_of(TWO, None) is None


def test_a_request_that_failed_after_counted_ones_leaves_their_cost() -> None:
    trajectory = Trajectory("run", rounds=(*run_of(Usage(1_000_000)).rounds, Round(2, errors=("cut",))))
    assert cost_of(trajectory, Price(2.0, 10.0)) == 2.0
