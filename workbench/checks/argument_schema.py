"""What checks need from an argument's schema: types and bounds, and the schemas of fields and elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import JsonValue

from workbench.checks.fields import TYPE_WORDS
from workbench.checks.values import describe_value
from workbench.numerals import setting_text
from workbench.trajectory.json_schema import Schema, is_number, properties_of

Refused = Callable[[JsonValue], str | None]
"""A function that returns the reason why a schema refuses a value, or `None` if the schema accepts it."""

InnerSample = Callable[[Any, Schema], JsonValue]
"""A function that returns a value that meets a nested check. The schema is that of the field or element."""

OtherValues = Callable[[Any, Schema], Iterator[JsonValue]]
"""A function that yields a few values that a nested check refuses. The field's or element's schema may allow them."""


def accept_any_value(value: JsonValue) -> None:
    """Return `None`, which means that a value is accepted. Pass this function where there is no schema."""


def one_of_types(types: frozenset[str]) -> str:
    """Return types in words: `a string or a number`. An integer is a number, so it is not named beside one."""
    given = types - {"integer"} if "number" in types else types
    return " or ".join(words for name, words in TYPE_WORDS.items() if name in given)


def out_of_bounds_reason(low: float, high: float, schema: Schema) -> str | None:
    """Return why a schema's bounds allow no number from `low` to `high`, or `None` if they may allow one."""
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if is_number(least) and high < least:
        return f"the schema allows nothing below {setting_text(least)}"
    if is_number(most) and low > most:
        return f"the schema allows nothing above {setting_text(most)}"
    if is_number(above) and high <= above:
        return f"the schema allows only numbers above {setting_text(above)}"
    if is_number(below) and low >= below:
        return f"the schema allows only numbers below {setting_text(below)}"
    return None


def field_schema(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field: an empty schema for an unknown field, or `None` for an excluded field."""
    properties = properties_of(schema)
    if name in properties:
        inner = properties[name]
        # A reference points into the tool's whole schema, which is unknown here.
        if isinstance(inner, dict) and "$ref" not in inner:
            return inner
        return {}
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if closed and not schema.keys() & {"$ref", "anyOf", "oneOf", "allOf", "if"}:
        return None
    return {}


def refusal_by(schema: Schema) -> Refused:
    # Lazy import: only the audit and the form ask what a schema refuses.
    from workbench.checks.schemas import BrokenSchemaError, result_problem

    def refused(value: JsonValue) -> str | None:
        try:
            problem = result_problem(value, schema)
        except BrokenSchemaError:
            return None
        if problem is None:
            return None
        return f"its schema refuses {describe_value(value)}"

    return refused


def items_schema(schema: Schema) -> Schema:
    """Return the schema of a list's elements, or an empty schema if it is unknown."""
    items = schema.get("items")
    return items if isinstance(items, dict) and "$ref" not in items else {}
