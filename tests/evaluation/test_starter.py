"""The first suite for tools with any schemas and names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from workbench.analysis.prefilled import is_missing_value, refused_parts, required_args, values_of
from workbench.evaluation.first_suite import starter_suite, with_prefixes
from workbench.suite.model import Suite
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import JsonValue, ToolDefinition

SERVER: dict[str, object] = {"name": "s", "command": ["x"]}
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-3, 3) | st.text(max_size=4)
DEEP = st.recursive(VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner))
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"]),
        "default": DEEP,
        "examples": st.lists(DEEP, max_size=2),
        "enum": st.lists(DEEP, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-5, 5),
        "exclusiveMinimum": st.floats(-2, 2),
        "maximum": st.integers(0, 5),
        "multipleOf": st.sampled_from([2, 0.5]),
        "minLength": st.integers(0, 3),
        "description": st.text(),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/none", "http://x.test/"]),
    },
)
NAMES = st.sampled_from(["city", "args", "a b", "prefix", "equals", "", "é", "type"]) | st.text(max_size=3)
SCHEMAS = st.builds(
    lambda properties, required, others, more: {
        "type": "object",
        "properties": properties,
        "required": sorted({*(name for name in properties if required), *others}),
        "$defs": {"a": {"type": "integer", "default": 3}},
        **more,
    },
    st.dictionaries(NAMES, LEAVES, max_size=4),
    st.booleans(),
    st.lists(NAMES, max_size=1),
    st.sampled_from([{}, {"additionalProperties": False}, {"minProperties": 3}, {"anyOf": [{"required": ["x"]}]}]),
)


def test_values_are_filled_in_where_the_schema_says_some() -> None:
    properties: dict[str, JsonValue] = {
        "unit": {"enum": ["C", "F"], "description": "Of the answer. More."},
        "any": {"type": "number"},
        "days": {"type": "integer", "minimum": 1},
        "loud": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "a b": {"type": "object", "default": {"x": 1}},
    }
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": properties,
        "required": ["unit", "any", "days", "loud"],
    }
    text = starter_suite("S", [SERVER], [ToolDefinition("t", "", schema, server="s")])
    about = text[text.index("# t\n") :].partition("[[cases]]")[0]
    assert about.splitlines() == [
        "# t",
        "#   unit: C | F. Of the answer.",
        "#   any: number",
        "#   days: integer",
        "#   tags (optional): array of string",
        "#   a b (optional): object",
    ]
    (args,) = re.findall(r"\[cases\.ordered\.args\]\n((?:.+\n)*)", text)
    assert args.splitlines() == [
        'unit = "C"',
        "any = { present = true }",
        "days = { present = true }",
        "loud = true",
        "# tags = { present = true }",
        '# "a b" = { x = 1 }',
    ]


@given(SCHEMAS)
def test_required_arguments_are_accepted_or_said_to_be_open(schema: dict[str, JsonValue]) -> None:
    args = required_args(schema)
    refused = refused_parts(values_of(args), schema)
    open_ones = [name for name, value in args.items() if is_missing_value(value)]
    assert list(args) == list(dict.fromkeys(args))
    assert set(args) == set(schema["required"])  # type: ignore[arg-type]
    assert refused is None or set(refused) <= {""}
    tool = ToolDefinition("tool", "Does it.", schema, server="s")
    text = starter_suite("s", [SERVER], [tool])
    table = tomllib.loads(text)["cases"][0]["ordered"][0].get("args", {})
    left = {name for name, value in table.items() if is_missing_value(value)}
    assert left.issuperset(open_ones)
    if refused is None or (refused and not left):
        assert "# Its schema" in text
    comments = [line for line in text.splitlines() if line.startswith("#   ")]
    assert len(comments) >= len(left)


@given(st.lists(st.builds(ToolDefinition, st.text(max_size=8), st.text(), SCHEMAS, server=st.just("s")), max_size=5))
def test_a_written_suite_always_loads(tools: list[ToolDefinition]) -> None:
    text = starter_suite("s", [SERVER], tools)
    assert text == starter_suite("s", [SERVER], tools)
    loaded = parse_suite(text, Path("s.toml"))
    assert loaded.errors == ()
    assert loaded.suite is not None
    assert {call.tool for case in loaded.suite.cases for call in case.expected_calls()} == {
        tool.name for tool in tools if tool.name not in ("", "*")
    }
    assert all(case.skip for case in loaded.suite.cases)


def suite_of(*names: str) -> Suite:
    tools = [ToolDefinition(name, "", {"type": "object"}, server="s") for name in names]
    suite = parse_suite(starter_suite("s", [SERVER], tools), Path("s.toml")).suite
    assert suite is not None
    return suite


def test_tools_are_grouped_by_what_they_belong_to_and_not_by_verbs() -> None:
    def groups(*names: str) -> list[str]:
        return [case.name for case in suite_of(*names).cases if case.expect_no_calls]

    assert groups("git_log", "git_diff", "hub_issue", "hubPull") == ["Nothing for git", "Nothing for hub"]
    assert groups("get_a", "get_b", "list_a", "list_b") == ["Nothing for s"]
    assert groups("git_log", "git_diff", "other") == ["Nothing for s"]


def test_names_of_cases_are_words_and_differ() -> None:
    names = [case.name for case in suite_of("getURLOf", "get_time", "getTime").cases]
    assert names == ["Get URL of", "Get time", "Get time 2", "Nothing for s"]


def test_tools_of_the_same_name_get_the_names_of_their_servers() -> None:
    a, b = ToolDefinition("add", "", {}, server="a"), ToolDefinition("add", "", {}, server="b-1")
    c = ToolDefinition("mul", "", {}, server="c")
    servers, tools = with_prefixes([{"name": "a"}, {"name": "b-1"}, {"name": "c"}], [[a], [b], [c]])
    assert [tool.name for tool in tools] == ["a_add", "b_1_add", "mul"]
    assert servers == [{"name": "a", "prefix": "a_"}, {"name": "b-1", "prefix": "b_1_"}, {"name": "c"}]
