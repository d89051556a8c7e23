"""Recognise JSON Schemas that are certainly valid, and values that they certainly accept, without jsonschema, whose
import takes longer than a whole run, and which takes longer for each value too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MAX_LEVELS = 20
"""Deeper schemas are left to jsonschema."""


def is_plainly_valid(schema: object) -> bool:
    """Returns whether a schema is valid by draft 2020-12, as far as its commonest keywords tell. Where it returns false
    the schema may still be valid: only jsonschema can tell."""
    return _is_schema(schema, _MAX_LEVELS)


def _is_schema(schema: object, levels: int) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, Mapping) or levels == 0:
        return False
    for key, value in schema.items():
        if key in _VALUES:
            is_valid = _VALUES[key](value)
        elif key in _SCHEMAS:
            is_valid = _is_schema(value, levels - 1)
        elif key in _LISTS_OF_SCHEMAS:
            is_valid = isinstance(value, list) and value != [] and _are_schemas(value, levels - 1)
        elif key in _TABLES_OF_SCHEMAS:
            is_valid = isinstance(value, Mapping) and _are_schemas(value.values(), levels - 1)
        else:
            is_valid = False
        if not is_valid:
            return False
    return True


def _are_schemas(values: Iterable[object], levels: int) -> bool:
    return all(_is_schema(value, levels) for value in values)


def _is_type(value: object) -> bool:
    if isinstance(value, str):
        return value in _IS_OF_TYPE
    return _are_different_texts(value) and value != [] and all(each in _IS_OF_TYPE for each in _listed(value))


def _are_different_texts(value: object) -> bool:
    texts = _listed(value)
    return isinstance(value, list) and all(isinstance(each, str) for each in texts) and len(set(texts)) == len(texts)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_anything(value: object) -> bool:
    return True


_VALUES: Mapping[str, Callable[[object], bool]] = {
    "type": _is_type,
    "required": _are_different_texts,
    **dict.fromkeys(("title", "description", "format"), _is_text),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly", "uniqueItems"), _is_flag),
    **dict.fromkeys(("enum", "examples"), _is_list),
    **dict.fromkeys(("const", "default"), _is_anything),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains"), _is_count
    ),
}
"""Keywords by what their values must be."""

_SCHEMAS = frozenset({"items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"})
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_TABLES_OF_SCHEMAS = frozenset({"properties", "$defs"})
"""Keywords that hold schemas, by how."""


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


_IS_OF_TYPE: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _is_of_type(types: Any, value: object) -> bool:
    return any(_IS_OF_TYPE[each](value) for each in ([types] if isinstance(types, str) else types))


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
