"""One expected argument as the cells of a row, and the effect of typing into them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.authoring.form import values
from tests.strategies import CHECK
from tests.tables import each_row
from workbench.authoring.form.cells import (
    as_argument,
    form_names,
    is_optional,
    kind_of,
    options_of,
    required_text,
    value_text,
    weight_text,
    with_kind,
    with_option,
    with_optional,
    with_required,
    with_text,
    with_weight,
)
from workbench.authoring.form.field_text import CellError
from workbench.suite.toml_equality import toml_equal

TEXT = {"type": "string"}
NUMBER = {"type": "number", "minimum": 1, "maximum": 100}


@st.composite
def checks(draw: st.DrawFn) -> dict[str, Any]:
    """A check that expects a value, with or without weight."""
    name = draw(st.sampled_from(sorted(values.EXPECTED)))
    weight: dict[str, Any] = draw(st.sampled_from([{}, {"weight": "high"}, {"weight": 2, "optional": True}]))
    options: dict[str, Any] = {"tolerance": 1} if name == "near" else {}
    return {name: draw(values.EXPECTED[name]), **options, **weight}


@given(checks(), st.data())
def test_what_stands_in_the_value_cell_says_the_value_wherever_it_is_typed(
    check: dict[str, Any], data: st.DataObject
) -> None:
    name = next(iter(check))
    other = {**check, name: data.draw(values.EXPECTED[name])}
    text = value_text(check)
    assume(text != value_text(other))
    assert toml_equal(with_text(other, text), check)


@given(values.plain, values.schemas)
def test_a_plain_value_typed_over_another_is_that_value(value: Any, schema: Any) -> None:
    assume(kind_of(value) == "is" and not (isinstance(value, dict) and "equals" in value))
    if isinstance(value, str) or schema is None or "string" not in str(schema.get("type")):
        other: Any = [["other"]]
        assert toml_equal(with_text(other, value_text(value, schema), schema), value)


@given(values.anything, values.schemas)
def test_typing_what_stands_there_changes_nothing(value: Any, schema: Any) -> None:
    assert with_text(value, value_text(value, schema), schema) is value


@given(values.anything, st.sampled_from(form_names()), values.schemas)
def test_any_check_can_follow_any_other(value: Any, kind: str, schema: Any) -> None:
    changed = with_kind(value, kind, schema)
    assert kind_of(changed) == kind or (kind == "is" and isinstance(changed, dict))


@given(checks(), st.sampled_from(sorted({*form_names()} - {"python"})), values.schemas)
def test_changing_the_check_makes_a_sound_check_of_the_same_weight(
    check: dict[str, Any], kind: str, schema: Any
) -> None:
    assume(kind_of(check) != kind)
    # A combination keeps the old check as its part, and a made-up reference or pattern may be invalid.
    assume(not (kind in ("all_of", "any_of", "none_of") and kind_of(check) in ("python", "pattern")))
    changed = with_kind(check, kind, schema)
    made = CHECK.validate_python(changed)
    assert made.kind == ("equals" if kind == "is" else kind)
    assert weight_text(changed) == weight_text(check)
    assert is_optional(changed) == is_optional(check)


def test_a_plain_value_and_equals_are_both_called_is() -> None:
    assert kind_of("on") == kind_of({"equals": "on", "weight": 1}) == kind_of({"a": 1}) == "is"
    assert kind_of({"range": [1, 2], "optional": True}) == "range"


@each_row(
    ("value", "schema", "text"),
    [
        ("living room", None, "living room"),
        ("5", None, '"5"'),
        ("5", TEXT, '"5"'),
        ("true", TEXT, '"true"'),
        ("null", None, '"null"'),
        ("5..40", TEXT, '"5..40"'),
        (" on", TEXT, '" on"'),
        (5, None, "5"),
        ("", TEXT, '""'),
        ({"range": [5, 40]}, None, "5..40"),
        ({"type": "integer"}, None, "integer"),
        ({"equals_text": "5"}, TEXT, '"5"'),
        ({"equals_text": "5"}, None, '"5"'),
        ({"all_of": [{"range": [1, math.inf]}, 5]}, NUMBER, "[{ range = [1, inf] }, 5]"),
        ({"range": [-math.inf, 40]}, None, "..40"),
        ({"one_of": ["red", "blue, dark", 5]}, None, "red, 'blue, dark', 5".replace("'", '"')),
        ({"near": 21.0, "tolerance": 2}, None, "21.0"),
        ({"present": True}, None, ""),
        ({"equals_null": True}, None, ""),
        ({"pattern": "[0-9]\\d"}, None, "[0-9]\\d"),
        ({"datetime": "2026-05-01"}, None, "2026-05-01"),
        ({"range": "broken"}, None, "broken"),
    ],
)
def test_a_value_cell_shows_no_more_than_is_needed(value: object, schema: Any, text: str) -> None:
    assert value_text(value, schema) == text


def test_a_value_typed_over_present_becomes_that_value() -> None:
    assert with_text({"present": True}, "kitchen", TEXT) == "kitchen"
    assert with_text({"present": True, "weight": 2}, "5") == {"equals": 5, "weight": 2}


def test_a_table_with_a_check_may_be_typed_too() -> None:
    assert with_text("on", "{ range = [1, 2] }") == {"range": [1, 2]}


def test_what_cannot_be_a_value_of_the_check_is_refused_in_words() -> None:
    with pytest.raises(CellError, match="two numbers"):
        with_text({"range": [1, 2]}, "many")
    with pytest.raises(CellError, match="write a number"):
        with_text({"near": 1, "tolerance": 1}, "one")


@each_row(
    ("value", "kind", "schema", "changed"),
    [
        ("on", "one_of", None, {"one_of": ["on"]}),
        ({"one_of": ["on", "off"]}, "is", None, "on"),
        (5, "range", None, {"range": [5, 5]}),
        ({"near": 20, "tolerance": 2}, "range", None, {"range": [18, 22]}),
        ({"range": [10, 20], "weight": 2}, "near", None, {"near": 15, "weight": 2, "tolerance": 5}),
        ({"present": True}, "range", NUMBER, {"range": [1, 100]}),
        ({"present": True}, "one_of", {"enum": ["on", "off"]}, {"one_of": ["on", "off"]}),
        ({"present": True}, "is", {"type": "string", "enum": ["de", "en"], "default": "en"}, "en"),
        ({"contains": "door"}, "is", None, "door"),
        ("3.5 kg", "pattern", None, {"pattern": r"3\.5 kg"}),
        ({"equals": "on", "cast": False, "optional": True}, "prefix", None, {"prefix": "on", "optional": True}),
        ("on", "present", None, {"present": True}),
        ("mocks:even", "python", None, {"python": "mocks:even"}),
    ],
)
def test_a_new_check_keeps_what_it_can(value: object, kind: str, schema: Any, changed: object) -> None:
    assert toml_equal(with_kind(value, kind, schema), changed)


def test_a_check_that_there_is_not_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(CellError, match="did you mean `range`"):
        with_kind("on", "ranges")
    with pytest.raises(CellError, match="write is or one_of"):
        with_kind("on", "xyz")


@given(checks(), values.durations)
def test_options_are_read_as_they_are_shown(check: dict[str, Any], duration: str) -> None:
    if "datetime" in check:
        check = {**check, "tolerance": duration}
    for option in options_of(check):
        if option.text:
            assert toml_equal(with_option(check, option.name, option.text), check)


def test_options_say_what_holds_without_them() -> None:
    options = {option.name: option for option in options_of({"similar": "x", "threshold": 0.5})}
    assert (options["threshold"].text, options["threshold"].default) == ("0.5", "0.8")
    assert (options["metric"].text, options["metric"].default) == ("", "cosine")


def test_one_measure_of_near_replaces_the_other() -> None:
    near: dict[str, object] = {"near": 5, "tolerance": 1}
    assert with_option(near, "value_range", "0..10") == {"near": 5, "value_range": [0, 10]}


def test_an_option_of_a_plain_value_writes_equals_and_goes_with_it() -> None:
    strict = with_option("5", "cast", "false")
    assert strict == {"equals": "5", "cast": False}
    assert with_option(strict, "cast", "") == "5"


def test_weights_are_numbers_or_names() -> None:
    assert with_weight("on", "Very high") == {"equals": "on", "weight": "very_high"}
    assert with_weight({"range": [1, 2]}, "0.5") == {"range": [1, 2], "weight": 0.5}
    assert with_weight({"equals": "on", "weight": 1}, "") == "on"
    with pytest.raises(CellError, match="minimal"):
        with_weight("on", "-1")


def test_an_argument_may_be_left_out_and_must_be_given_again() -> None:
    assert with_optional("on", True) == {"equals": "on", "optional": True}
    assert with_optional({"equals": "on", "optional": True}, False) == "on"


def test_an_argument_must_hold_need_not_or_is_as_the_grader_has_it() -> None:
    assert [required_text(value) for value in ("on", with_required("on", True), with_required("on", False))] == [
        "", "yes", "no",
    ]  # fmt: skip
    assert with_required({"equals": "on", "required": True}, None) == "on"
    assert with_kind({"range": [1, 2], "required": False}, "near") == {"near": 1.5, "tolerance": 0.5, "required": False}


def test_a_table_that_would_be_read_as_a_check_stays_behind_equals() -> None:
    literal: dict[str, object] = {"equals": {"range": [1, 2]}, "weight": 1}
    assert with_weight(literal, "") == {"equals": {"range": [1, 2]}}


def test_an_argument_that_is_named_like_a_key_is_written_explicitly() -> None:
    assert as_argument("args", 5) == {"equals": 5}
    assert as_argument("city", 5) == 5
