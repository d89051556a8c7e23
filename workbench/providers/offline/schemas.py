"""Reads the parameters of a tool from its JSON Schema, whatever else the schema holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

from workbench.providers.offline.words import split_name, stem, word_set
from workbench.trajectory.messages import JsonValue

Role = Literal[
    "choice",
    "number",
    "flag",
    "list",
    "object",
    "moment",
    "email",
    "url",
    "zone",
    "person",
    "id",
    "path",
    "expression",
    "query",
    "prose",
    "opaque",
    "other",
]
"""What a parameter asks for, as far as its type, name, format and description tell."""

_MOST_PARAMETERS = 100
_MOST_REFERENCES = 10

_ROLES_BY_NAME: dict[Role, frozenset[str]] = {
    "email": word_set("email mail recipient cc bcc"),
    "url": word_set("url uri link href website"),
    "zone": word_set("timezone tz zone"),
    "moment": word_set("date datetime time deadline due when timestamp day since until"),
    "person": word_set("user username handle login assignee member author reviewer person channel"),
    "id": word_set("id identifier key sku sha hash uuid ref"),
    "path": word_set("path file filename folder directory"),
    "expression": word_set("expression formula equation"),
    "query": word_set("query q search keyword term"),
    "prose": word_set(
        """message text body content comment note description title subject summary question prompt caption headline
        instruction reason detail topic"""
    ),
    "opaque": word_set("input value data string argument payload"),
}
_ROLE_BY_STEM: dict[str, Role] = {stem(word): role for role, words in _ROLES_BY_NAME.items() for word in words}
_ZONE_STEMS = frozenset(stem(word) for word in _ROLES_BY_NAME["zone"])
_ROLE_BY_FORMAT: dict[str, Role] = {
    "date": "moment",
    "date-time": "moment",
    "time": "moment",
    "email": "email",
    "uri": "url",
    "url": "url",
    "uuid": "id",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `types` are JSON types without null, empty when the schema names none; `schema` has its references
    resolved and a nullable union replaced by the branch that is not null. `words` are the stems of the name."""

    name: str
    schema: Mapping[str, JsonValue]
    types: frozenset[str]
    required: bool
    choices: tuple[JsonValue, ...]
    words: tuple[str, ...]
    role: Role

    @property
    def description(self) -> str:
        """The schema's description, in lower case."""
        text = self.schema.get("description")
        return text[:1000].lower() if isinstance(text, str) else ""

    def fits(self, value: JsonValue) -> bool:
        """Returns whether a value has the type and keeps the simple bounds of the schema."""
        if self.choices and not any(_same(value, choice) for choice in self.choices):
            return False
        if self.types and not any(_is_type(value, one) for one in self.types):
            return False
        if isinstance(value, str):
            return self._within(len(value), "minLength", "maxLength")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._within(value, "minimum", "maximum")
        return True

    def _within(self, size: float, least: str, most: str) -> bool:
        lower, upper = self.schema.get(least), self.schema.get(most)
        return not (_is_number(lower) and size < lower) and not (_is_number(upper) and size > upper)


def parameters_of(schema: JsonValue, root: Mapping[str, JsonValue] | None = None) -> list[Parameter]:
    """Returns the parameters of an object's schema, in its order; none when it has no readable properties."""
    if not isinstance(schema, dict):
        return []
    root = schema if root is None else root
    resolved = _resolved(schema, root)
    properties = resolved.get("properties")
    if not isinstance(properties, dict):
        return []
    listed = resolved.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return [
        parameter_of(name, one, name in required, root) for name, one in list(properties.items())[:_MOST_PARAMETERS]
    ]


def parameter_of(name: str, schema: JsonValue, required: bool, root: Mapping[str, JsonValue]) -> Parameter:
    """Returns one parameter from its schema, which may be anything."""
    resolved = _resolved(schema, root)
    types = _types(resolved)
    choices = _choices(resolved)
    words = tuple(stem(word) for word in split_name(name))
    parameter = Parameter(name, resolved, types, required, choices, words, "other")
    return Parameter(name, resolved, types, required, choices, words, _role(parameter))


def _resolved(schema: JsonValue, root: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Follow local references and take the first branch of a union that is not null."""
    merged: dict[str, JsonValue] = dict(schema) if isinstance(schema, dict) else {}
    for _ in range(_MOST_REFERENCES):
        branch = _branch(merged, root)
        if branch is None:
            break
        outer = {key: value for key, value in merged.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")}
        merged = {**branch, **outer}
    return merged


def _branch(schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue]) -> dict[str, JsonValue] | None:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: JsonValue = dict(root)
        for part in reference.removeprefix("#").strip("/").split("/") if reference.startswith("#/") else ["?"]:
            target = target.get(part) if isinstance(target, dict) else None
        return target if isinstance(target, dict) else {}
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            usable = [branch for branch in branches if isinstance(branch, dict) and branch.get("type") != "null"]
            return usable[0] if usable else {}
    return None


def _types(schema: Mapping[str, JsonValue]) -> frozenset[str]:
    named = schema.get("type")
    listed = named if isinstance(named, list) else [named]
    types = frozenset(one for one in listed if isinstance(one, str) and one != "null")
    if not types and isinstance(schema.get("properties"), dict):
        return frozenset({"object"})
    if not types and "items" in schema:
        return frozenset({"array"})
    return types


def _choices(schema: Mapping[str, JsonValue]) -> tuple[JsonValue, ...]:
    if "const" in schema:
        return (schema["const"],)
    listed = schema.get("enum")
    return tuple(listed) if isinstance(listed, list) else ()


def _role(parameter: Parameter) -> Role:
    if parameter.choices:
        return "choice"
    if parameter.types and "string" not in parameter.types:
        return _role_of_type(parameter.types)
    kind = parameter.schema.get("format")
    if isinstance(kind, str) and kind in _ROLE_BY_FORMAT:
        return _ROLE_BY_FORMAT[kind]
    words = parameter.words
    if not _ZONE_STEMS.isdisjoint(words):
        return "zone"
    described = split_name(parameter.description)
    if words == ("to",) and {"address", "mail", "email", "recipient"} & set(described):
        return "email"
    for word in (*reversed(words), *(("id",) if parameter.name.endswith(("Id", "ID")) else ())):
        if word in _ROLE_BY_STEM:
            return _ROLE_BY_STEM[word]
    if {"iso", "yyyy", "rfc3339"} & set(described):
        return "moment"
    return "prose" if described[:2] == ["free", "text"] else "other"


def _role_of_type(types: frozenset[str]) -> Role:
    if types & {"integer", "number"}:
        return "number"
    if "boolean" in types:
        return "flag"
    return "list" if "array" in types else "object" if "object" in types else "other"


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_type(value: JsonValue, name: str) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "integer":
            return _is_number(value) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
        case "number":
            return _is_number(value) and math.isfinite(value)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
    return False


def _same(value: JsonValue, other: JsonValue) -> bool:
    """Returns whether values are equal, with true different from 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other
