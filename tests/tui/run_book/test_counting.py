"""The usage of runs. An unknown price never counts as zero."""

from __future__ import annotations

from tests.results import result
from workbench.grading.status import Status
from workbench.tui.run_book.record import Spend, spend_of, total


def test_tokens_in_and_out_are_counted() -> None:
    assert spend_of(result(Status.PASSED, 1.0, rounds=2, cost_usd=0.5)) == Spend(16, 0.5, unknown=False)


def test_a_price_that_is_not_known_is_said_to_be_unknown() -> None:
    assert spend_of(result(Status.PASSED, 1.0)).unknown


def test_what_costs_nothing_is_known() -> None:
    assert spend_of(result(Status.PASSED, 1.0, cost_usd=0.0)) == Spend(8, 0.0, unknown=False)


def test_one_unknown_price_makes_the_total_unknown() -> None:
    assert total([Spend(1, 0.5), Spend(2, 0.0, unknown=True)]) == Spend(3, 0.5, unknown=True)
