"""The text in a field of the form, and its value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.authoring.form import values
from tests.tables import each_row
from workbench.authoring.form.field_text import (
    CellError,
    last_item,
    read_choice,
    read_duration,
    read_number,
    read_range,
    read_switch,
    read_text,
    read_texts,
    read_value,
    read_values,
    read_whole,
    shown_range,
    shown_text,
    shown_texts,
    shown_value,
    shown_values,
)
from workbench.suite.toml_equality import toml_equal
from workbench.trajectory.json_schema import Schema

TEXT = {"type": "string"}
LIST: Schema = {"type": "array", "items": {"type": "string"}}


@given(values.texts)
def test_a_text_is_read_as_it_is_shown(text: str) -> None:
    assert read_text(shown_text(text)) == text


@given(values.plain, values.schemas)
def test_a_value_is_read_as_it_is_shown(value: Any, schema: Any) -> None:
    if schema in (TEXT, {"type": ["string", "null"]}) and not isinstance(value, str):
        return  # there everything that is typed is text
    assert toml_equal(read_value(shown_value(value, schema), schema), value)


@given(st.lists(values.plain, max_size=4))
def test_values_in_a_list_are_read_as_they_are_shown(items: list[Any]) -> None:
    assert toml_equal(read_values(shown_values(items)), items)


@given(st.lists(values.texts, max_size=4))
def test_texts_in_a_list_are_read_as_they_are_shown(items: list[str]) -> None:
    assert read_texts(shown_texts(items)) == items


@given(values.plain)
def test_what_is_shown_stands_on_one_line(value: Any) -> None:
    assert "\n" not in shown_value(value)


@given(st.text(), values.schemas)
def test_whatever_is_typed_says_a_value_or_why_it_does_not(text: str, schema: Any) -> None:
    readings: list[Callable[[], object]] = [
        lambda: read_value(text, schema),
        lambda: read_values(text, schema),
        lambda: read_range(text),
    ]
    for read in readings:
        try:
            read()
        except CellError as error:
            assert "\n" not in str(error)


@each_row(
    ("typed", "value"),
    [
        ("living room", "living room"),
        ("5", 5),
        ('"5"', "5"),
        ("1.5", 1.5),
        ("true", True),
        ("True", "True"),
        ("[1, 2]", [1, 2]),
        ('{ city = "Oslo" }', {"city": "Oslo"}),
        ('{"city": "Oslo"}', {"city": "Oslo"}),
        ("[draft] title", "[draft] title"),
        ("2026-05-01", "2026-05-01"),
        ("inf", "inf"),
        ("5 # five", "5 # five"),
        ("  padded ", "padded"),
        ('"  padded "', "  padded "),
        ("", ""),
    ],
)
def test_a_value_of_no_known_type_is_toml_where_it_reads_as_such(typed: str, value: object) -> None:
    assert toml_equal(read_value(typed), value)


@pytest.mark.parametrize(
    ("typed", "value"), [("5", "5"), ("true", "true"), ("[1]", "[1]"), ('"x"', "x"), ('say "x"', 'say "x"')]
)
def test_where_the_schema_wants_text_all_that_is_typed_is_text(typed: str, value: str) -> None:
    assert read_value(typed, TEXT) == value


def test_where_the_schema_wants_a_list_commas_are_enough() -> None:
    assert read_value("red, 5", LIST) == ["red", "5"]
    assert read_value('["red", "5"]', LIST) == ["red", "5"]


@pytest.mark.parametrize("typed", ['["red"', "{ a = "])
def test_a_list_or_table_that_is_not_complete_is_no_value_yet(typed: str) -> None:
    with pytest.raises(CellError, match="not yet a list or a table"):
        read_value(typed, {"type": ["array", "object"]})


def test_null_in_a_list_points_to_the_check_for_it() -> None:
    with pytest.raises(CellError, match="equals_null"):
        read_value("[1, null]")


def test_quotes_keep_a_comma_and_an_apostrophe_opens_none() -> None:
    assert read_texts("it's here, 'red, blue',, \"x\"") == ["it's here", "red, blue", "x"]


def test_line_ends_separate_texts_as_commas_do() -> None:
    assert read_texts("red\nblue\n") == ["red", "blue"]


def test_the_last_item_is_what_is_being_typed() -> None:
    assert last_item("red, 'b, c', bl") == ("red, 'b, c', ", "bl")
    assert last_item("bl") == ("", "bl")


@each_row(
    ("typed", "ends"),
    [
        ("5..40", [5, 40]),
        ("..40", [-math.inf, 40]),
        ("5..", [5, math.inf]),
        ("..", [-math.inf, math.inf]),
        (" -1.5 .. 1e3 ", [-1.5, 1000.0]),
        ("0.5..1.5", [0.5, 1.5]),
        ("[5, 40]", [5, 40]),
    ],
)
def test_a_range_has_two_dots_between_its_ends(typed: str, ends: list[float]) -> None:
    assert toml_equal(read_range(typed), ends)


@given(values.EXPECTED["range"])
def test_a_range_is_read_as_it_is_shown(ends: list[float]) -> None:
    assert toml_equal(read_range(shown_range(*ends)), ends)


@each_row("typed", ["", "5", "five..six", "5...40", "1..2..3", "true..5", "nan..1"])
def test_what_is_no_range_says_how_one_is_written(typed: str) -> None:
    with pytest.raises(CellError, match=r"5\.\.40"):
        read_range(typed)


def test_numbers_keep_to_their_limits_and_say_them() -> None:
    assert read_number("0.8", 0, 1) == 0.8
    with pytest.raises(CellError, match="a number from 0 to 1, not 8"):
        read_number("8", 0, 1)
    with pytest.raises(CellError, match="write a number"):
        read_number("true")
    with pytest.raises(CellError, match=r"whole number of at least 1, not 1\.5"):
        read_whole("1.5", 1)


def test_switches_choices_and_durations_name_what_they_take() -> None:
    assert read_switch("True") is True
    assert read_choice("last", ("last", "mean")) == "last"
    assert read_duration("500s") == "500s"
    with pytest.raises(CellError, match="write true or false"):
        read_switch("yes")
    with pytest.raises(CellError, match="write last, mean or majority"):
        read_choice("first", ("last", "mean", "majority"))
    with pytest.raises(CellError, match="such as 90s"):
        read_duration("soon")
