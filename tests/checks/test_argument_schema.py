"""Arguments against a tool's schema: violations are reported with their place, and nothing is downloaded."""

from __future__ import annotations

import pytest

from tests.tables import each_row
from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError, argument_problems
from workbench.trajectory.events import JsonValue

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "required": ["to"],
    "properties": {"to": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}},
}


def test_arguments_that_fit_have_no_problem() -> None:
    assert argument_problems({"to": ["Ann"], "n": 1}, SCHEMA) == ()
    assert argument_problems({"anything": 1}, {}) == ()


def test_every_problem_is_named_with_its_place() -> None:
    assert argument_problems({"n": 1.5}, SCHEMA) == (
        "args.n: 1.5 is not of type 'integer'",
        "args.to: 'to' is a required property",
    )
    assert argument_problems({"to": ["Ann", 5]}, SCHEMA) == ("args.to[1]: 5 is not of type 'string'",)


@each_row(
    ("arguments", "found"),
    [
        ({}, [("a", "required"), ("b", "required")]),
        ({"a": "x", "b": {}, "c": 1, "d": 2}, [("c", "additionalProperties"), ("d", "additionalProperties")]),
        ({"a": "z", "b": {}}, [("a", "enum")]),
        ({"a": "x", "b": {"n": 11}}, [("b.n", "maximum")]),
        ({"a": "x", "b": {"n": None}}, [("b.n", "type")]),
        ({"a": "x", "b": {"code": "ab"}}, [("b.code", "pattern")]),
    ],
)
def test_a_violation_has_its_place_and_its_rule(arguments: dict[str, JsonValue], found: list[tuple[str, str]]) -> None:
    inner: JsonValue = {"n": {"type": "integer", "maximum": 10}, "code": {"pattern": "^[0-9]+$"}}
    schema: dict[str, JsonValue] = {
        "required": ["a", "b"],
        "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "object", "properties": inner}},
        "additionalProperties": False,
    }
    violations = ArgumentSchema(schema).violations(arguments)
    assert [(each.place, each.rule) for each in violations] == found


@pytest.mark.parametrize(("dialect", "refused"), [("http://json-schema.org/draft-07/schema#", False), (None, True)])
def test_a_schema_is_read_in_its_own_dialect(dialect: str | None, refused: bool) -> None:
    schema: dict[str, JsonValue] = {"properties": {"a": {"prefixItems": [{"type": "integer"}]}}}
    if dialect is not None:
        schema["$schema"] = dialect
    assert bool(ArgumentSchema(schema).violations({"a": ["x"]})) is refused


def test_a_message_is_of_bounded_length() -> None:
    (problem,) = argument_problems({"to": ["x"], "n": "y" * 10_000}, SCHEMA)
    assert len(problem) < 400


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "thing"}, "schema.type"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/none"}}}, "a reference leads nowhere"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_used_is_said(schema: dict[str, JsonValue], said: str) -> None:
    with pytest.raises(BrokenSchemaError, match=said):
        argument_problems({"a": 1}, schema)
