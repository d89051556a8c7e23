"""The parameters of a tool, read from its JSON Schema, which may hold anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from typing import Literal

from workbench.dataclasses import dataclass
from workbench.providers.offline.language import split_name, stem, word_set
from workbench.trajectory.events import JsonValue
from workbench.trajectory.json_schema import (
    ALTERNATIVES,
    Schema,
    alternatives_of,
    is_number,
    listed_values,
    properties_of,
    required_names,
    resolved,
    type_names,
    type_of,
)

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
"""The kind of value that a parameter takes, by its type, name, format and description."""

_MAX_PARAMETERS = 100
_MAX_UNIONS = 10

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
_ROLE_BY_STEM: dict[str, Role] = {}
for _role_name, _words in _ROLES_BY_NAME.items():
    _ROLE_BY_STEM |= dict.fromkeys(map(stem, _words), _role_name)
_OF_PATHS = _ROLES_BY_NAME["path"] | word_set("filepath dir repo repository")
_ZONE_STEMS = frozenset(map(stem, _ROLES_BY_NAME["zone"]))
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
    """One parameter of a tool.

    `types` are the JSON types of the schema without null, `words` the stems of the name. In `schema`, references are
    resolved, and a union is replaced by its first branch that is not null."""

    name: str
    schema: Schema
    types: frozenset[str]
    required: bool
    choices: tuple[JsonValue, ...]
    words: tuple[str, ...]
    role: Role

    @property
    def description(self) -> str:
        """The schema's description, in lower case."""
        text = self.schema.get("description")
        if not isinstance(text, str):
            return ""
        return text[:1000].lower()

    @property
    def of_path(self) -> bool:
        """Whether the name or the description mentions a path, a file, a folder or a repository."""
        return not _OF_PATHS.isdisjoint([*split_name(self.name), *split_name(self.description)])

    def fits(self, value: JsonValue) -> bool:
        """Return whether a value has the type of the schema and is within its lengths and bounds."""
        if self.choices and not any(_same(value, choice) for choice in self.choices):
            return False
        kind = type_of(value)
        # Every integer is a number in JSON Schema.
        if self.types and kind not in self.types and not (kind == "integer" and "number" in self.types):
            return False
        if isinstance(value, str):
            return self._within(len(value), "minLength", "maxLength")
        if isinstance(value, int | float) and not isinstance(value, bool):
            return is_number(value) and self._within(value, "minimum", "maximum")
        return True

    def _within(self, size: float, least: str, most: str) -> bool:
        lower, upper = self.schema.get(least), self.schema.get(most)
        return not (is_number(lower) and size < lower) and not (is_number(upper) and size > upper)


def parameters_of(schema: JsonValue, root: Schema | None = None) -> list[Parameter]:
    """Return the parameters of an object's schema, in its order; none when it has no readable properties."""
    if not isinstance(schema, dict):
        return []
    if root is None:
        root = schema
    branch = _branch_of(schema, root)
    required = required_names(branch)
    properties = islice(properties_of(branch).items(), _MAX_PARAMETERS)
    return [parameter_of(name, one, name in required, root) for name, one in properties]


def parameter_of(name: str, schema: JsonValue, required: bool, root: Schema) -> Parameter:
    """Return one parameter from its schema, which may be anything."""
    branch = _branch_of(schema, root)
    choices = tuple(listed_values(branch) or ())
    words = tuple(map(stem, split_name(name)))
    parameter = Parameter(name, branch, _types(branch), required, choices, words, "other")
    return replace(parameter, role=_role(parameter))


def _branch_of(schema: JsonValue, root: Schema) -> Schema:
    """Return a schema with references followed and unions replaced by their first branch that is not null."""
    branch = resolved(schema, root)
    for _ in range(_MAX_UNIONS):
        branches = next(alternatives_of(branch, *ALTERNATIVES), None)
        if branches is None:
            break
        # Keywords beside the union, such as the description, apply to each branch.
        outer = {key: value for key, value in branch.items() if key not in ALTERNATIVES}
        branch = resolved({**_first_usable(branches), **outer}, root)
    return branch


def _first_usable(branches: Iterable[JsonValue]) -> Schema:
    for one in branches:
        if isinstance(one, dict) and one.get("type") != "null":
            return one
    return {}


def _types(schema: Schema) -> frozenset[str]:
    types = frozenset(type_names(schema) or ()) - {"null"}
    if not types and isinstance(schema.get("properties"), dict):
        return frozenset({"object"})
    if not types and "items" in schema:
        return frozenset({"array"})
    return types


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
    # The last word of a name tells most: `file_owner` is a person, `owner_file` a path.
    for word in reversed(words):
        if word in _ROLE_BY_STEM:
            return _ROLE_BY_STEM[word]
    if parameter.name.endswith(("Id", "ID")):
        return "id"
    if {"iso", "yyyy", "rfc3339"} & set(described):
        return "moment"
    if described[:2] == ["free", "text"]:
        return "prose"
    return "other"


def _role_of_type(types: frozenset[str]) -> Role:
    if types & {"integer", "number"}:
        return "number"
    if "boolean" in types:
        return "flag"
    if "array" in types:
        return "list"
    if "object" in types:
        return "object"
    return "other"


def _same(value: JsonValue, other: JsonValue) -> bool:
    # Python's True equals 1, JSON's does not.
    return isinstance(value, bool) == isinstance(other, bool) and value == other
