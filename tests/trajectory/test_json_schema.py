"""The facts read from a tool's JSON Schema, whatever it contains."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.trajectory.events import JsonValue
from workbench.trajectory.json_schema import (
    ALTERNATIVES,
    Schema,
    alternatives_of,
    is_number,
    listed_values,
    properties_of,
    required_names,
    resolved,
    target_of,
    type_names,
    type_of,
)

COLOR: JsonValue = {"enum": ["red", "blue"], "description": "Of the light."}
ROOT: Schema = {
    "properties": {"color": {"$ref": "#/$defs/Alias"}, "self": {"$ref": "#/properties/self"}},
    "required": ["color", 5],
    "$defs": {"Color": COLOR, "Alias": {"$ref": "#/$defs/Color", "description": "Of the room."}, "a/b~c": True},
}


@each_row(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#/$defs/Color", COLOR),
        ("#/$defs/a~1b~0c", True),
        ("#/$defs/Nothing", None),
        ("#/required/0", None),
        ("#Color", None),
        ("https://elsewhere.test/#/$defs/Color", None),
    ],
)
def test_a_reference_points_into_the_same_schema(reference: str, target: JsonValue) -> None:
    assert target_of(reference, ROOT) == target


def test_references_are_followed_to_their_end_and_what_is_next_to_them_takes_precedence() -> None:
    assert resolved({"$ref": "#/$defs/Alias", "default": "red"}, ROOT) == {
        "enum": ["red", "blue"],
        "description": "Of the room.",
        "default": "red",
    }
    assert resolved({"$ref": "#/properties/self", "title": "Endless"}, ROOT) == {"title": "Endless"}
    assert resolved({"$ref": "#/$defs/a~1b~0c"}, ROOT) == resolved(True, ROOT) == {}


def test_keywords_are_read_as_json_schema_means_them() -> None:
    assert list(properties_of(ROOT)) == ["color", "self"]
    assert required_names(ROOT) == ("color",)
    assert type_names({"type": "string"}) == ("string",)
    assert type_names({"type": ["string", "null"]}) == ("string", "null")
    assert type_names({}) is None
    assert listed_values({"const": None, "enum": [1]}) == [None]
    assert listed_values({"enum": []}) == []
    assert listed_values({"type": "boolean"}) is None
    assert list(alternatives_of({"allOf": [{}], "anyOf": [True], "oneOf": {}}, *ALTERNATIVES)) == [[True], [{}]]


@each_row(
    ("value", "name"),
    [
        (True, "boolean"),
        ("", "string"),
        (5, "integer"),
        (5.0, "integer"),
        (5.5, "number"),
        (None, "null"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_each_value_has_a_type(value: JsonValue, name: str) -> None:
    assert type_of(value) == name


def test_only_finite_numbers_within_a_floats_range_are_numbers() -> None:
    assert is_number(5) and is_number(-0.5)
    assert not any(map(is_number, (True, "5", None, float("inf"), float("nan"), 10**400)))


_KEYWORDS = ["type", "properties", "required", "enum", "const", "$ref", "$defs", "anyOf", "allOf"]
_leaves = st.none() | st.booleans() | st.integers() | st.sampled_from(["string", "#", "#/$defs/A", "#/anyOf/0", "#/"])
_anything = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*_KEYWORDS, "A"]), inner)
)


@given(st.dictionaries(st.sampled_from(_KEYWORDS), _anything))
def test_any_json_can_be_read(schema: dict[str, JsonValue]) -> None:
    assert "$ref" not in resolved(schema, schema)
    assert all(isinstance(name, str) for name in (*required_names(schema), *(type_names(schema) or ())))
    for name, inner in properties_of(schema).items():
        assert isinstance(name, str)
        assert isinstance(resolved(inner, schema), dict)
    assert all(isinstance(listed, list) for listed in alternatives_of(schema, *ALTERNATIVES))
