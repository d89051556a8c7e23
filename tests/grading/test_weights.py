from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.checks.fields import NAMED_WEIGHTS, Weight
from workbench.grading.scoring import resolve_weights

NAMES: list[Weight] = ["minimal", "very_low", "low", "medium", "high", "very_high", "critical"]


def test_arguments_without_weight_share_one() -> None:
    assert resolve_weights([None, None, None, None]) == [0.25] * 4


def test_an_argument_that_is_only_recorded_takes_no_share() -> None:
    assert resolve_weights([None, 0, None]) == [0.5, 0.0, 0.5]


def test_numbers_stay_as_they_are() -> None:
    assert resolve_weights([0.7, 3, 0]) == [0.7, 3.0, 0.0]


def test_one_named_weight_normalises_all() -> None:
    assert resolve_weights(["critical", "medium"]) == pytest.approx([7 / 11, 4 / 11])
    assert resolve_weights(["high", 5, 0]) == [0.5, 0.5, 0.0]


def test_nothing_has_no_weights() -> None:
    assert resolve_weights([]) == []


@given(st.lists(st.sampled_from(NAMES), min_size=1))
def test_named_weights_sum_to_one_in_proportion(weights: list[Weight]) -> None:
    resolved = resolve_weights(weights)
    assert sum(resolved) == pytest.approx(1)
    first = weights[0]
    assert isinstance(first, str)
    assert resolved[0] / min(resolved) == pytest.approx(
        NAMED_WEIGHTS[first] / min(NAMED_WEIGHTS[weight] for weight in weights if isinstance(weight, str))
    )
