"""Arguments against a tool's schema: what it refuses is named with its place, and nothing is fetched for it."""

from __future__ import annotations

import pytest

from workbench.tools.argument_check import BrokenSchemaError, argument_problems
from workbench.trajectory.messages import JsonValue

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
        "args: 'to' is a required property",
        "args.n: 1.5 is not of type 'integer'",
    )
    assert argument_problems({"to": ["Ann", 5]}, SCHEMA) == ("args.to[1]: 5 is not of type 'string'",)


def test_a_message_is_of_bounded_length() -> None:
    (problem,) = argument_problems({"to": ["x"], "n": "y" * 10_000}, SCHEMA)
    assert len(problem) < 400


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "thing"}, "schema.type"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/none"}}}, "refers to what it does not hold"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_used_is_said(schema: dict[str, JsonValue], said: str) -> None:
    with pytest.raises(BrokenSchemaError, match=said):
        argument_problems({"a": 1}, schema)
