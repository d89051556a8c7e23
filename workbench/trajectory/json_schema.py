"""Reads JSON Schemas of tools: references, alternatives, types, listed values, and the names of properties.

Any JSON can be read: malformed parts count as absent, and only references into the same schema are followed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeGuard

from workbench.trajectory.events import JsonValue

Schema = Mapping[str, JsonValue]

UNIONS = ("anyOf", "oneOf")
"""The keywords that list schemas of which one applies."""

ALTERNATIVES = (*UNIONS, "allOf")
"""The keywords that list schemas for the same value."""


def properties_of(schema: Schema) -> Mapping[str, JsonValue]:
    """Return the schemas under `properties` by name."""
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        return properties
    return {}


def required_names(schema: Schema) -> tuple[str, ...]:
    """Return the names under `required`."""
    required = schema.get("required")
    if isinstance(required, list):
        return tuple(name for name in required if isinstance(name, str))
    return ()


def alternatives_of(schema: Schema, *keywords: str) -> Iterator[list[JsonValue]]:
    """Yield the list of schemas under each of the keywords."""
    return (listed for keyword in keywords if isinstance(listed := schema.get(keyword), list))


def type_names(schema: Schema) -> tuple[str, ...] | None:
    """Return the names under `type`, `None` if the schema has no such keyword."""
    named = schema.get("type")
    if isinstance(named, str):
        return (named,)
    if isinstance(named, list):
        return tuple(name for name in named if isinstance(name, str))
    return None


def listed_values(schema: Schema) -> list[JsonValue] | None:
    """Return the value of `const`, otherwise those of `enum`, `None` if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def target_of(reference: str, root: Schema) -> JsonValue | Schema:
    """Return the target of a reference such as `#/$defs/Color` in `root`, `None` if there is none."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    found: JsonValue | Schema = root
    for part in reference.split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found


def resolved(schema: JsonValue | Schema, root: Schema) -> Schema:
    """Return a schema with its reference into `root` followed, and further ones.

    Keywords next to a reference take precedence. Returns an empty schema for `true`, for invalid schemas, and for
    broken references."""
    seen: set[str] = set()
    beside: dict[str, JsonValue] = {}
    while isinstance(schema, Mapping):
        beside = {**schema, **beside}
        beside.pop("$ref", None)
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in seen:
            break
        seen.add(reference)
        schema = target_of(reference, root)
    return beside


def type_of(value: object) -> str:
    """Return JSON Schema's name for a value's type.

    A number without a fraction is an `integer`."""
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
    """Return `string`, `integer|null`, `"on"|"off"`, `string[]`; empty where the type is open.

    Texts are as written."""
    if not isinstance(schema, Mapping):
        return ""
    if (choices := listed_values(schema)) is not None:
        return "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    if (names := type_names(schema)) is not None:
        items = type_text(schema.get("items")) if names == ("array",) else ""
        if "|" in items:
            return f"({items})[]"
        return f"{items}[]" if items else "|".join(names)
    for options in alternatives_of(schema, *ALTERNATIVES):
        return "|".join(dict.fromkeys(filter(None, map(type_text, options))))
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rsplit("/", 1)[-1]
    return ""


# The values that a JSON Schema allows, in the words of suites, and sample values.

ALL_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
"""JSON Schema's names of types. A schema that allows `number` also allows `integer`."""

TEXT: Schema = {"type": "string"}
"""The schema of anything that is always text, such as the final answer."""

_WORDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true/false",
    "array": "list",
    "object": "table",
    "null": "null",
}
_DEEPEST = 12
_MANY = 6


def types_of(schema: Schema | None) -> frozenset[str]:
    """Return the types that a schema allows, all of them if it is unknown or does not restrict them."""
    return _types(schema, schema or {}, _DEEPEST)


def is_text(schema: Schema | None) -> bool:
    """Return whether a schema allows only text, ignoring null, which cannot be typed."""
    return types_of(schema) - {"null"} == {"string"}


def is_list(schema: Schema | None) -> bool:
    """Return whether a schema allows only lists, ignoring null."""
    return types_of(schema) - {"null"} == {"array"}


def allowed_values(schema: Schema | None) -> tuple[object, ...] | None:
    """Return the values that a schema lists (`enum`, `const`, true and false) without null, `None` if it lists none."""
    values = _values(schema, schema or {}, _DEEPEST)
    if values is None:
        return None
    return tuple(value for value in values if value is not None)


def items_of(schema: Schema | None) -> Schema:
    """Return the schema of a list's items, empty if unknown."""
    root = schema or {}
    for part in parts_of(schema, root):
        items = part.get("items")
        if isinstance(items, Mapping):
            return with_definitions(items, root)
    return {}


def keyword(schema: Schema | None, name: str) -> object:
    """Return the value of a keyword, through references and a nullable's single alternative, `None` if absent."""
    return next((part[name] for part in parts_of(schema, schema or {}) if name in part), None)


def type_words(schema: Schema | None) -> str:
    """Describe a schema's type in a few words: `text`, `whole number`, `list of text`, `on | off`, `text or null`."""
    types = types_of(schema)
    if types == ALL_TYPES:
        return "any value"
    values = allowed_values(schema)
    if values and types - {"null"} != {"boolean"}:
        shown = [_value_word(value) for value in values[:_MANY]]
        if len(values) > _MANY:
            shown.append("…")
        if "null" in types:
            shown.append("null")
        return " | ".join(shown)
    shown = _words_of(types)
    if "array" in types and (inner := types_of(items_of(schema))) != ALL_TYPES:
        shown[shown.index("list")] = f"list of {' or '.join(_words_of(inner))}"
    return " or ".join(shown) or "nothing"


def _value_word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _words_of(types: frozenset[str]) -> list[str]:
    """Return the words for types in a fixed order; a number may be whole without saying so."""
    if "number" in types:
        types = types - {"integer"}
    return [word for name, word in _WORDS.items() if name in types]


def with_definitions(schema: Schema, root: Schema) -> Schema:
    """Return a part of a schema as a schema of its own, with the definitions of the whole."""
    definitions = {}
    for name in ("$defs", "definitions"):
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
    for kinds in filter(None, alternatives_of(schema, *UNIONS)):
        found: list[JsonValue] = []
        for kind in kinds:
            some = _values(kind, root, depth - 1)
            if some is None:
                break
            found += some
        else:  # every alternative lists its values
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


def parts_of(schema: object, root: Schema, depth: int = _DEEPEST) -> Iterable[Schema]:
    """Yield the schema and everything that applies with it: its `$ref`, `allOf`, and its only non-null alternative.

    `root` resolves references."""
    if not isinstance(schema, Mapping) or depth == 0:
        return
    yield schema
    for other in _all_of(schema, root):
        yield from parts_of(other, root, depth - 1)
    for kinds in alternatives_of(schema, *UNIONS):
        some = []
        for kind in kinds:
            if _types(kind, root, depth - 1) != {"null"}:
                some.append(kind)
        if len(some) == 1:
            yield from parts_of(some[0], root, depth - 1)


def _all_of(schema: Schema, root: Schema) -> Iterable[object]:
    if isinstance(reference := schema.get("$ref"), str):
        # Parts of a schema carry its definitions only, so the whole, which `#` means, is not there.
        yield None if reference == "#" else target_of(reference, root)
    yield from chain.from_iterable(alternatives_of(schema, "allOf"))


def suggested_value(schema: Schema | None) -> object | None:
    """Return the first of `suggested_values`, `None` if there is none."""
    return next(iter(suggested_values(schema)), None)


def suggested_values(schema: Schema | None) -> tuple[object, ...]:
    """Return the schema's default, its listed values and its examples, without those that TOML cannot express."""
    suggested = [keyword(schema, "default"), *(allowed_values(schema) or ()), keyword(schema, "example")]
    examples = keyword(schema, "examples")
    if isinstance(examples, list):
        suggested += examples
    return tuple(value for value in suggested if _is_writable(value))


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
    if "boolean" in types:
        return True
    if "array" in types:
        return []
    return {} if "object" in types else ""


def _is_writable(value: object) -> bool:
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
