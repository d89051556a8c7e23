from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import json_values
from tests.tables import each_row
from workbench.checks.check import EqualsRule, by_json, by_python, evaluate
from workbench.checks.value_kinds import Equals
from workbench.grading.critics import equals_by_arcade_casting, equals_by_casting
from workbench.trajectory.events import JsonValue

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
    # A boolean is no number, and no number a boolean.
    (True, 1, False, True),
    (False, 0.0, False, True),
    (1, True, False, True),
    (0.0, False, False, True),
    # Only JSON's grammar makes a number of a text.
    (1000, "1_000", False, True),
    (5, "\uff15", False, True),
    (5, "+5", False, True),
    (5, "05", False, True),
    (5, "\u00a05", False, True),
    (0.5, ".5", False, True),
    (5.0, "5.", False, True),
    (1e3, "1_000.0", False, True),
    # Exactly, however large.
    (2.0**53, "9007199254740993", False, True),
    # Containers are compared as JSON values.
    (["a", "b"], "ab", False, True),
    ([], "", False, True),
    ({}, [], False, True),
    ({"a": 1}, [["a", 1]], False, True),
    (["a"], {"a": 1}, False, True),
    ([1], [True], False, True),
    ("[1]", [1], False, True),
    ("{}", {}, False, True),
]

SAME: list[tuple[JsonValue, JsonValue, bool]] = [
    (True, True, True),
    (True, "True", True),
    (True, None, False),
    (5, "5", True),
    (5, " 5 ", True),
    (5, "\n5\t", True),
    (-5, "-5", True),
    (5, "", False),
    (5, "five", False),
    (5, 5.0, True),
    (5, "5.0", False),
    (5, [5], False),
    (5.0, "5", True),
    (1500.0, "1.5e3", True),
    ("5", 5, True),
    ("5", 5.0, False),
    ("True", True, True),
    ("a", "A", False),
    ("None", "None", True),
    ("", None, False),
    ([1, 2], [1.0, 2], True),
    ([1, 2], [1.0, True], False),
    ({"a": 1}, '{"a": 1}', False),
    (None, None, True),
    (None, 0, False),
]


@each_row(("expected", "actual", "ours", "arcade"), DIFFERENT)
def test_where_our_casting_deviates(expected: JsonValue, actual: JsonValue, ours: bool, arcade: bool) -> None:
    assert equals_by_casting(Equals(equals=expected), actual) is ours
    assert equals_by_arcade_casting(Equals(equals=expected), actual) is arcade


@each_row(("expected", "actual", "match"), [case for case in SAME if case[0] != "None"])
def test_where_both_rules_agree(expected: JsonValue, actual: JsonValue, match: bool) -> None:
    assert equals_by_casting(Equals(equals=expected), actual) is match
    assert equals_by_arcade_casting(Equals(equals=expected), actual) is match


def test_the_text_none_is_a_text_for_us_and_matches_nothing_for_the_peer() -> None:
    assert equals_by_casting(Equals(equals="None"), "None")
    assert not equals_by_arcade_casting(Equals(equals="None"), "None")
    assert not equals_by_arcade_casting(Equals(equals="None"), None)


def test_casting_can_be_switched_off() -> None:
    for rule in (equals_by_casting, equals_by_arcade_casting):
        assert not rule(Equals(equals=5, cast=False), "5")
        assert rule(Equals(equals=5, cast=False), 5.0)
    assert not equals_by_casting(Equals(equals=1, cast=False), True)


def test_an_infinite_number_is_no_integer() -> None:
    assert not equals_by_casting(Equals(equals=5), math.inf)
    with pytest.raises(OverflowError):
        equals_by_arcade_casting(Equals(equals=5), math.inf)


@given(json_values, json_values)
def test_casting_never_stumbles(expected: JsonValue, actual: JsonValue) -> None:
    assert equals_by_casting(Equals(equals=expected), actual) in (True, False)


@given(st.text(alphabet="0123456789+-.eE_ \n\u00a0\uff15", max_size=8), st.one_of(st.integers(), st.floats()))
def test_a_number_is_met_by_the_texts_that_json_reads_as_it(text: str, expected: float) -> None:
    try:
        spelled = json.loads(text)
    except ValueError:
        assert not equals_by_casting(Equals(equals=expected), text)
        return
    matches = spelled == expected and (isinstance(expected, float) or isinstance(spelled, int))
    assert equals_by_casting(Equals(equals=expected), text) is matches
    assert equals_by_casting(Equals(equals=spelled), text)


@given(json_values.filter(lambda value: "NaN" not in json.dumps(value)))
def test_an_equal_value_matches(value: JsonValue) -> None:
    assert equals_by_casting(Equals(equals=value), value)


@given(st.data(), st.sampled_from([equals_by_casting, equals_by_arcade_casting, by_json, by_python]), st.booleans())
def test_plain_values_of_one_type_are_compared_as_the_rule_compares_them(
    data: st.DataObject, rule: EqualsRule, cast: bool
) -> None:
    one_type = data.draw(
        st.sampled_from(
            [st.integers(-2, 2), st.booleans(), st.none(), st.sampled_from(["", "None", "5", "é", "e\u0301"])]
        )
    )
    check, value = Equals(equals=data.draw(one_type), cast=cast), data.draw(one_type)
    assert evaluate(check, value, equal=rule).holds == rule(check, value)
