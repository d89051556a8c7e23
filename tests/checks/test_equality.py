from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.strategies import CHECK, is_finite, json_values
from tests.tables import each_row
from workbench.checks.value_kinds import Equals
from workbench.checks.values import json_equal
from workbench.trajectory.events import JsonValue


@each_row(
    ("left", "right"),
    [
        (5, 5.0),
        (0, -0.0),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}),
        (2**80, 2**80),
        (None, None),
        ([], []),
    ],
)
def test_values_that_json_does_not_tell_apart_are_equal(left: JsonValue, right: JsonValue) -> None:
    assert json_equal(left, right)
    assert json_equal(right, left)


@each_row(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        ([1], [True]),
        ("5", 5),
        (None, False),
        (2**53 + 1, float(2**53)),
        (10**30, 10**30 + 1),
        ([1, 2], [2, 1]),
        ({"a": None}, {}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({}, []),
        ("caf\u00e9", "cafe\u0301"),
    ],
)
def test_values_of_other_types_and_sizes_differ(left: JsonValue, right: JsonValue) -> None:
    assert not json_equal(left, right)
    assert not json_equal(right, left)


@given(json_values.filter(is_finite))
def test_a_value_equals_what_it_reads_back_as(value: JsonValue) -> None:
    assert json_equal(value, json.loads(json.dumps(value)))


@given(json_values, json_values)
def test_equality_is_symmetric(left: JsonValue, right: JsonValue) -> None:
    assert json_equal(left, right) == json_equal(right, left)


def test_depth_is_no_obstacle() -> None:
    assert json_equal(nested(50_000), nested(50_000))
    assert not json_equal(nested(50_000), nested(50_001))


def nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "written",
    [{"type": "circle", "radius": 3}, {"type": "circle"}, {"type": "integer", "minimum": 3}, {"type": ["string"]}],
)
def test_a_table_with_a_type_of_its_own_is_a_value(written: dict[str, JsonValue]) -> None:
    assert CHECK.validate_python(written) == Equals(equals=written, plain=True)
