"""Moments are read in many forms, the same on every day and every machine."""

from __future__ import annotations

import warnings
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.checks.values import read_timestamp

NAIVE_TEN = datetime(2024, 1, 1, 10)


@pytest.mark.parametrize(
    "text", ["2024-01-01T10:00:00", "Jan 1 2024 10am", "20240101T100000", "1 January 2024 10:00", "01/01/2024 10:00"]
)
def test_moments_are_read_in_many_forms(text: str) -> None:
    assert read_timestamp(text) == NAIVE_TEN


def test_a_month_comes_first_where_both_orders_make_sense() -> None:
    assert read_timestamp("02/03/2024") == datetime(2024, 2, 3)
    assert read_timestamp("13/03/2024") == datetime(2024, 3, 13)


def test_what_is_not_written_does_not_depend_on_today() -> None:
    assert read_timestamp("10:30") == datetime(2000, 1, 1, 10, 30)
    assert read_timestamp("29 February") == datetime(2000, 2, 29)


def test_a_bare_zone_name_is_dropped_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_timestamp("2024-01-01 10:00 EST") == NAIVE_TEN
        assert read_timestamp("2024-01-01 10:00 FOO") == NAIVE_TEN


@each_row("text", ["", "garbage", "2024-02-30", "25:00", "1 1 1 1 1 1", "a" * 5_000, "\x00"])
def test_what_is_no_moment_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError):
        read_timestamp(text)


@pytest.mark.parametrize("text", ["9" * 50, "9" * 5_000, "1" * 200_000])
def test_absurd_digits_overflow(text: str) -> None:
    with pytest.raises(OverflowError):
        read_timestamp(text)


@given(st.text(max_size=40) | st.from_regex(r"[0-9:+\-TZ ./apm]{1,16}", fullmatch=True))
def test_any_text_is_a_moment_or_is_refused_in_one_of_two_ways(text: str) -> None:
    try:
        read_timestamp(text)
    except (ValueError, OverflowError):
        return
