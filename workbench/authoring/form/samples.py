"""Sample values from a JSON Schema."""

from __future__ import annotations

from workbench.authoring.form.json_types import Schema, allowed_values, is_number, keyword, types_of


def suggested_value(schema: Schema | None) -> object | None:
    """Return the schema's default, otherwise its first listed value, otherwise its first example. Returns `None` if
    TOML can express none of them."""
    listed = allowed_values(schema)
    examples = keyword(schema, "examples")
    others = examples if isinstance(examples, list) else []
    suggested = (keyword(schema, "default"), *(listed or ()), keyword(schema, "example"), *others)
    return next((value for value in suggested if _can_be_said(value)), None)


def sample_value(schema: Schema | None) -> object:
    """Return the value that the schema suggests, or a plain one of its type: empty text, the minimum, and so on."""
    suggested = suggested_value(schema)
    if suggested is not None:
        return suggested
    types = types_of(schema)
    if "string" in types:
        return ""
    if "integer" in types:
        least = keyword(schema, "minimum")
        return least if is_number(least) else 0
    return True if "boolean" in types else [] if "array" in types else {} if "object" in types else ""


def _can_be_said(value: object) -> bool:
    match value:
        case None:
            return False
        case float():
            return is_number(value)
        case dict():
            return all(map(_can_be_said, value.values()))
        case list():
            return all(map(_can_be_said, value))
    return True
