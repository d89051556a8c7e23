"""Numbers as text: halves are rounded up, and a value below the full mark is never shown as the full mark."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.numerals import decimals


@each_row(
    ("value", "digits", "text"),
    [
        (0.625, 2, "0.63"),
        (0.975, 2, "0.98"),
        (0.925, 2, "0.93"),
        (0.1 + 0.2 + 0.675, 2, "0.98"),
        (0.99987, 2, "0.99"),
        (0.9 + 0.1 - 2e-16, 2, "1.00"),
        (1, 2, "1.00"),
        (-48.495, 2, "-48.50"),
        (2 / 3, 4, "0.6667"),
        (-math.inf, 2, "-inf"),
        (1e300, 0, f"{1e300:.0f}"),
    ],
)
def test_numbers_are_rounded_as_by_hand(value: float, digits: int, text: str) -> None:
    assert decimals(value, digits) == text


@given(st.floats(-1e9, 1e9), st.integers(0, 6))
def test_the_text_is_never_further_off_than_one_in_its_last_digit(value: float, digits: int) -> None:
    assert abs(float(decimals(value, digits)) - value) <= 10.0**-digits + 1e-3
