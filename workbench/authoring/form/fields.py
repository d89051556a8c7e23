"""Keys with a single value: how a form shows them, and their defaults."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from workbench.authoring.form.row import ANY_NUMBER, Cell, CellKind, FormRow, Limits
from workbench.authoring.form.tables import ABSENT
from workbench.authoring.form.typed import shown_texts, shown_value
from workbench.suite.problems import Place
from workbench.suite.render import Table


@dataclass(frozen=True)
class Field:
    """A key with one value. `default` applies if it is not written."""

    key: str
    kind: CellKind
    default: str = "none"
    rare: bool = False
    choices: tuple[str, ...] = ()
    empty_stays: bool = False
    limits: Limits = ANY_NUMBER


def field_row(table: Table, owner: Place, field: Field, indent: int = 0) -> FormRow:
    """Return the row of one key of the table at `owner`."""
    place = (*owner, field.key)
    value = table.get(field.key, ABSENT)
    text = "" if value is ABSENT else text_of(field.kind, value)
    if text is None:
        return as_it_stands(place, indent, value)
    absent = value is ABSENT
    cell = Cell(
        field.kind,
        place,
        text,
        absent=absent,
        shown=field.default if absent else _when_empty(field),
        choices=field.choices,
        empty_stays=field.empty_stays,
        limits=field.limits,
    )
    return FormRow("field", place, indent, field.key, (cell,), absent=absent, rare=field.rare)


def _when_empty(field: Field) -> str:
    return field.default if field.default.endswith("?") else '""'


def text_of(kind: CellKind, value: object) -> str | None:
    """Return a value as the text of a cell of this kind, `None` if its type does not fit."""
    match kind:
        case "text" | "lines" | "choice":
            return _text_or_none(value)
        case "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return shown_value(value) if is_number else None
        case "yes_no":
            return ("yes" if value else "no") if isinstance(value, bool) else None
        case "names" | "words":
            if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                return None
            return shown_texts(value) if kind == "names" else shlex.join(value)
        case "json":
            return _json_text(value) if isinstance(value, dict) else _text_or_none(value)
        case "value":
            return shown_value(value)
        case _:
            raise ValueError(f"no field holds a cell of the kind {kind}")


def _json_text(value: object) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except (TypeError, ValueError):
        return None  # JSON has no dates and infinite numbers


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def as_it_stands(place: Place, indent: int, value: object, label: str = "") -> FormRow:
    """Return the row of a value that has the wrong type or an unknown key."""
    text = shown_value(value)
    return FormRow("field", place, indent, label or str(place[-1]), (Cell("value", place, text),))
