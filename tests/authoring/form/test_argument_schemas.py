"""The information in a tool's schema about the arguments of an expected call."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.authoring.form import values
from tests.tables import each_row
from workbench.authoring.form.argument_schemas import argument_of, arguments_of, mark, mark_name, mark_tool, tool_named
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import ALL_TYPES, Schema, allowed_values, type_words, types_of

LIGHTS = ToolDefinition(
    "home_set_lights",
    "Sets the lights of a room.",
    {
        "type": "object",
        "properties": {
            "color": {"$ref": "#/$defs/Color"},
            "brightness": {
                "type": "integer",
                "minimum": 0,
                "maximum": 100,
                "description": "In percent.",
                "default": 50,
            },
            "room": {"type": "string"},
            "until": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["room"],
        "additionalProperties": False,
        "$defs": {"Color": {"enum": ["red", "blue"], "description": "Of the light."}},
    },
)
PERCENT: Schema = {"type": "integer", "minimum": 0, "maximum": 100}
TEXT = {"type": "string"}
SWITCH = {"type": "string", "enum": ["on", "off"]}


def schema(name: str) -> Any:
    argument = argument_of(LIGHTS, name)
    assert argument is not None
    return argument.schema


def test_arguments_are_listed_with_the_required_ones_first() -> None:
    assert [(a.name, a.type_words, a.required) for a in arguments_of(LIGHTS)] == [
        ("room", "string", True),
        ("color", "red | blue", False),
        ("brightness", "integer", False),
        ("until", "string or null", False),
    ]


def test_an_argument_is_described_through_its_reference() -> None:
    color = argument_of(LIGHTS, "color")
    assert color is not None
    assert (color.enum, color.description, color.default) == (("red", "blue"), "Of the light.", None)
    assert mark("green", color.schema) == 'must be one of "red", "blue"'


def test_an_argument_is_checked_in_the_dialect_of_its_tool() -> None:
    above: Schema = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    older: dict[str, Any] = {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"n": above}}
    argument = argument_of(ToolDefinition("count", "Counts.", older), "n")
    assert argument is not None and mark(1, argument.schema) is None
    assert mark(0, argument.schema) is not None


@each_row(
    ("schema", "words"),
    [
        ({}, "any value"),
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        ({"type": ["number", "null"]}, "number or null"),
        ({"type": "boolean"}, "boolean"),
        ({"anyOf": [{"const": "a"}, {"enum": ["b"]}, {"type": "null"}]}, "a | b | null"),
        ({"allOf": [{"type": "object"}]}, "object"),
        ({"$ref": "https://elsewhere.test/x"}, "any value"),
        ({"type": "strnig"}, "nothing"),
    ],
)
def test_a_type_is_said_in_words(schema: Schema, words: str) -> None:
    assert type_words(schema) == words


def test_a_schema_that_refers_to_itself_ends() -> None:
    endless: dict[str, Any] = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}},
    }
    assert types_of(endless) == ALL_TYPES
    assert allowed_values(endless) is None
    assert mark("x", endless) is None


@each_row(
    ("value", "schema", "said"),
    [
        ("kitchen", TEXT, None),
        (5, TEXT, 'must be a string, not the number 5: write "5"'),
        ("many", PERCENT, 'must be an integer, not the string "many"'),
        (5.0, PERCENT, None),
        (5.5, PERCENT, "must be an integer, not the number 5.5"),
        (120, PERCENT, "must be at most 100"),
        ("onn", SWITCH, 'must be one of "on", "off": did you mean `on`?'),
        ({"equals": "onn", "weight": 1}, SWITCH, 'must be one of "on", "off": did you mean `on`?'),
        (
            "null",
            {"type": ["integer", "null"]},
            'must be an integer or null, not the string "null"; for null, choose the check equals_null',
        ),
        ("yes", {"type": "boolean"}, 'must be true or false, not the string "yes"'),
        ([1, "2"], {"type": "array", "items": {"type": "integer"}}, '[1]: must be an integer, not the string "2"'),
        ({"city": 5}, {"type": "object", "properties": {"city": TEXT}}, "city: must be a string, not the number 5"),
        ({}, {"type": "object", "required": ["city"]}, "must have city"),
        (
            {"cty": "Oslo"},
            {"type": "object", "properties": {"city": TEXT}, "additionalProperties": False},
            "has no cty: did you mean `city`?",
        ),
        ("ab", {"type": "string", "minLength": 3}, "must have at least 3 characters"),
        ("ab", {"type": "string", "pattern": "^[0-9]+$"}, "must match /^[0-9]+$/"),
        ({"present": True}, PERCENT, None),
        ({"python": "a:b"}, PERCENT, None),
        ({"one_of": ["on", "dim"]}, SWITCH, 'the text "dim": must be one of "on", "off"'),
        ({"range": [5, 40]}, PERCENT, None),
        ({"range": [5, float("inf")]}, PERCENT, None),
        ({"range": [-5, 40]}, PERCENT, "-5 is outside the range that the schema allows: at least 0"),
        ({"range": [5, 40]}, TEXT, "it needs a number, and the schema requires string"),
        ({"near": 200, "tolerance": 1}, PERCENT, "200 is outside the range that the schema allows: at most 100"),
        ({"near": 20.5, "tolerance": 1}, PERCENT, None),
        ({"contains": "x"}, PERCENT, "it needs a string, and the schema requires integer"),
        ({"prefix": "x"}, SWITCH, 'the schema allows only "on"|"off"'),
        ({"prefix": "o"}, SWITCH, None),
        ({"equals_null": True}, TEXT, "must be a string, not null"),
        ({"equals_null": True}, {"type": ["string", "null"]}, None),
        ({"range": "broken"}, PERCENT, None),
        (5, None, None),
        (5, {"type": "strnig"}, None),
    ],
)
def test_a_value_that_the_schema_refuses_is_marked_in_plain_words(value: object, schema: Any, said: str | None) -> None:
    assert mark(value, schema) == said


def test_names_that_no_argument_has_are_marked() -> None:
    assert mark_name(LIGHTS, "colour") == "home_set_lights has no argument of this name: did you mean `color`?"
    assert (
        mark_name(LIGHTS, "x") == "home_set_lights has no argument of this name: it has room, color, brightness, until"
    )
    assert mark_name(LIGHTS, "color") is None
    assert mark_name(None, "colour") is None


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"type": "object", "properties": {}}, "t takes no arguments"),
        ({"type": "object"}, None),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}, None),
        ({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}, None),
    ],
)
def test_where_a_schema_takes_any_name_none_is_marked(parameters: Any, said: str | None) -> None:
    assert mark_name(ToolDefinition("t", "", parameters), "x1") == said


def test_a_tool_is_known_however_a_provider_bends_its_name() -> None:
    assert tool_named([LIGHTS], "Home.Set-Lights") is LIGHTS


def test_a_name_that_no_server_has_listed_is_marked() -> None:
    listed = [LIGHTS, ToolDefinition("home_set_tv", server="home")]
    assert mark_tool(listed, "home_set_light") == "no known tool has this name: did you mean `home_set_lights`?"
    assert mark_tool(listed, "Home.Set-TV") is None
    assert mark_tool([LIGHTS], "anything") is None, "the suite's own problems tell of it"
    assert mark_tool([], "anything") is None


_names = st.sampled_from(
    ["type", "properties", "items", "enum", "anyOf", "$ref", "minimum", "pattern", "required", "const"]
)
_said = (
    values.texts
    | st.sampled_from(["string", "integer", "#", "#/$defs/A", "("])
    | st.integers(-2, 2)
    | st.booleans()
    | st.none()
)
_any_schema = st.recursive(
    st.dictionaries(_names, _said, max_size=3),
    lambda inner: st.dictionaries(_names, inner | st.lists(inner | _said, max_size=2) | _said, max_size=3),
    max_leaves=4,
)


@given(_any_schema, values.anything)
def test_no_schema_and_no_value_breaks_a_mark(parameters: Any, value: Any) -> None:
    tool = ToolDefinition("t", "", {"type": "object", "properties": {"a": parameters}, **parameters})
    for argument in arguments_of(tool):
        said = mark(value, argument.schema)
        assert said is None or ("\n" not in said and len(said) <= 160)
    mark_name(tool, "b")


def test_a_mark_costs_little_once_its_schema_is_known() -> None:
    mark(5, PERCENT)
    took = min(_seconds_of_a_hundred_marks() for _ in range(5))
    assert took / 100 < 0.002, "ten times what is wanted, since other programs run beside tests"


def _seconds_of_a_hundred_marks() -> float:
    before = time.process_time()
    for number in range(100):
        mark(number * 2, PERCENT)
    return time.process_time() - before
