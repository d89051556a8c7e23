"""Reads a tool's JSON Schema as a person would: its parameters, nested ones too, and their types."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from workbench.dataclasses import dataclass
from workbench.limits import MAX_SCHEMA_PARAMETERS
from workbench.trajectory.json_schema import (
    ALTERNATIVES,
    Schema,
    alternatives_of,
    properties_of,
    required_names,
    resolved,
)

DEEPEST = 8
"""Levels of nesting that are read: no model fills in more, and a schema may refer to itself endlessly."""

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
    """Returns the parameters of a tool, each followed by those inside it, at most `MAX_SCHEMA_PARAMETERS` of them."""
    found: dict[str, Parameter] = {}
    for parameter in islice(_inside(schema, schema, "", 0, DEEPEST), MAX_SCHEMA_PARAMETERS):
        found.setdefault(parameter.path, parameter)  # alternatives may each have one of the same name
    return tuple(found.values())


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
        for option in chain.from_iterable(alternatives_of(schema, key)):
            yield from _inside(resolved(option, root), root, path, depth, levels - 1, sure and key == "allOf")


def _description(schema: Schema) -> str:
    description = schema.get("description")
    if isinstance(description, str) and description.strip():
        return description
    options = chain.from_iterable(alternatives_of(schema, *ALTERNATIVES))
    return next(filter(None, (_description(option) for option in options if isinstance(option, dict))), "")
