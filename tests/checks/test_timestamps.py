"""The distance of two times, and the resulting credit."""

from __future__ import annotations

from datetime import datetime

from workbench.checks.values import read_timestamp, seconds_between, timestamp_credit

NAIVE_TEN = datetime(2024, 1, 1, 10)


def test_moments_with_offsets_are_instants_and_a_single_offset_is_dropped() -> None:
    assert seconds_between(read_timestamp("2024-01-01T10:00+05:30"), read_timestamp("2024-01-01T04:30Z")) == 0
    assert seconds_between(read_timestamp("2024-01-01T10:00+05:30"), NAIVE_TEN) == 0


def test_credit_falls_from_the_moment_itself_and_jumps_after_the_tolerance() -> None:
    assert timestamp_credit(500, 500, 7200) == 1.0
    assert timestamp_credit(501, 500, 7200) == 1 - 501 / 7200
    assert timestamp_credit(7200, 500, 7200) == 0.0
    assert timestamp_credit(10, 20, 5) == 1.0
    assert timestamp_credit(10, 0, 0) == 0.0
