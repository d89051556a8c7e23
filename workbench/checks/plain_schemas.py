"""Recognises JSON Schemas that are certainly valid, without jsonschema, whose import takes longer than a whole run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

_MOST_LEVELS = 20
"""Deeper schemas are left to jsonschema."""

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def is_plainly_valid(schema: object) -> bool:
    """Returns whether a schema is valid by draft 2020-12, as far as its commonest keywords tell. Where it returns false
    the schema may still be valid: only jsonschema can tell."""
    return _is_schema(schema, _MOST_LEVELS)


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
        return value in _TYPES
    return _are_different_texts(value) and value != [] and all(each in _TYPES for each in _listed(value))


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
