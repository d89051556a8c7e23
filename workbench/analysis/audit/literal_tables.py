"""Finds tables that are compared as values but were probably meant as checks, and shows the check to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from workbench.checks.check import CHECK_CLASSES, CHECK_WORDS, RESERVED_NAMES, Check, CheckBase, check_names_in
from workbench.checks.values import describe_value
from workbench.suite.check_rules import check_of_alias, near_check
from workbench.suite.problems import Finding, Place, did_you_mean, quoted, warning
from workbench.suite.render import key_text
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import (
    UNIONS,
    Schema,
    alternatives_of,
    listed_values,
    properties_of,
    resolved,
    type_names,
)

_MAX_REFERENCES = 8
"""The most references of a schema that are followed. A schema may refer to itself endlessly."""

_AS_VALUE = "to compare the table as a value, write { equals = { … } }"


class _Location(NamedTuple):
    """A place in an argument, and how to write a text there.

    `around(text)` returns the whole argument with `text` at the place. `path` holds the names of the fields from
    `has_fields` down to the place. With `names_fields`, a plain table at the place lists fields."""

    around: Callable[[str], str]
    path: tuple[str, ...] = ()
    names_fields: bool = False

    def written(self, text: str) -> str:
        if self.path:
            text = f"{'.'.join(map(key_text, self.path))} = {text}"
        return self.around(text)

    def at_field(self, name: str) -> _Location:
        if self.names_fields and self.path:
            return _Location(self.around, (*self.path, name), True)
        if self.names_fields:
            return _Location(lambda text: self.written(f"{{ {text} }}"), (name,), True)
        return _Location(lambda text: self.written(f"{{ has_fields = {{ {text} }} }}"), (name,), True)

    def in_list(self, kind: str, options: str = "") -> _Location:
        return _Location(lambda text: self.written(f"{{ {kind} = [{text}, …]{options} }}"), (), self.names_fields)

    def inside(self, place: Place) -> _Location:
        """Return the location of a part of a plain value.

        A list around the part is written as `same_elements` with `in_order`."""
        spot = self
        for key in place:
            spot = spot.at_field(key) if isinstance(key, str) else spot.in_list("same_elements", ", in_order = true")
        return spot

    def of_part(self, check: Check, place: Place) -> _Location:
        if check.nests == "list":
            return self.in_list(check.kind)
        if check.nests == "check":
            return _Location(lambda text: self.written(f"{{ {check.kind} = {text} }}"), (), self.names_fields)
        # Below `has_fields`, a plain table lists its fields without naming the check again.
        is_plain = len(place) == 1
        return self._replace(names_fields=is_plain).at_field(str(place[-1]))


def literal_tables(check: Check, argument: str, tool: ToolDefinition | None, place: Place) -> Iterator[Finding]:
    """Find tables that name no check and are therefore compared as plain values.

    If the tool's schema expects a table at the place, there is no finding. If the schema accepts no object, the finding
    is an error. Without a schema, only tables that look like a check are found, also inside values. If the schema
    accepts any object, only tables with a misspelt check name are found."""
    if not check.parts and not isinstance(check.bare_value, dict | list):
        return
    root: Schema = tool.parameters if tool is not None else {}
    spot = _Location(lambda text: f"{key_text(argument)} = {text}")
    yield from _literal_tables(check, spot, _property(root, argument, root), tool, place)


def _literal_tables(
    check: Check, spot: _Location, schema: Schema | None, tool: ToolDefinition | None, place: Place
) -> Iterator[Finding]:
    root: Schema = tool.parameters if tool is not None else {}
    for at, part in check.placed_parts():
        inner = schema
        if check.checks_parts:
            inner = _property(schema, str(at[-1]), root) if check.nests == "table" else _items(schema, root)
        yield from _literal_tables(part, spot.of_part(check, at), inner, tool, (*place, *at))
    if check.bare_value is None:
        return
    value = check.bare_value
    takes = _takes_object(schema, root)
    if isinstance(value, dict) and (takes is not True or not _names_properties(schema, root)):
        meant = _probable_check(value)
        hint = f"did you mean `{meant}`?" if meant else ""
        if (unlike := _without_shape(value)) is not None:
            hint = f"`{unlike.kind}` needs {unlike.shape}"
        if takes is False and tool is not None:
            message = f"names no check, and the schema of {quoted(tool.name)} accepts no object here"
            yield Finding(place, message, hint or "write a value, or a table with the name of one check")
            return
        if unlike is not None:
            yield warning(place, f"{hint}, so the table is compared as a value", _AS_VALUE)
            return
        if meant and _looks_like_check(value, any_name=takes is None):
            message = "names no check, so the table is compared as a value"
            yield warning(place, message, f"{hint} {_AS_VALUE}".strip())
            return
    for at, key, name in _nested(value, schema, root):
        message = (
            f"`{key}` is compared as a field here, because nothing inside a plain value is a check: write "
            f"`{spot.inside(at).written(f'{{ {name} = … }}')}`, or `{spot.written('{ equals = … }')}` if it is meant"
        )
        yield warning((*place, *at), message)


def _without_shape(value: Mapping[str, JsonValue]) -> type[CheckBase] | None:
    for name in value:
        cls = CHECK_CLASSES.get(name)
        if (
            cls is not None
            and cls.is_newer
            and not cls.has_shape(value[name])
            and cls.model_fields.keys() >= value.keys()
        ):
            return cls
    return None


def _nested(value: JsonValue, schema: Schema | None, root: Schema) -> Iterator[tuple[Place, str, str]]:
    """Find the tables inside a plain value that name a check. Yield the place, the key and the check's name of each."""
    inner: list[tuple[str | int, JsonValue, Schema | None]]
    if isinstance(value, dict):
        inner = [(key, each, _property(schema, key, root)) for key, each in value.items()]
    elif isinstance(value, list):
        inner = [(number, each, _items(schema, root)) for number, each in enumerate(value)]
    else:
        return
    for key, each, of_key in inner:
        takes = _takes_object(of_key, root)
        if isinstance(each, dict) and _names_check(each, takes):
            name = check_names_in(each)[0]
            yield (key,), name, name
        elif isinstance(each, dict) and takes is None and (misspelt := _misspelt(each)) is not None:
            yield (key,), *misspelt
        else:
            for at, written, name in _nested(each, of_key, root):
                yield (key, *at), written, name


def _names_check(value: Mapping[str, JsonValue], takes_object: bool | None) -> bool:
    """Return whether a table inside a plain value names a check, perhaps with a misspelt option."""
    names = check_names_in(value)
    # An argument whose value is itself a JSON Schema contains tables such as { type = "string" }.
    if len(names) != 1 or takes_object or (names == ["type"] and takes_object is None):
        return False
    options = [*CHECK_CLASSES[names[0]].model_fields]
    return all(key in CHECK_WORDS or did_you_mean(key, options) for key in value)


def _misspelt(value: Mapping[str, JsonValue]) -> tuple[str, str] | None:
    """Return the misspelt key of a table and the check that it means, if all other keys are options of the check."""
    others = [key for key in value if key not in RESERVED_NAMES]
    if len(others) != 1 or (name := near_check(others[0])) is None:
        return None
    # `types` and `dates` are more often field names than misspelt checks.
    if others[0] in (name, f"{name}s") or not value.keys() - {others[0]} <= CHECK_CLASSES[name].model_fields.keys():
        return None
    return others[0], name


def _looks_like_check(value: Mapping[str, JsonValue], *, any_name: bool) -> bool:
    """Return whether a table would be a check if one of its keys were renamed.

    Without `any_name`, the key must resemble the name of a check."""
    if _fields_as_option(value) is not None:
        return True
    if not any_name:
        return _misspelt(value) is not None
    others = [key for key in value if key not in RESERVED_NAMES]
    if len(others) != 1:
        return False
    # A table whose key is a check of another system (`date`, `like`) may be a misspelt check or a plain value, because
    # arguments have such names too. It counts as a check if it also has an option, or if its key resembles a check.
    return len(value) > 1 or near_check(others[0]) is not None


def _fields_as_option(value: Mapping[str, JsonValue]) -> JsonValue:
    fields = value.get("only_fields")
    return fields if isinstance(fields, dict) and len(value) == 1 else None


def _probable_check(value: Mapping[str, JsonValue]) -> str:
    """Return the check that a table was probably meant to be, in its TOML form, or an empty text."""
    if (fields := _fields_as_option(value)) is not None:
        return f"has_fields = {describe_value(fields)}, only_fields = true"
    for key, inner in value.items():
        if key not in RESERVED_NAMES and (name := near_check(key) or check_of_alias(key)):
            return f"{name} = {describe_value(inner)}"
    for key in value:
        for kind, cls in CHECK_CLASSES.items():
            if cls.is_approximate and key in cls.options:
                return f"{kind} = …"
    return ""


def _property(schema: Schema | None, name: str, root: Schema) -> Schema | None:
    if schema is None:
        return None
    properties = properties_of(schema)
    if name in properties:
        return resolved(properties[name], root)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        return resolved(others, root)
    return None


def _items(schema: Schema | None, root: Schema) -> Schema | None:
    if schema is not None and "items" in schema:
        return resolved(schema["items"], root)
    return None


def _options_take_object(options: Iterable[JsonValue], root: Schema, depth: int) -> set[bool | None]:
    return {_takes_object(resolved(option, root), root, depth + 1) for option in options}


def _names_properties(schema: Schema | None, root: Schema, depth: int = 0) -> bool:
    if schema is None or depth > _MAX_REFERENCES:
        return False
    if properties_of(schema):
        return True
    for options in alternatives_of(schema, *UNIONS, "allOf"):
        if any(_names_properties(resolved(option, root), root, depth + 1) for option in options):
            return True
    return False


def _takes_object(schema: Schema | None, root: Schema, depth: int = 0) -> bool | None:
    """Return whether a schema accepts objects, or `None` if it does not say."""
    if schema is None or depth > _MAX_REFERENCES:
        return None
    if (values := listed_values(schema)) is not None:
        return any(isinstance(value, dict) for value in values)
    if (types := type_names(schema)) is not None:
        return "object" in types
    # A union accepts objects if one of its options accepts objects. An `allOf` accepts no object if one of its parts
    # accepts none.
    for options in alternatives_of(schema, *UNIONS):
        found = _options_take_object(options, root, depth)
        if True in found:
            return True
        return False if found == {False} else None
    for options in alternatives_of(schema, "allOf"):
        found = _options_take_object(options, root, depth)
        if False in found:
            return False
        return True if True in found else None
    return True if "properties" in schema else None
