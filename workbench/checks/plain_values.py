"""Recognises values that a JSON Schema certainly accepts, without jsonschema, whose import takes longer than a whole
run, and which takes longer for each value too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.checks.plain_schemas import is_plainly_valid


def plainly_accepts(schema: Mapping[str, Any], value: object) -> bool:
    """Returns whether a schema is valid and accepts a value, as far as its commonest keywords tell. Where it returns
    false the schema may still do so: only jsonschema can tell."""
    return is_plainly_valid(schema) and accepts(schema, value)


def accepts(schema: object, value: object) -> bool:
    """Returns as `plainly_accepts` does for a schema that is plainly valid."""
    if not isinstance(schema, Mapping):
        return schema is True
    if "additionalProperties" in schema and not _accepts_others(schema, value):
        return False
    return all(key in _SAY_NOTHING or (key in _KEYWORDS and _KEYWORDS[key](of, value)) for key, of in schema.items())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _is_of_type(types: Any, value: object) -> bool:
    return any(_TYPES[each](value) for each in ([types] if isinstance(types, str) else types))


def _accepts_properties(properties: Any, value: object) -> bool:
    return not isinstance(value, dict) or all(
        name not in value or accepts(schema, value[name]) for name, schema in properties.items()
    )


def _accepts_others(schema: Mapping[str, Any], value: object) -> bool:
    known = schema.get("properties", {})
    return not isinstance(value, dict) or all(
        name in known or accepts(schema["additionalProperties"], each) for name, each in value.items()
    )


_KEYWORDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _is_of_type,
    # Texts alone: numbers that JSON holds equal, and tables, are left to jsonschema.
    "enum": lambda listed, value: isinstance(value, str) and value in listed,
    "const": lambda only, value: isinstance(value, str) and value == only,
    "properties": _accepts_properties,
    "required": lambda names, value: not isinstance(value, dict) or all(name in value for name in names),
    "items": lambda schema, value: not isinstance(value, list) or all(accepts(schema, each) for each in value),
    "anyOf": lambda schemas, value: any(accepts(schema, value) for schema in schemas),
    "allOf": lambda schemas, value: all(accepts(schema, value) for schema in schemas),
    "minimum": lambda bound, value: not _is_number(value) or value >= bound,
    "maximum": lambda bound, value: not _is_number(value) or value <= bound,
    "exclusiveMinimum": lambda bound, value: not _is_number(value) or value > bound,
    "exclusiveMaximum": lambda bound, value: not _is_number(value) or value < bound,
    "minLength": lambda least, value: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda most, value: not isinstance(value, str) or len(value) <= most,
    "minItems": lambda least, value: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda most, value: not isinstance(value, list) or len(value) <= most,
}
"""What a keyword asks of a value; `additionalProperties` asks more of the schema than itself."""

_SAY_NOTHING = frozenset(
    {
        *("title", "description", "default", "examples", "format", "deprecated", "readOnly", "writeOnly"),
        *("$defs", "additionalProperties"),
    }
)
"""Keywords that refuse no value: formats are not checked."""
