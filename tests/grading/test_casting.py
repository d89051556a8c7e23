from __future__ import annotations

import math

import pytest
from hypothesis import given

from tests.strategies import json_values
from workbench.grading.casting import by_arcade_casting, by_casting
from workbench.suite.checks import Equals
from workbench.trajectory.messages import JsonValue

# Expected, actual, and whether they match by our rule and by the peer's.
DIFFERENT: list[tuple[JsonValue, JsonValue, bool, bool]] = [
    (True, "false", False, True),
    (True, "yes", False, True),
    (True, 2, False, True),
    (True, [0], False, True),
    (False, "false", True, False),
    (False, "FALSE", True, False),
    (False, "", False, True),
    (False, {}, False, True),
    (5, 5.9, False, True),
    (None, "None", False, True),
]

SAME: list[tuple[JsonValue, JsonValue, bool]] = [
    (True, True, True),
    (True, 1, True),
    (False, 0.0, True),
    (True, "True", True),
    (True, None, False),
    (5, "5", True),
    (5, " 5 ", True),
    (5, 5.0, True),
    (5, "5.0", False),
    (5, [5], False),
    (1, True, True),
    (5.0, "5", True),
    (1500.0, "1.5e3", True),
    ("5", 5, True),
    ("5", 5.0, False),
    ("True", True, True),
    ("a", "A", False),
    ("None", "None", True),
    ("", None, False),
    (["a", "b"], "ab", True),
    ({"a": 1}, [["a", 1]], True),
    ({}, [], True),
    ([1, 2], [1.0, True], False),
    ([1], [True], True),
    ({"a": 1}, '{"a": 1}', False),
    (None, None, True),
    (None, 0, False),
]


@pytest.mark.parametrize(("expected", "actual", "ours", "arcade"), DIFFERENT)
def test_where_our_casting_deviates(expected: JsonValue, actual: JsonValue, ours: bool, arcade: bool) -> None:
    assert by_casting(Equals(equals=expected), actual) is ours
    assert by_arcade_casting(Equals(equals=expected), actual) is arcade


@pytest.mark.parametrize(("expected", "actual", "match"), [case for case in SAME if case[0] != "None"])
def test_where_both_rules_agree(expected: JsonValue, actual: JsonValue, match: bool) -> None:
    assert by_casting(Equals(equals=expected), actual) is match
    assert by_arcade_casting(Equals(equals=expected), actual) is match


def test_the_text_none_is_a_text_for_us_and_matches_nothing_for_the_peer() -> None:
    assert by_casting(Equals(equals="None"), "None")
    assert not by_arcade_casting(Equals(equals="None"), "None")
    assert not by_arcade_casting(Equals(equals="None"), None)


def test_casting_can_be_switched_off() -> None:
    for rule in (by_casting, by_arcade_casting):
        assert not rule(Equals(equals=5, cast=False), "5")
        assert rule(Equals(equals=5, cast=False), 5.0)


def test_an_infinite_number_is_no_integer() -> None:
    assert not by_casting(Equals(equals=5), math.inf)
    with pytest.raises(OverflowError):
        by_arcade_casting(Equals(equals=5), math.inf)


@given(json_values, json_values)
def test_casting_never_stumbles(expected: JsonValue, actual: JsonValue) -> None:
    assert by_casting(Equals(equals=expected), actual) in (True, False)


@given(json_values.filter(lambda value: value == value))
def test_an_equal_value_matches(value: JsonValue) -> None:
    assert by_casting(Equals(equals=value), value)
