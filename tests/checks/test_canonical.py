from __future__ import annotations

import unicodedata

from hypothesis import given

from tests.strategies import CHECK, json_values
from workbench.checks.values import canonical, json_equal
from workbench.trajectory.events import JsonValue

COMPOSED, APART = "caf\u00e9", "cafe\u0301"


def test_texts_that_look_the_same_become_the_same_wherever_they_stand() -> None:
    assert canonical({APART: [APART, {"n": [APART, 1, None]}]}) == {COMPOSED: [COMPOSED, {"n": [COMPOSED, 1, None]}]}


def test_checks_that_compare_texts_have_theirs_composed() -> None:
    for name in ("equals", "contains", "prefix", "suffix", "pattern"):
        check = CHECK.validate_python({name: APART}).canonical()
        assert getattr(check, name) == COMPOSED
    assert CHECK.validate_python({"one_of": [APART, 1]}).canonical() == CHECK.validate_python({"one_of": [COMPOSED, 1]})


def test_other_checks_stay_what_they_are() -> None:
    for table in ({"similar": APART}, {"judged": APART}, {"range": [0, 1]}, {"equals": "plain"}):
        check = CHECK.validate_python(table)
        assert check.canonical() is check


def test_a_value_of_any_depth_is_no_trouble() -> None:
    value: JsonValue = APART
    for _ in range(100_000):
        value = [value]
    assert isinstance(canonical(value), list)


@given(json_values)
def test_what_is_composed_stays_equal_and_the_value_itself_is_left_alone(value: JsonValue) -> None:
    before = repr(value)
    once = canonical(value)
    assert json_equal(canonical(once), once) or "nan" in before
    assert repr(value) == before
    if isinstance(value, str):
        assert once == unicodedata.normalize("NFC", value)
