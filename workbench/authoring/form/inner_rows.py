"""The fields of objects in a form: a row for each check below `has_fields`, with the path to its field."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.checks.check import check_name
from workbench.dataclasses import dataclass
from workbench.suite.problems import Place
from workbench.suite.render import key_text
from workbench.trajectory.json_schema import Schema, field_of

PATH = " › "
"""The sign between an argument and its fields in the label of a row."""


@dataclass(frozen=True)
class InnerField:
    """A check of a field inside an argument: its place, its label, the value as written, and the field's schema."""

    place: Place
    label: str
    value: object
    schema: Schema | None


def inner_fields(place: Place, label: str, value: object, schema: Schema | None) -> Iterator[InnerField]:
    """Yield the checks of the fields below `has_fields` in a check as written; plain tables there mean fields."""
    if not isinstance(value, dict) or check_name(value) != "has_fields":
        return
    yield from _fields((*place, "has_fields"), label, value["has_fields"], schema)


def _fields(place: Place, label: str, fields: object, schema: Schema | None) -> Iterator[InnerField]:
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
        at, path, inner = (*place, name), f"{label}{PATH}{key_text(name)}", field_of(schema, name)
        named = check_name(value)
        if isinstance(value, dict) and named is None and value:
            yield from _fields(at, path, value, inner)
        elif named == "has_fields":
            yield from inner_fields(at, path, value, inner)
        else:
            yield InnerField(at, path, value, inner)
