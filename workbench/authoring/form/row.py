"""The rows of a form and the fields they are built from."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import field
from typing import Literal

from workbench.authoring.form.argument_schemas import tool_named
from workbench.authoring.form.tables import ABSENT
from workbench.authoring.form.typed import shown_texts, shown_value
from workbench.dataclasses import dataclass
from workbench.suite.problems import Place, Problem
from workbench.suite.render import Table
from workbench.trajectory.messages import ToolDefinition

CellKind = Literal[
    "text",
    "lines",
    "number",
    "yes_no",
    "choice",
    "names",
    "words",
    "value",
    "json",
    "tool",
    "key",
    "one_key",
    "check",
    "expected",
    "option",
    "optional",
    "required",
    "weight",
    "args",
    "response",
]
"""The kind of a cell: `lines` is text with line breaks, `words` a command, `key` the name of an argument or variable,
`one_key` which of several keys is written, `args` whether arguments matter. `check`, `expected`, `option`, `optional`,
`required` and `weight` are the parts of one check. `response` is the check of the answer if there is none yet."""

RowKind = Literal["field", "section", "item", "pair", "more"]
"""The kind of a row: a key with its value, a list or table, one element of a list, one entry of a table with free keys
(such as arguments), and the row that stands for hidden rows."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a number."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


ANY_NUMBER = Limits()


@dataclass(frozen=True)
class Cell:
    """One editable value. `text` is the content that editing starts with. While the cell is not edited, `shown` is
    displayed if set, such as the default of an unwritten (`absent`) value."""

    kind: CellKind
    place: Place
    text: str = ""
    absent: bool = False
    shown: str = ""
    choices: tuple[str, ...] = ()
    empty_stays: bool = False
    """Whether empty text is written; otherwise it removes the key."""
    limits: Limits = ANY_NUMBER
    option: str = ""
    """The option of a check that this cell edits."""

    @property
    def is_gap(self) -> bool:
        """Whether the value is empty and must be filled in."""
        return not self.absent and not self.text and self.shown.endswith("?")


@dataclass(frozen=True)
class FormRow:
    """One row. `label_cells` and `widths` are the minimum widths of the label and the cells, which align rows."""

    kind: RowKind
    place: Place
    indent: int
    label: str
    cells: tuple[Cell, ...] = ()
    absent: bool = False
    """Whether nothing is written there. The row then shows the default, muted."""
    rare: bool = False
    """Whether the row is hidden as long as it is absent and only the usual keys are shown."""
    note: str = ""
    """Text after the cells, such as a count."""
    label_cells: int = 0
    widths: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    """Reasons why the tool's schema refuses the content."""
    problems: tuple[Problem, ...] = ()

    @property
    def check(self) -> str | None:
        """The check that the row's value is compared by, if it has one."""
        return next((cell.text for cell in self.cells if cell.kind == "check"), None)


@dataclass(frozen=True)
class FormSource:
    """The data of a form: the table of a case with `at`, its place in the file, or the head of the file (`at` is
    empty).

    `header` is the head in both cases. `problems` are those of the file, `tools` the suite's known tools, `models` and
    `tags` the names in use. With `every_key`, rarely used keys are shown, too.
    """

    table: Table
    at: Place = ()
    header: Table = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    every_key: bool = False

    def tool(self, call: object) -> ToolDefinition | None:
        """Return the tool that a call, a step or a mock names, if it is known."""
        name = call.get("tool") if isinstance(call, dict) else None
        return tool_named(self.tools, name) if isinstance(name, str) else None

    @property
    def is_case(self) -> bool:
        """Whether this is the form of a case, not of the suite."""
        return bool(self.at)

    @property
    def is_chain(self) -> bool:
        """Whether the case has steps instead of expectations."""
        return self.is_case and "steps" in self.table


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
