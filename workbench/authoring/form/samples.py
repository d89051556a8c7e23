"""A value to start from, as a JSON Schema suggests it."""

from __future__ import annotations

from workbench.authoring.form.json_types import Schema, allowed_values, is_number, keyword, types_of


def suggested_value(schema: Schema | None) -> object | None:
    """The schema's default, else its first listed value, else its first example; `None` when it has none of them that
    a suite can say."""
    listed = allowed_values(schema)
    examples = keyword(schema, "examples")
    others = examples if isinstance(examples, list) else []
    suggested = (keyword(schema, "default"), *(listed or ()), keyword(schema, "example"), *others)
    return next((value for value in suggested if _can_be_said(value)), None)


def sample_value(schema: Schema | None) -> object:
    """The value that the schema suggests, or a plain one of its type: an empty text, the least number allowed."""
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
