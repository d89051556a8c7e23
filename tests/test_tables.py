"""A table that is tried in one test hides no row that fails."""

from __future__ import annotations

import pytest

from tests.tables import each_row


def test_all_rows_are_tried_and_those_that_fail_are_named() -> None:
    tried: list[int] = []

    @each_row(("given", "expected"), [(1, 1), (2, 3), pytest.param(3, 3, id="three"), (4, 5)])
    def is_itself(given: int, expected: int) -> None:
        tried.append(given)
        assert given == expected

    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows") as failed:
        is_itself()
    assert tried == [1, 2, 3, 4]
    first, second = failed.value.exceptions
    assert first.__notes__ == ["row 1: {'given': 2, 'expected': 3}"]
    assert second.__notes__ == ["row 3: {'given': 4, 'expected': 5}"]


def test_a_lone_failure_is_raised_as_it_is() -> None:
    @each_row("value", ["text", "1"])
    def raises_nothing(value: str) -> None:
        with pytest.raises(ValueError):
            int(value)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE") as failed:
        raises_nothing()
    assert failed.value.__notes__ == ["row 1: {'value': '1'}"]


def test_a_table_without_rows_tests_nothing() -> None:
    with pytest.raises(AssertionError, match="no row"):
        each_row("value", [])
