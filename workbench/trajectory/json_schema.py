"""Lookups in the JSON Schemas of tools: references, types, allowed values, properties, and sample values.

Malformed parts of a schema are ignored, because a model provider may still accept the tool. Only references within the
schema are followed, so that reading it never causes a network request."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeGuard

from workbench.trajectory.events import JsonValue

Schema = Mapping[str, JsonValue]

UNIONS = ("anyOf", "oneOf")
"""The keywords with a list of alternative schemas."""

ALTERNATIVES = (*UNIONS, "allOf")
"""The keywords with a list of schemas for the same value."""


def properties_of(schema: Schema) -> Mapping[str, JsonValue]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        return properties
    return {}


def required_names(schema: Schema) -> tuple[str, ...]:
    required = schema.get("required")
    if isinstance(required, list):
        return tuple(name for name in required if isinstance(name, str))
    return ()


def alternatives_of(schema: Schema, *keywords: str) -> Iterator[list[JsonValue]]:
    """Yield the list under each of the keywords that the schema has, such as `anyOf`."""
    for name in keywords:
        if isinstance(listed := schema.get(name), list):
            yield listed


def type_names(schema: Schema) -> tuple[str, ...] | None:
    """Return the names under `type`, or `None` if the schema has no such keyword."""
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if isinstance(named, list):
        return tuple(name for name in named if isinstance(name, str))
    return None


def listed_values(schema: Schema) -> list[JsonValue] | None:
    """Return the value of `const`, otherwise the values of `enum`, or `None` if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    if isinstance(values, list):
        return values
    return None


def target_of(reference: str, root: Schema) -> JsonValue | Schema:
    """Return the target of a reference such as `#/$defs/Color` in `root`, or `None` if there is no such target."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    found: JsonValue | Schema = root
    for part in reference.split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        # JSON Pointer (RFC 6901) escapes `/` as `~1` and `~` as `~0`. The order matters, because `~01` means `~1`.
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found


def resolved(schema: JsonValue | Schema, root: Schema) -> Schema:
    """Return a schema merged with all schemas to which its `$ref` leads in `root`, directly or by further references.

    Keywords beside a reference take precedence over keywords of its target. The result is empty for `true`, for an
    invalid schema, and for a broken reference."""
    beside: dict[str, JsonValue] = {}
    for part in reference_chain(schema, root):
        beside = {**part, **beside}
        beside.pop("$ref", None)
    return beside


def references_of(schema: JsonValue | Schema, root: Schema) -> frozenset[str]:
    """Return the `$ref` of a schema, the `$ref` of its target in `root`, and so on."""
    return frozenset(
        reference for part in reference_chain(schema, root) if isinstance(reference := part.get("$ref"), str)
    )


def reference_chain(schema: JsonValue | Schema, root: Schema) -> Iterator[Schema]:
    """Yield a schema, the target of its `$ref` in `root`, the target of that schema's `$ref`, and so on."""
    seen: set[str] = set()
    while isinstance(schema, Mapping):
        yield schema
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in seen:
            return
        seen.add(reference)
        schema = target_of(reference, root)


def type_of(value: object) -> str:
    """Return JSON Schema's name for the type of a value. A number without a fraction is an `integer`."""
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            if value.is_integer():
                return "integer"
            return "number"
        case Mapping():
            return "object"
        case None:
            return "null"
        case _:
            return "array"


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a finite number within the range of a float."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def type_text(schema: JsonValue | Schema) -> str:
    """Return the type of a schema as short text, or "" if the schema does not restrict it.

    >>> type_text({"type": ["integer", "null"]}), type_text({"type": "array", "items": {"enum": ["on", "off"]}})
    ('integer|null', '("on"|"off")[]')
    """
    if not isinstance(schema, Mapping):
        return ""
    if (choices := listed_values(schema)) is not None:
        return "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    if (names := type_names(schema)) is not None:
        items = type_text(schema.get("items")) if names == ("array",) else ""
        if "|" in items:
            return f"({items})[]"
        if items:
            return f"{items}[]"
        return "|".join(names)
    for options in alternatives_of(schema, *ALTERNATIVES):
        return "|".join(dict.fromkeys(filter(None, map(type_text, options))))
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rsplit("/", 1)[-1]
    return ""


# The values that a JSON Schema allows.

ALL_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
"""JSON Schema's names of types. A schema that allows `number` also allows `integer`."""

TEXT: Schema = {"type": "string"}
"""The schema of a value that is always text, such as the final answer."""

_TYPE_ORDER = ("string", "number", "integer", "boolean", "array", "object", "null")
# References may be recursive. A schema below this depth counts as a schema without restrictions.
_MAX_DEPTH = 12

_MAX_SHOWN_VALUES = 6
"""The most listed values that `type_words` shows."""


def types_of(schema: Schema | None) -> frozenset[str]:
    """Return the types that a schema allows: all types if the schema is `None` or does not restrict them."""
    return _types(schema, schema or {}, _MAX_DEPTH)


def is_text(schema: Schema | None) -> bool:
    """Return whether a schema allows only strings, and possibly null."""
    return types_of(schema) - {"null"} == {"string"}


def is_list(schema: Schema | None) -> bool:
    """Return whether a schema allows only arrays, and possibly null."""
    return types_of(schema) - {"null"} == {"array"}


def allowed_values(schema: Schema | None) -> tuple[object, ...] | None:
    """Return the values that a schema allows, without null, or `None` if it does not list its values.

    A schema lists values by `enum`, `const` or the type boolean."""
    values = _values(schema, schema or {}, _MAX_DEPTH)
    if values is None:
        return None
    return tuple(value for value in values if value is not None)


def items_of(schema: Schema | None) -> Schema:
    """Return the schema of the items of an array, or an empty schema if it is unknown."""
    root = schema or {}
    for part in parts_of(schema, root):
        items = part.get("items")
        if isinstance(items, Mapping):
            return with_definitions(items, root)
    return {}


def field_of(schema: Schema | None, name: str) -> Schema | None:
    """Return the schema of a field of an object, or `None` if it is unknown."""
    root = schema or {}
    for part in parts_of(schema, root):
        field = properties_of(part).get(name)
        if isinstance(field, Mapping):
            return with_definitions(field, root)
    return None


def keyword_value(schema: Schema | None, name: str) -> object:
    """Return the value of a keyword in the first schema of `parts_of` that has the keyword, otherwise `None`."""
    for part in parts_of(schema, schema or {}):
        if name in part:
            return part[name]
    return None


def type_words(schema: Schema | None) -> str:
    """Return the type of a schema in words, such as `integer`, `array of string`, `on | off` or `string or null`."""
    types = types_of(schema)
    if types == ALL_TYPES:
        return "any value"
    values = allowed_values(schema)
    if values and types - {"null"} != {"boolean"}:
        shown = [_value_word(value) for value in values[:_MAX_SHOWN_VALUES]]
        if len(values) > _MAX_SHOWN_VALUES:
            shown.append("…")
        if "null" in types:
            shown.append("null")
        return " | ".join(shown)
    shown = _words_of(types)
    if "array" in types and (inner := types_of(items_of(schema))) != ALL_TYPES:
        shown[shown.index("array")] = f"array of {' or '.join(_words_of(inner))}"
    return " or ".join(shown) or "nothing"


def _value_word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _words_of(types: frozenset[str]) -> list[str]:
    # The type "number" includes integers, so "integer" is omitted beside it.
    if "number" in types:
        types = types - {"integer"}
    return [name for name in _TYPE_ORDER if name in types]


def with_definitions(schema: Schema, root: Schema) -> Schema:
    """Return a part of the schema `root` with the dialect and the definitions of `root`, so that it can stand alone."""
    definitions = {}
    for name in ("$schema", "$defs", "definitions"):
        if name in root and name not in schema:
            definitions[name] = root[name]
    if definitions:
        return {**schema, **definitions}
    return schema


def _types(schema: object, root: Schema, depth: int) -> frozenset[str]:
    if schema is False:
        return frozenset()
    if not isinstance(schema, Mapping) or depth == 0:
        return ALL_TYPES
    allowed = ALL_TYPES
    if (names := type_names(schema)) is not None:
        allowed &= set(names)
        if "number" in names:
            allowed |= {"integer"}
    if (values := listed_values(schema)) is not None:
        allowed &= set(map(type_of, values))
    for kinds in alternatives_of(schema, *UNIONS):
        allowed &= frozenset[str]().union(*(_types(kind, root, depth - 1) for kind in kinds))
    for other in _all_of(schema, root):
        allowed &= _types(other, root, depth - 1)
    return allowed


def _values(schema: object, root: Schema, depth: int) -> list[JsonValue] | None:
    if not isinstance(schema, Mapping) or depth == 0:
        return None
    if (values := listed_values(schema)) is not None:
        return values
    # A union has a list of values only if every alternative has a list of values.
    for kinds in filter(None, alternatives_of(schema, *UNIONS)):
        found: list[JsonValue] = []
        for kind in kinds:
            some = _values(kind, root, depth - 1)
            if some is None:
                break
            found += some
        else:
            return found
    for other in _all_of(schema, root):
        if (listed := _values(other, root, depth - 1)) is not None:
            return listed
    types = _types(schema, root, depth)
    if types == {"null"}:
        return [None]
    if types - {"null"} == {"boolean"}:
        return [True, False]
    return None


def parts_of(schema: object, root: Schema, depth: int = _MAX_DEPTH) -> Iterable[Schema]:
    """Yield a schema, and the schemas that each of its values except null must also match.

    These are the target of `$ref` in `root`, and the schemas in `allOf`. If an `anyOf` or `oneOf` has a single
    alternative besides null, as schemas of nullable parameters usually have, this alternative is yielded too."""
    if not isinstance(schema, Mapping) or depth == 0:
        return
    yield schema
    for other in _all_of(schema, root):
        yield from parts_of(other, root, depth - 1)
    for kinds in alternatives_of(schema, *UNIONS):
        some = [kind for kind in kinds if _types(kind, root, depth - 1) != {"null"}]
        if len(some) == 1:
            yield from parts_of(some[0], root, depth - 1)


def _all_of(schema: Schema, root: Schema) -> Iterable[object]:
    if isinstance(reference := schema.get("$ref"), str):
        # `root` may be a part of a schema with the definitions of the whole (`with_definitions`). There, `#` would
        # refer to the part in place of the whole, so it is ignored.
        yield None if reference == "#" else target_of(reference, root)
    yield from chain.from_iterable(alternatives_of(schema, "allOf"))


def suggested_value(schema: Schema | None) -> object | None:
    """Return the first of `suggested_values`, or `None` if there is none."""
    return next(iter(suggested_values(schema)), None)


def suggested_values(schema: Schema | None) -> tuple[object, ...]:
    """Return the schema's default, allowed values and examples. Values that TOML cannot express are omitted."""
    suggested = [keyword_value(schema, "default"), *(allowed_values(schema) or ()), keyword_value(schema, "example")]
    examples = keyword_value(schema, "examples")
    if isinstance(examples, list):
        suggested += examples
    return tuple(value for value in suggested if _is_writable(value))


def sample_value(schema: Schema | None) -> object:
    """Return a sample value for a schema: a suggested value, otherwise a simple value of its type."""
    suggested = suggested_value(schema)
    if suggested is not None:
        return suggested
    types = types_of(schema)
    if "string" in types:
        return ""
    if "integer" in types:
        least = keyword_value(schema, "minimum")
        if is_number(least):
            return least
        return 0
    if "boolean" in types:
        return True
    if "array" in types:
        return []
    if "object" in types:
        return {}
    return ""


def _is_writable(value: object) -> bool:
    # TOML has no null, and a suite may hold only finite numbers.
    match value:
        case None:
            return False
        case float():
            return is_number(value)
        case dict():
            return all(map(_is_writable, value.values()))
        case list():
            return all(map(_is_writable, value))
    return True
