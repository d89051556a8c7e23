"""Reads JSON Schemas of tools: references, alternatives, types, listed values, and the names of properties.

Any JSON can be read: what is malformed counts as absent, and only references into the same schema are followed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from workbench.trajectory.messages import JsonValue

Schema = Mapping[str, JsonValue]

UNIONS = ("anyOf", "oneOf")
"""The keywords that list schemas of which one applies."""

ALTERNATIVES = (*UNIONS, "allOf")
"""The keywords that list schemas for the same value."""


def properties_of(schema: Schema) -> Mapping[str, JsonValue]:
    """Returns the schemas under `properties` by name."""
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def required_names(schema: Schema) -> tuple[str, ...]:
    """Returns the names under `required`."""
    required = schema.get("required")
    return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


def alternatives_of(schema: Schema, *keywords: str) -> Iterator[list[JsonValue]]:
    """Yields the list of schemas under each of the keywords."""
    return (listed for keyword in keywords if isinstance(listed := schema.get(keyword), list))


def type_names(schema: Schema) -> tuple[str, ...] | None:
    """Returns the names under `type`, `None` if the schema has no such keyword."""
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    return tuple(name for name in named if isinstance(name, str)) if isinstance(named, list) else None


def listed_values(schema: Schema) -> list[JsonValue] | None:
    """Returns the value of `const`, otherwise those of `enum`, `None` if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def target_of(reference: str, root: Schema) -> JsonValue | Schema:
    """Returns what a reference such as `#/$defs/Color` points to in `root`, `None` if it points to nothing there."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    found: JsonValue | Schema = root
    for part in reference.split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found


def resolved(schema: JsonValue | Schema, root: Schema) -> Schema:
    """Returns a schema with its reference into `root` followed, and further ones. Keywords next to a reference take
    precedence. Returns an empty schema for `true`, for invalid schemas, and for broken references."""
    seen: set[str] = set()
    beside: dict[str, JsonValue] = {}
    while isinstance(schema, Mapping):
        beside = {**{key: value for key, value in schema.items() if key != "$ref"}, **beside}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in seen:
            break
        seen.add(reference)
        schema = target_of(reference, root)
    return beside


def type_of(value: object) -> str:
    """Returns JSON Schema's name for a value's type. A number without a fraction is an `integer`."""
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case Mapping():
            return "object"
        case None:
            return "null"
        case _:
            return "array"


def is_number(value: object) -> TypeGuard[int | float]:
    """Returns whether a value is a finite number within the range of a float."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def type_text(schema: JsonValue | Schema) -> str:
    """Return `string`, `integer|null`, `"on"|"off"`, `string[]`; empty where the type is open. Texts are as
    written."""
    if not isinstance(schema, Mapping):
        return ""
    if (choices := listed_values(schema)) is not None:
        return "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    if (names := type_names(schema)) is not None:
        items = type_text(schema.get("items")) if names == ("array",) else ""
        return f"({items})[]" if "|" in items else f"{items}[]" if items else "|".join(names)
    for options in alternatives_of(schema, *ALTERNATIVES):
        return "|".join(dict.fromkeys(filter(None, map(type_text, options))))
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rsplit("/", 1)[-1]
    return ""
