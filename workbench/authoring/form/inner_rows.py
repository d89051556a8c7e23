"""The rows for the parts of a nested value: a row for each field below `has_fields` and for each element of a list."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.checks.check import check_name
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.suite.problems import Place
from workbench.suite.render import key_text
from workbench.trajectory.json_schema import Schema, field_of, items_of

PATH = " › "
"""The separator between an argument and its parts in the label of a row."""

_ELEMENT_CHECKS = ("same_elements", "has_elements")
LISTS_OF_CHECKS = (*_ELEMENT_CHECKS, "any_of", "none_of")
"""The checks that contain a list of checks, either for the elements of a list or for the value itself."""


@dataclass(frozen=True)
class InnerField:
    """A part of a value that has its own check: its place, its label, the check as written, and its schema.

    `summary` tells how many parts of this part have their own rows. It is "" if there are none."""

    place: Place
    label: str
    value: object
    schema: Schema | None
    summary: str = ""


def inner_fields(place: Place, label: str, value: object, schema: Schema | None) -> Iterator[InnerField]:
    """Yield the parts of a value that have their own checks, and therefore their own rows.

    A plain table below `has_fields` is a table of fields. A plain value under the key `each_element` gets no row of its
    own."""
    name = check_name(value)
    if not isinstance(value, dict) or name is None:
        return
    inner = value[name]
    if name == "has_fields":
        yield from _fields((*place, name), label, inner, schema)
    elif name == "each_element" and check_name(inner) is not None:
        yield from _part((*place, name), f"{label}{PATH}each", inner, items_of(schema))
    elif name in LISTS_OF_CHECKS and isinstance(inner, list):
        own = items_of(schema) if name in _ELEMENT_CHECKS else schema
        for index, each in enumerate(inner):
            yield from _part((*place, name, index), f"{label}{PATH}{index + 1}", each, own)


def parts_text(value: object, parts: list[InnerField]) -> str:
    """Return the number of parts of a value as words, or "" if there are none."""
    if not parts:
        return ""
    return counted(len(parts), "field" if check_name(value) == "has_fields" else "part")


def _part(place: Place, label: str, value: object, schema: Schema | None) -> Iterator[InnerField]:
    parts = list(inner_fields(place, label, value, schema))
    if not parts or check_name(value) != "has_fields":
        yield InnerField(place, label, value, schema, parts_text(value, parts))
    yield from parts


def _fields(place: Place, label: str, fields: object, schema: Schema | None) -> Iterator[InnerField]:
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
        at, path, inner = (*place, name), f"{label}{PATH}{key_text(name)}", field_of(schema, name)
        if isinstance(value, dict) and check_name(value) is None and value:
            yield from _fields(at, path, value, inner)
        else:
            yield from _part(at, path, value, inner)
