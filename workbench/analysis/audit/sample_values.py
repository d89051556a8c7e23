"""Constructs values that miss a check, as a careless agent would send them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from workbench.checks.check import Check, NeverHoldsError, UnknownSampleError
from workbench.checks.patterns import matching_text
from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError
from workbench.checks.text_kinds import ANY_TEXT
from workbench.trajectory.events import JsonValue
from workbench.trajectory.json_schema import (
    ALTERNATIVES,
    UNIONS,
    Schema,
    alternatives_of,
    is_number,
    listed_values,
    properties_of,
    required_names,
    resolved,
    type_names,
)

# Constructs values as a JSON Schema describes them.

TEXTS = (
    "something else",
    "2001-02-03",
    "2001-02-03T04:05:06Z",
    "someone@example.test",
    "https://example.test/else",
    "00000000-0000-4000-8000-000000000000",
    "zz",
)
"""Texts for schemas that ask for a format."""

_DEEPEST = 6
"""Levels of nesting that are filled: a schema may refer to itself endlessly."""

_MAX_TRIED = 60


def value_of(schema: Schema, root: Schema) -> JsonValue:
    """Return a value that a schema inside `root` accepts, its default or an example if it has one. Where no candidate
    is accepted, or the schema is broken, return the first one."""
    candidates = list(islice(candidates_of(schema, root), _MAX_TRIED))
    return next((value for value in candidates if accepts(schema, root, value)), candidates[0])


def accepts(schema: Schema, root: Schema, value: JsonValue) -> bool:
    """Return whether a schema inside `root` accepts a value; true where a broken schema cannot tell."""
    around: dict[str, JsonValue] = {key: root[key] for key in ("$schema", "$defs", "definitions") if key in root}
    try:
        return not ArgumentSchema({**around, "properties": {"value": dict(schema)}}).violations({"value": value})
    except BrokenSchemaError:
        return True


def required_arguments(schema: Schema) -> dict[str, JsonValue]:
    """Return a value for each argument that a tool's schema requires."""
    properties = properties_of(schema)
    return {name: value_of(resolved(properties.get(name, {}), schema), schema) for name in required_names(schema)}


def all_arguments(schema: Schema) -> dict[str, JsonValue]:
    """Return a value for each argument that a tool's schema lists or requires."""
    listed = {name: value_of(resolved(each, schema), schema) for name, each in properties_of(schema).items()}
    return {**required_arguments(schema), **listed}


def candidates_of(schema: Schema, root: Schema, depth: int = 0) -> Iterator[JsonValue]:
    """Yield values that a schema may accept, the most typical ones first; at least one."""
    if "default" in schema:
        yield schema["default"]
    examples = schema.get("examples")
    if isinstance(examples, list):
        yield from examples
    choices = listed_values(schema)
    if choices:
        yield from choices
        return
    schema = _merged(schema, root, depth)
    for options in alternatives_of(schema, "anyOf", "oneOf"):
        others = {key: value for key, value in schema.items() if key not in ALTERNATIVES}
        for option in options if depth < _DEEPEST else ():
            yield from candidates_of({**others, **resolved(option, root)}, root, depth + 1)
    for kind in type_names(schema) or _implied_types(schema):
        yield from _of_type(kind, schema, root, depth)
    yield ANY_TEXT


def _merged(schema: Schema, root: Schema, depth: int) -> Schema:
    """Return a schema with the keywords of its `allOf` beside its own."""
    merged: dict[str, JsonValue] = dict(schema)
    for options in alternatives_of(schema, "allOf"):
        for option in options if depth < _DEEPEST else ():
            part = resolved(option, root)
            properties = {**properties_of(merged), **properties_of(part)}
            required = dict.fromkeys((*required_names(merged), *required_names(part)))
            merged = {**part, **merged, "properties": properties, "required": list(required)}
    return merged


def _implied_types(schema: Schema) -> Sequence[str]:
    """Return the types that the keywords of a schema without `type` are about."""
    if "properties" in schema or "required" in schema:
        return ("object",)
    if "items" in schema or "minItems" in schema:
        return ("array",)
    if "minimum" in schema or "maximum" in schema or "multipleOf" in schema:
        return ("number",)
    return ("string",)


def _of_type(kind: str, schema: Schema, root: Schema, depth: int) -> Iterator[JsonValue]:
    match kind:
        case "boolean":
            yield from (True, False)
        case "integer" | "number":
            yield from _numbers(schema)
        case "string":
            yield from _texts(schema)
        case "array":
            least = schema.get("minItems")
            count = least if isinstance(least, int) else 0
            if depth < _DEEPEST and count <= _MAX_TRIED:
                items = list(islice(candidates_of(resolved(schema.get("items", {}), root), root, depth + 1), count))
                yield [items[index % len(items)] for index in range(count)]
                yield items[:1] * count
        case "object":
            required = required_names(schema) if depth < _DEEPEST else ()
            inner = {name: resolved(properties_of(schema).get(name, {}), root) for name in required}
            yield {name: next(_accepted(each, root, depth + 1)) for name, each in inner.items()}
        case "null":
            yield None
        case _:
            pass


def _accepted(schema: Schema, root: Schema, depth: int) -> Iterator[JsonValue]:
    candidates = list(islice(candidates_of(schema, root, depth), _MAX_TRIED))
    yield from (value for value in candidates if accepts(schema, root, value))
    yield candidates[0]


def _numbers(schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    for bound, step in (("minimum", 0), ("exclusiveMinimum", 1), ("maximum", 0), ("exclusiveMaximum", -1)):
        limit = schema.get(bound)
        if is_number(limit):
            yield limit + step
    multiple = schema.get("multipleOf")
    if is_number(multiple) and multiple > 0:
        lowest = schema.get("minimum")
        yield (lowest // multiple + 1) * multiple if is_number(lowest) else multiple
    low, high = (schema.get(each, schema.get(f"exclusive{each.title()}")) for each in ("minimum", "maximum"))
    if is_number(low) and is_number(high):
        yield (low + high) / 2
    yield from (0, 1, 10)


def _texts(schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and (text := matching_text(pattern)) is not None:
        yield text
        yield text + text
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and least <= 10_000:
        yield "x" * least
        yield ANY_TEXT.ljust(least, "x")
    yield ANY_TEXT
    yield from TEXTS
    if isinstance(most, int):
        yield "x" * min(most, 1)


def other_values(check: Check, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    """Yields values that a schema may allow and that the check refuses, the most different ones first. Python functions
    and judges are not asked. Raises CheckError for a check that needs them."""
    try:
        met = check.samples()[0]
    except (NeverHoldsError, UnknownSampleError):
        met = None
    for value in _different(met, schema):
        if not check.holds(value):
            yield value


def _different(met: JsonValue, schema: Mapping[str, JsonValue]) -> Iterator[JsonValue]:
    choices = schema.get("enum")
    if isinstance(choices, list) or "const" in schema:
        yield from choices if isinstance(choices, list) else ()
        return
    for option in (schema, *_alternatives(schema)):
        named = option.get("type") or _TYPE_OF.get(type(met), "string")
        for kind in named if isinstance(named, list) else [named]:
            match kind:
                case "boolean":
                    yield from (True, False)
                case "integer" | "number":
                    number = met if isinstance(met, int | float) and math.isfinite(met) else 0
                    bounds = (option.get("minimum"), option.get("maximum"))
                    yield from (number + 1000, number - 1000, number + 1, number - 1)
                    yield from (bound for bound in bounds if isinstance(bound, int | float))
                case "string":
                    yield from TEXTS
                case "array":
                    yield []
                    yield [*met, *met] if isinstance(met, list) else ["something else"]
                case "object":
                    yield {}
                case _:
                    pass


def _alternatives(schema: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    for options in alternatives_of(schema, *UNIONS):
        yield from (option for option in options if isinstance(option, Mapping))


_TYPE_OF: dict[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
