"""`has_fields` checks the fields of objects, and older tables without it stay values."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.checks.check import CHECK_CLASSES, OPTION_NAMES, describe, evaluate, read_check
from workbench.checks.structure_kinds import HasFields
from workbench.suite.render import to_toml_data
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import JsonValue

BLACK: JsonValue = {"query": "black hoodie", "pagination": {"limit": 5}}
WORDS = [*CHECK_CLASSES, *sorted(OPTION_NAMES), "only_fields", "city", "id"]
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.sampled_from(["x", "string", "object"]))


def check(text: str) -> Any:
    return read_check(tomllib.loads(f"check = {text}")["check"])


@each_row(
    ("text", "value", "note"),
    [
        ('{ has_fields = { query = { contains = "hoodie" }, pagination.limit = { range = [1, 9] } } }', BLACK, None),
        ('{ has_fields = { query = "black hoodie" } }', BLACK, None),
        (
            '{ has_fields = { query = { contains = "shirt" }, pagination.limit = 6 } }',
            BLACK,
            'query: expected containing "shirt", got "black hoodie" (does not contain it); '
            "pagination.limit: expected 6, got 5 (not equal)",
        ),
        ('{ has_fields = { sort = "price" } }', BLACK, "sort: not given"),
        ('{ has_fields = { sort = { equals = "price", optional = true } } }', BLACK, None),
        ("{ has_fields = { pagination = { equals = { limit = 5 } } } }", {"pagination": {"limit": 5}}, None),
        ("{ has_fields = { pagination = { equals = { } } } }", BLACK, "pagination: expected {}, got {"),
        ('{ has_fields = { query = "black hoodie" }, only_fields = true }', BLACK, "pagination: not expected"),
        ("{ has_fields = { a.b = 1 }, only_fields = true }", {"a": {"b": 1, "c": 2}}, "a.c: not expected"),
        ("{ has_fields = { a.has_fields.b = 1 }, only_fields = true }", {"a": {"b": 1, "c": 2}}, "a.c: not expected"),
        (
            "{ has_fields = { a = { has_fields = {}, only_fields = false } }, only_fields = true }",
            {"a": {"c": 2}},
            None,
        ),
        ("{ has_fields = { a = { any_of = [{ b = 1 }, { c = 2 }] } } }", {"a": {"c": 2, "d": 3}}, None),
        ("{ has_fields = { a = { any_of = [{ c = 2 }] } }, only_fields = true }", {"a": {"c": 2, "d": 3}}, "a: "),
        ('{ has_fields = { name = { has_fields = { prefix = "Dr" } } } }', {"name": {"prefix": "Dr"}}, None),
        ("{ has_fields = { parcel = { weight = 5 } } }", {"parcel": {"weight": 5, "id": 1}}, None),
        ("{ has_fields = { items = [{ id = 1 }] } }", {"items": [{"id": 1, "n": 2}]}, "items: expected"),
        ("{ has_fields = { a = 1 } }", [1], "not an object"),
        ('{ has_fields = { "odd name" = 1 } }', {}, '"odd name": not given'),
    ],
)
def test_an_object_is_compared_field_by_field(text: str, value: JsonValue, note: str | None) -> None:
    found = evaluate(check(text), value)
    assert found.holds is (note is None)
    assert (note or "") in found.note


def test_the_score_is_the_mean_of_the_fields_and_the_description_names_them() -> None:
    fields = check("{ has_fields = { a = 1, b.c = { range = [1, 2] }, d = 3 } }")
    assert describe(fields) == "{a: 1, b.c: 1..2, d: 3, …}"
    assert evaluate(fields, {"a": 1, "b": {"c": 2}}).score == pytest.approx(2 / 3)
    assert evaluate(fields, {f"{name}": 0 for name in "abd"}).score == 0


@given(
    st.dictionaries(st.sampled_from(WORDS), st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), min_size=1, max_size=3)
)
def test_a_table_without_fields_is_read_as_before_the_check_came(table: dict[str, Any]) -> None:
    others = [name for name in table if name in CHECK_CLASSES and name != "has_fields"]
    if "has_fields" in table and not others and not OPTION_NAMES.issuperset(table):
        assert read_check(table).bare_value == table


FIELDS = st.recursive(
    SCALARS,
    lambda inner: st.dictionaries(st.sampled_from(["a", "b", "limit"]), inner, min_size=1, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "contains"]), FIELDS, max_size=3), st.integers())
def test_an_object_has_its_own_fields_and_not_those_of_another(fields: dict[str, Any], extra: int) -> None:
    plain = HasFields(has_fields=fields)
    assert evaluate(plain, fields).holds
    assert evaluate(plain, {**fields, "extra": extra}).holds
    only = HasFields(has_fields=fields, only_fields=True)
    assert evaluate(only, fields).holds
    assert not evaluate(only, {**fields, "extra": extra}).holds
    assert HasFields.model_validate(to_toml_data(only)) == only


SUITE = """format = 1
name = "Shop"
tools = [{{ name = "find" }}]
[[cases]]
name = "One"
user = "Find it."
{expected}
"""


@each_row(
    ("expected", "problem"),
    [
        (
            "{ has_fields = { contains.range = [1] } }",
            "v.has_fields.contains.range: needs exactly two numbers: [low, high]",
        ),
        ("{ has_fields = { a.b.range = [2, 1] } }", "v.has_fields.a.b.range: must be [low, high] with low ≤ high"),
        (
            "{ has_fields.has_fields.has_fields.x.range = ['a', 1] }",
            "has_fields.x.range[0]: must be a number, not the text",
        ),
        (
            "{ has_fields = { a = { range = [1, 2], weight = 3 } } }",
            "v.has_fields.a.weight: `weight` is not allowed inside `has_fields`",
        ),
        (
            "{ has_fields = { a = { has_fields = {}, only = 1 } } }",
            "a.only: `only` is not an option of the check `has_fields`",
        ),
        ("{ has_fields = { a = 1 }, only_fields = 3 }", "v.only_fields: must be true or false, not the number 3"),
        (
            "{ has_fields = { a = 1 }, only_field = true }",
            "v: `only_field` is not an option of `has_fields`, so the whole table is compared as a value",
        ),
        ("{ has_fields = {} }", "v.has_fields: without any field, every object passes"),
        ("{ has_fields = true }", ""),
    ],
)
def test_a_mistake_in_a_check_of_fields_is_named_at_its_place(expected: str, problem: str) -> None:
    text = SUITE.format(expected=f'ordered = [{{ tool = "find", args = {{ v = {expected} }} }}]')
    found = "\n".join(f"{each.where}: {each.message}" for each in parse_suite(text, Path("shop.toml")).problems)
    assert problem in found
    assert bool(found) is bool(problem)


@each_row(
    ("response", "problem"),
    [
        ('{ has_fields = { contains = "x" } }', ""),
        ("{ has_fields = { a = 1 }, only_fields = true }", "never holds here: the final answer is text"),
        ("{ named = { has_fields = { a = 1 } } }", "never holds here: the final answer is text"),
        ("{ has_fields = { a = 1 } }", "`has_fields` never holds here: the final answer is text"),
        ("{ has_feild = { a = 1 } }", "`has_fields` never holds here: the final answer is text"),
        ("{ named = { has_field = { a = 1 } } }", "`has_fields` never holds here: the final answer is text"),
        ("{ named = { contain = 'a' } }", "must be a table with one check (did you mean `contains`?)"),
    ],
)
def test_checks_of_the_answer_may_have_the_name_and_are_no_checks_of_fields(response: str, problem: str) -> None:
    file = parse_suite(SUITE.format(expected=f"response = {response}"), Path("shop.toml"))
    assert problem in "".join(f"{each.message} ({each.hint})" for each in file.problems)
    assert (file.suite is None) is bool(problem)
