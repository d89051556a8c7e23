"""Finds tables that name no check, and so are compared as values, where a check was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from workbench.checks.check import CHECK_CLASSES, RESERVED_NAMES, Check, check_names_in
from workbench.checks.values import describe_value
from workbench.suite.problems import Finding, Place, quoted, warning
from workbench.trajectory.json_schema import (
    UNIONS,
    Schema,
    alternatives_of,
    listed_values,
    properties_of,
    resolved,
    type_names,
)
from workbench.trajectory.messages import JsonValue, ToolDefinition

_NEAR = 0.85
"""How near a key must be to the name of a check: `patern` is, `orange` is not `range`."""

_AS_VALUE = "to compare the table as a value, write { equals = { … } }"


def literal_tables(check: Check, argument: str, tool: ToolDefinition | None, place: Place) -> Iterator[Finding]:
    """Yield a finding for each table in a check that names no check, unless the tool's schema takes an object there.

    It is an error where the schema takes no object. Where the schema is unknown, only tables that look like a check are
    found, those inside a value included.
    """
    for number, part in enumerate(check.parts):
        yield from literal_tables(part, argument, tool, (*place, check.kind, number))
    if check.bare_value is None:
        return
    root: Schema = tool.parameters if tool is not None else {}
    schema = _property(root, argument, root)
    value = check.bare_value
    if isinstance(value, dict) and (takes := _takes_object(schema, root)) is not True:
        meant = _meant(value)
        hint = f"did you mean `{meant}`?" if meant else ""
        if takes is False and tool is not None:
            message = f"names no check, and the schema of {quoted(tool.name)} takes no object here"
            yield Finding(place, message, hint or "write a value, or a table with the name of one check")
            return
        if meant and _looks_like_check(value):
            message = "names no check, so the table is compared as a value"
            yield warning(place, message, f"{hint} {_AS_VALUE}".strip())
            return
    yield from _nested(value, schema, root, place)


def _nested(value: JsonValue, schema: Schema | None, root: Schema, place: Place) -> Iterator[Finding]:
    """Yield a warning for each table inside a value that would be a check if it stood for the whole argument."""
    inner: list[tuple[str | int, JsonValue, Schema | None]]
    if isinstance(value, dict):
        inner = [(key, each, _property(schema, key, root)) for key, each in value.items()]
    elif isinstance(value, list):
        items = resolved(schema["items"], root) if schema is not None and "items" in schema else None
        inner = [(number, each, items) for number, each in enumerate(value)]
    else:
        return
    for key, each, of_key in inner:
        at = (*place, key)
        if isinstance(each, dict) and _is_check(each) and _takes_object(of_key, root) is not True:
            message = f"`{check_names_in(each)[0]}` inside a value is no check: the table is compared as a value"
            yield warning(at, message, "check the argument as a whole, with `python` for instance; " + _AS_VALUE)
        else:
            yield from _nested(each, of_key, root, at)


def _is_check(value: Mapping[str, JsonValue]) -> bool:
    names = check_names_in(value)
    return len(names) == 1 and names != ["type"] and value.keys() <= RESERVED_NAMES


def _looks_like_check(value: Mapping[str, JsonValue]) -> bool:
    """Return whether a table would be a check if one key had another name."""
    others = [key for key in value if key not in RESERVED_NAMES]
    if len(others) != 1:
        return False
    # Arguments of tools may well have the names that others give to checks, so those count beside an option only.
    return len(value) > 1 or _near_check(others[0]) is not None


def _near_check(key: str) -> str | None:
    squeezed = key.replace("_", "").replace("-", "").lower()
    known = {name.replace("_", ""): name for name in CHECK_CLASSES}
    nearest = get_close_matches(squeezed, known, n=1, cutoff=_NEAR)
    return known[nearest[0]] if nearest and nearest[0][0] == squeezed[0] else None


def _meant(value: Mapping[str, JsonValue]) -> str:
    """Return the check that a table was probably meant to be, as a suite writes it; empty where nothing tells."""
    for key, inner in value.items():
        known = key.replace("_", "").replace("-", "").lower()
        called = (kind for kind, cls in CHECK_CLASSES.items() if known in cls.aliases)
        if key not in RESERVED_NAMES and (name := _near_check(key) or next(called, None)):
            return f"{name} = {describe_value(inner)}"
    takers = (kind for key in value for kind, cls in CHECK_CLASSES.items() if cls.is_approximate and key in cls.options)
    return next((f"{kind} = …" for kind in takers), "")


def _property(schema: Schema | None, name: str, root: Schema) -> Schema | None:
    """Return the schema of a property; `None` where it is not known."""
    if schema is None:
        return None
    properties = properties_of(schema)
    if name in properties:
        return resolved(properties[name], root)
    others = schema.get("additionalProperties")
    return resolved(others, root) if isinstance(others, dict) else None


def _takes_object(schema: Schema | None, root: Schema, depth: int = 0) -> bool | None:
    """Return whether a schema accepts some object; `None` where it does not say."""
    if schema is None or depth > 8:
        return None
    if (values := listed_values(schema)) is not None:
        return any(isinstance(value, dict) for value in values)
    if (types := type_names(schema)) is not None:
        return "object" in types
    for options in alternatives_of(schema, *UNIONS):
        found = [_takes_object(resolved(option, root), root, depth + 1) for option in options]
        if True in found:
            return True
        return None if None in found or not found else False
    for options in alternatives_of(schema, "allOf"):
        found = [_takes_object(resolved(option, root), root, depth + 1) for option in options]
        if False in found:
            return False
        return True if True in found else None
    return True if "properties" in schema else None
