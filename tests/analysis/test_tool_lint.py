"""Lint of tools: each finding appears once, at its place, and a proper tool has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables import each_row
from workbench.analysis.tool_lint import (
    LARGE_OFFER_TOKENS,
    LARGE_TOOL_TOKENS,
    MAX_SCHEMA_DEPTH,
    LintFinding,
    ToolName,
    lint_tools,
    offered_at_once,
    parameters_of,
)
from workbench.limits import MAX_OFFERED_TOOLS
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import type_text

Properties = dict[str, JsonValue]

CITY: Properties = {"city": {"type": "string", "description": "The city to look up"}}


def tool(
    name: str = "get_weather",
    description: str = "Says what the weather in a city is like today.",
    properties: Properties | None = None,
    server: str | None = None,
    **schema: JsonValue,
) -> ToolDefinition:
    written: Properties = {"type": "object", "properties": CITY if properties is None else properties}
    return ToolDefinition(name, description, {**written, **schema}, server=server)


def found(*tools: ToolDefinition) -> list[tuple[str, str]]:
    return [(finding.rule, finding.where) for finding in lint_tools(tools)]


def only(*tools: ToolDefinition) -> LintFinding:
    (finding,) = lint_tools(tools)
    return finding


def test_a_tool_that_is_as_it_should_be_has_no_findings() -> None:
    nested: Properties = {
        "to": {
            "type": "array",
            "description": "Whom to write to",
            "items": {"type": "object", "properties": {"name": {"type": "string", "description": "Their name"}}},
        },
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "What else to say"},
        "labels": {"type": "object", "description": "Free", "additionalProperties": {"type": "string"}},
        "kind": {"enum": ["a", "b"], "description": "Which kind"},
    }
    letter = tool("write_letter", "Writes a letter and leaves it in the tray.", nested, required=["to"])
    assert found(tool(required=["city"]), letter, ToolDefinition("ping", "Answers if the server is there.")) == []


@each_row(
    ("bad", "expected"),
    [
        (tool(description=" "), ("no description", "")),
        (tool(description="Weather"), ("short description", "")),
        (tool("list_users", "List the users"), ("short description", "")),
        (tool("lists.weather"), ("refused name", "")),
        (tool("w" * 65), ("refused name", "")),
        (tool(properties={"city": {"type": "string"}}), ("parameter without description", "city")),
        (tool(properties={"city": {"description": "A city"}}), ("parameter without type", "city")),
        (tool(properties={"a b": {"type": "string", "description": "c"}}), ("refused parameter name", "a b")),
        (tool(properties={"to": {"type": "array", "description": "Whom"}}), ("list without items", "to")),
        (tool(properties={"to": {"type": "object", "description": "Whom"}}), ("object without properties", "to")),
        (tool(required=["town", "city"]), ("unknown required", "")),
        (tool(description="word " * 4 * LARGE_TOOL_TOKENS), ("large tool", "")),
        (tool(properties={"n": {"type": "integr", "description": "How many"}}), ("broken schema", "")),
        (tool(properties={"n": {"$ref": "#/$defs/Gone"}}), ("broken schema", "")),
        (ToolDefinition("pick", "Picks one of several.", {"type": "array"}), ("refused schema", "")),
        (tool(anyOf=[{"required": ["city"]}]), ("refused schema", "")),
    ],
)
def test_each_finding_is_made_once_and_at_its_place(bad: ToolDefinition, expected: tuple[str, str]) -> None:
    finding = only(bad)
    assert (finding.rule, finding.where) == expected
    assert finding.tools == (ToolName(bad.name),)
    assert finding.message
    assert finding.hint


def test_what_is_nested_is_looked_at_too_and_references_are_followed() -> None:
    person: JsonValue = {"type": "object", "required": ["age"], "properties": {"name": {"type": "string"}}}
    people: Properties = {
        "people": {"type": "array", "description": "Who", "items": {"$ref": "#/$defs/Person"}},
        "first": {"$ref": "#/$defs/Person", "description": "Who comes first"},
    }
    schema: Properties = {"type": "object", "properties": people, "$defs": {"Person": person}}
    assert found(ToolDefinition("invite", "Invites people to a party.", schema)) == [
        ("unknown required", "people[]"),
        ("parameter without description", "people[].name"),
    ]


def node(**properties: JsonValue) -> JsonValue:
    return {"type": "object", "properties": properties}


NODE: dict[str, JsonValue] = {"$ref": "#/$defs/Node"}
TREE: JsonValue = node(
    value={"type": "string"}, children={"type": "array", "items": NODE}, parent={"anyOf": [NODE, {}]}
)


@pytest.mark.parametrize(
    ("schema", "paths", "findings"),
    [
        pytest.param(node(child={"$ref": "#"}, v={"type": "integer"}), ["child", "v"], ["child", "v"], id="the root"),
        pytest.param(
            {**tool(properties={"tree": NODE, "other": {**NODE}}).parameters, "$defs": {"Node": TREE}},
            [
                *("tree", "tree.value", "tree.children", "tree.children[]", "tree.parent"),
                *("other", "other.value", "other.children", "other.children[]", "other.parent"),
            ],
            ["tree", "tree.value", "tree.children", "tree.parent", "other"],
            id="a definition used twice",
        ),
        pytest.param(
            {**tool(properties={"a": {"$ref": "#/$defs/A"}}).parameters,
             "$defs": {"A": node(b={"$ref": "#/$defs/B"}), "B": node(a={"$ref": "#/$defs/A"})}},
            ["a", "a.b", "a.b.a"],
            ["a", "a.b", "a.b.a"],
            id="two definitions of each other",
        ),
    ],
)  # fmt: skip
def test_a_recursive_schema_is_read_and_warned_of_once_for_each_definition(
    schema: Properties, paths: list[str], findings: list[str]
) -> None:
    assert [parameter.path for parameter in parameters_of(schema)] == paths
    found = lint_tools([ToolDefinition("put", "Puts a node into the tree.", schema)])
    assert [each.where for each in found if each.rule == "parameter without description"] == findings


def test_items_of_an_older_dialect_are_a_tuple() -> None:
    pair: Properties = {"type": "array", "description": "From, to", "items": [{"type": "string"}, {"type": "integer"}]}
    older: JsonValue = "http://json-schema.org/draft-07/schema#"
    declared = ToolDefinition(
        "go", "Goes from here to there.", {"type": "object", "$schema": older, "properties": {"pair": pair}}
    )
    assert found(declared) == []
    assert [each[0] for each in found(tool(properties={"pair": pair}))] == ["broken schema"]


def test_levels_of_a_schema_are_read_to_a_limit() -> None:
    deep: JsonValue = {"type": "string"}
    for _ in range(MAX_SCHEMA_DEPTH + 3):
        deep = node(next=deep)
    assert isinstance(deep, dict)
    assert len(parameters_of(deep)) == MAX_SCHEMA_DEPTH
    assert parameters_of({"properties": {"x": {"$ref": "#/properties/x"}}})[0].schema == {}


def test_two_tools_of_one_name_are_an_error_that_names_where_they_come_from() -> None:
    finding = only(tool(), tool(description="Forecasts the weather of the week.", server="sky"))
    assert (finding.rule, finding.severity) == ("same name", "error")
    assert "in the suite and on server sky" in finding.message
    assert finding.tools == (ToolName("get_weather"), ToolName("get_weather", "sky"))


def test_tools_with_one_description_are_one_finding() -> None:
    finding = only(*(tool(f"weather_{word}", properties={word: CITY["city"]}) for word in ("now", "soon", "then")))
    assert finding.rule == "same description"
    assert "weather_now, weather_soon and weather_then" in finding.message


def test_tools_are_near_identical_unless_a_word_of_their_names_tells_them_apart() -> None:
    user: Properties = {"id": {"type": "string", "description": "Whose"}}
    one = tool("get_user", "Get one user by the id of the account.", user)
    assert found(one, tool("fetch_user", "Fetch one user by the id of the account.", user)) == [("near-identical", "")]
    lock = tool("lock_door", "Lock the front door of the house.", {})
    assert found(lock, tool("unlock_door", "Unlock the front door of the house.", {})) == []


def test_too_many_tools_count_as_a_case_offers_them() -> None:
    many = [
        tool(f"tool_{number}", f"Does what number {number} is for, and {'x' * number}.", {f"p{number}": CITY["city"]})
        for number in range(MAX_OFFERED_TOOLS + 1)
    ]
    assert {finding.rule for finding in lint_tools(many)} >= {"too many tools"}
    assert {finding.rule for finding in lint_tools(many, at_once=2)} <= {"near-identical"}
    suite = parse_suite(
        'format = 1\nname = "A"\n[[cases]]\nname = "B"\nuser = "C"\noffer = ["a", "b"]\n', Path("a.toml")
    ).suite
    assert suite is not None
    assert offered_at_once(suite, many) == 2


def test_all_tools_together_may_be_too_large() -> None:
    words = "word " * 700
    large = [tool(f"tool_{number}", f"{number} {words}", {f"p{number}": CITY["city"]}) for number in range(10)]
    finding = lint_tools(large)[0]
    assert (finding.rule, finding.tools) == ("large offer", ())
    assert LARGE_OFFER_TOKENS < 10 * 700 * 5 / 4 + 1_000


@each_row(
    ("schema", "text"),
    [
        ({"type": ["string", "null"]}, "string|null"),
        ({"type": "array", "items": {"enum": ["a", 1]}}, '("a"|1)[]'),
        ({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}, "integer[]|null"),
        ({"const": None}, "null"),
        ({}, ""),
        (True, ""),
    ],
)
def test_types_read_as_one_would_say_them(schema: JsonValue, text: str) -> None:
    assert type_text(schema) == text
