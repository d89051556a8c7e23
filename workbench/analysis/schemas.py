"""Reads a tool's JSON Schema as a person would: its parameters, nested ones too, and their types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from workbench.trajectory.messages import JsonValue

Schema = Mapping[str, JsonValue]

DEEPEST = 8
"""Levels of nesting that are read: no model fills in more, and a schema may refer to itself endlessly."""

MOST_PARAMETERS = 2_000
"""Parameters of one tool that are read: references can make a short schema endlessly wide."""

ALTERNATIVES = ("anyOf", "oneOf", "allOf")

_SAYS_TYPE = ("type", "enum", "const", "not", "if", *ALTERNATIVES)


@dataclass(frozen=True)
class Parameter:
    """One parameter. `path` is its place, such as `to[].name`; `schema` is its schema, references followed, where a
    description and default next to a reference take precedence. `depth` counts from 0; an `item` is the element of a
    list."""

    path: str
    name: str
    schema: Schema
    required: bool = False
    depth: int = 0
    item: bool = False

    @property
    def description(self) -> str:
        """Its description, outside its alternatives or in one of them."""
        return _description(self.schema)

    @property
    def has_type(self) -> bool:
        """Whether the schema restricts its values to a type."""
        return any(key in self.schema for key in _SAYS_TYPE)


def parameters_of(schema: Schema) -> tuple[Parameter, ...]:
    """Returns the parameters of a tool, each followed by those inside it, at most `MOST_PARAMETERS` of them."""
    found: dict[str, Parameter] = {}
    for parameter in islice(_inside(schema, schema, "", 0, DEEPEST), MOST_PARAMETERS):
        found.setdefault(parameter.path, parameter)  # alternatives may each have one of the same name
    return tuple(found.values())


def required_names(schema: Schema) -> tuple[str, ...]:
    """Returns the names under `required`."""
    required = schema.get("required")
    return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


def properties_of(schema: Schema) -> Mapping[str, JsonValue]:
    """Returns the schemas under `properties`, nothing when that is no object."""
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def resolved(schema: JsonValue | Schema, root: Schema) -> Schema:
    """Returns a schema with a reference into `root` followed; `{}` for `true`, for invalid schemas, and for broken
    references."""
    seen: set[str] = set()
    beside: dict[str, JsonValue] = {}
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        beside = {**{key: value for key, value in schema.items() if key != "$ref"}, **beside}
        schema = _target(reference, root)
    last = schema if isinstance(schema, Mapping) else {}
    return {**{key: value for key, value in last.items() if key != "$ref"}, **beside}


def type_text(schema: JsonValue | Schema) -> str:
    """Returns `string`, `integer|null`, `"on"|"off"`, `string[]`; empty where the type is open. Texts are as
    written."""
    if not isinstance(schema, Mapping):
        return ""
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if isinstance(choices := schema.get("enum"), list):
        return "|".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    named = schema.get("type")
    if named == "array":
        items = type_text(schema.get("items"))
        return f"({items})[]" if "|" in items else f"{items}[]" if items else "array"
    if isinstance(named, str):
        return named
    if isinstance(named, list):
        return "|".join(map(str, named))
    for key in ALTERNATIVES:
        if isinstance(options := schema.get(key), list):
            return "|".join(dict.fromkeys(filter(None, map(type_text, options))))
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rsplit("/", 1)[-1]
    return ""


def _inside(schema: Schema, root: Schema, path: str, depth: int, levels: int, sure: bool = True) -> Iterator[Parameter]:
    """Returns the parameters inside a schema, `levels` deep. Not `sure`: it is one of several alternatives, and
    requires nothing."""
    if not levels:
        return
    required = required_names(schema) if sure else ()
    for name, written in properties_of(schema).items():
        place = f"{path}.{name}" if path else name
        parameter = Parameter(place, name, resolved(written, root), name in required, depth)
        yield parameter
        yield from _inside(parameter.schema, root, place, depth + 1, levels - 1)
    if "items" in schema:
        item = Parameter(f"{path}[]", "", resolved(schema["items"], root), False, depth, item=True)
        yield item
        yield from _inside(item.schema, root, item.path, depth, levels - 1)
    for key in ALTERNATIVES:
        options = schema.get(key)
        for option in options if isinstance(options, list) else ():
            yield from _inside(resolved(option, root), root, path, depth, levels - 1, sure and key == "allOf")


def _description(schema: Schema) -> str:
    said = schema.get("description")
    if isinstance(said, str) and said.strip():
        return said
    options = (option for key in ALTERNATIVES if isinstance(listed := schema.get(key), list) for option in listed)
    return next(filter(None, (_description(option) for option in options if isinstance(option, dict))), "")


def _target(reference: str, root: Schema) -> JsonValue:
    if reference == "#":
        return dict(root)
    if not reference.startswith("#/"):
        return None
    found: JsonValue = dict(root)
    for part in reference[2:].split("/"):
        if not isinstance(found, dict):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found
