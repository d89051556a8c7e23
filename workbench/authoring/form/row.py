"""The rows of a form, and the fields from which they are built."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Literal

from workbench.authoring.form.argument_schemas import mark_tool, tool_named
from workbench.authoring.form.field_text import (
    ABSENT,
    CellId,
    InvalidText,
    items_at,
    only_keys,
    shown_name,
    shown_texts,
    shown_value,
    times_text,
    value_at,
)
from workbench.dataclasses import dataclass
from workbench.suite.problems import Place, Problem
from workbench.suite.render import Table
from workbench.trajectory.events import ToolDefinition

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
    "times",
]
"""The kind of a cell.

`lines` is text with line breaks, `words` a command, and `key` the name of an argument or variable. `one_key` chooses
which of several keys is written, and `args` whether arguments matter. `check`, `expected`, `option`, `optional`,
`required` and `weight` are the parts of one check. `response` stands for a missing check of the answer, and `times` is
the allowed number of calls."""

RowKind = Literal["field", "section", "item", "pair", "more"]
"""The kind of a row. `field` is a key with its value, `section` a list or table, and `item` an element of a list.
`pair` is an entry of a table with free keys, such as arguments. `more` stands for hidden rows."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a number that the user may type, and whether it must be whole."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


ANY_NUMBER = Limits()


@dataclass(frozen=True)
class Cell:
    """A value in a row that the user can edit.

    `text` is the content when editing starts. If `shown` is set, it is displayed instead of `text` while the cell is
    not edited. If `absent` is set, the value is not written, and the cell shows the default."""

    kind: CellKind
    place: Place
    text: str = ""
    absent: bool = False
    shown: str = ""
    choices: tuple[str, ...] = ()
    empty_stays: bool = False
    """Whether empty text is written as such instead of removing the key."""
    limits: Limits = ANY_NUMBER
    option: str = ""
    """The option of a check in this cell."""
    summary: str = ""
    """A summary, displayed in place of the text when the text's parts have separate rows."""
    invalid: InvalidText | None = None
    """Invalid text that the user left here. It is displayed in place of the content."""

    @property
    def is_missing(self) -> bool:
        """Whether the value is missing although it is required."""
        return not self.text and self.shown.endswith("?")

    @property
    def is_gap(self) -> bool:
        """Whether a required value is written but empty."""
        return self.is_missing and not self.absent


def cell_id(cell: Cell) -> CellId:
    """Return a key that identifies a cell even after its content has changed."""
    return cell.kind, cell.place, cell.option


@dataclass(frozen=True)
class FormRow:
    """One row of a form.

    `label_cells` and `widths` are the minimum widths of the label and of the cells. They align neighbouring rows."""

    kind: RowKind
    place: Place
    indent: int
    label: str
    cells: tuple[Cell, ...] = ()
    absent: bool = False
    """Whether the row's key is not written. The row is then hidden, or shows the default in a muted colour."""
    rare: bool = False
    """Whether the row's key comes after the usual keys in the search for keys to add."""
    note: str = ""
    """Text after the cells, such as a count."""
    label_cells: int = 0
    widths: tuple[int, ...] = ()
    marks: tuple[str, ...] = ()
    """The reasons why the tool's schema refuses the content."""
    problems: tuple[Problem, ...] = ()
    above: str = ""
    """A line above the row, for example on how to undo a removal there."""

    @property
    def check(self) -> str | None:
        """The name of the check in the row, or `None` if there is none."""
        for cell in self.cells:
            if cell.kind == "check":
                return cell.text
        return None


@dataclass(frozen=True)
class FormSource:
    """The data that a form shows.

    `table` is a case, and `at` its place in the file. In the form of the suite's settings, `table` has the settings,
    and `at` is empty. `header` always has the settings.

    `problems` are the problems of the file. `tools` are the known tools of the suite. `models` and `tags` are the names
    in use. With `every_key`, the rows of all unwritten keys are shown, otherwise only the row of the key at `revealed`.
    `invalid_texts` has the texts in cells that are not valid values."""

    table: Table
    at: Place = ()
    header: Table = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    every_key: bool = False
    revealed: Place | None = None
    invalid_texts: Mapping[CellId, InvalidText] = field(default_factory=dict)

    def tool(self, call: object) -> ToolDefinition | None:
        """Return the known tool of a call, a step or a mock, if any."""
        name = value_at(call, ("tool",))
        if not isinstance(name, str):
            return None
        return tool_named(self.tools, name)

    @property
    def message_ids(self) -> Iterator[str]:
        """The ids of the scripted user's messages."""
        for message in items_at(self.table, ("user", "messages")):
            name = value_at(message, ("id",))
            if isinstance(name, str) and name:
                yield name

    @property
    def is_case(self) -> bool:
        """Whether this is the form of a case, not of the suite."""
        return bool(self.at)

    @property
    def has_conversation(self) -> bool:
        """Whether the case has a simulated user who sends several messages, in place of a single message."""
        return self.is_case and isinstance(self.table.get("user"), dict)

    @property
    def is_chain(self) -> bool:
        """Whether the case is a chain: a list of steps, each with its own expectation."""
        return self.is_case and "steps" in self.table


@dataclass(frozen=True)
class Field:
    """A key with one value. `default` applies if the key is not written."""

    key: str
    kind: CellKind
    default: str = "none"
    rare: bool = False
    choices: tuple[str, ...] = ()
    empty_stays: bool = False
    limits: Limits = ANY_NUMBER


def field_rows(table: Table, owner: Place, fields: Iterable[Field], indent: int) -> Iterator[FormRow]:
    for each in fields:
        yield field_row(table, owner, each, indent)


def field_row(table: Table, owner: Place, field: Field, indent: int = 0) -> FormRow:
    place = (*owner, field.key)
    # `ABSENT` marks a missing key, because null, false and "" are values.
    value = table.get(field.key, ABSENT)
    absent = value is ABSENT
    text, shown = "", field.default
    if not absent:
        written = text_of(field.kind, value)
        if written is None:  # a value of the wrong type is shown as TOML, so that the user can correct it
            return raw_row(place, indent, value)
        text, shown = written, _when_empty(field)
    cell = Cell(
        field.kind,
        place,
        text,
        absent=absent,
        shown=shown,
        choices=field.choices,
        empty_stays=field.empty_stays,
        limits=field.limits,
    )
    return FormRow("field", place, indent, field.key, (cell,), absent=absent, rare=field.rare)


def _when_empty(field: Field) -> str:
    return field.default if field.default.endswith("?") else '""'


def text_of(kind: CellKind, value: object) -> str | None:
    """Return a value as the text of a cell of this kind. Return `None` if the value has another type."""
    match kind:
        case "text" | "lines" | "choice":
            return _text_or_none(value)
        case "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            return shown_value(value)
        case "yes_no":
            if isinstance(value, bool):
                return {True: "yes", False: "no"}[value]
            return None
        case "names" | "words":
            if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
                return None
            if kind == "names":
                return shown_texts(value)
            return shlex.join(value)
        case "json":
            if isinstance(value, dict):
                return _json_text(value)
            return _text_or_none(value)
        case "times":
            return times_text(value)
        case "value":
            return shown_value(value)
        case _:
            raise ValueError(f"a cell of the kind {kind} holds no value to read")


def _json_text(value: object) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except (TypeError, ValueError):
        return None  # JSON has no dates and no infinite numbers


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def raw_row(place: Place, indent: int, value: object, label: str = "") -> FormRow:
    """Return the row of a value that has the wrong type or an unknown key."""
    text = shown_value(value)
    return FormRow("field", place, indent, label or str(place[-1]), (Cell("value", place, text),))


DETAIL = 3
"""The indentation of an element's details, relative to its number."""


def heading(place: Place, indent: int, written: object, *, is_rare: bool = False) -> FormRow:
    """Return the heading of a list or table. If it is not `written`, the heading has the word `none`."""
    row = FormRow("section", place, indent, str(place[-1]), rare=is_rare)
    if written:
        return row
    return replace(row, absent=True, note="none")


def in_turn(place: Place) -> Place:
    """If a place is in a message of a scripted user, return it relative to the message, such as `("ordered", 0)`.

    Any other place is returned unchanged."""
    if place[:2] == ("user", "messages"):
        return place[3:]
    return place


def holds_arguments(place: Place) -> bool:
    """Return whether the table at a place has arguments: `args` of a call, or `when` of a mock."""
    if not place or place[:2] == ("user", "facts"):
        return False
    return place[-1] == "args" or (place[0] == "mocks" and place[-1] == "when")


def marks_of(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()


def unknown_rows(table: Table, place: Place, indent: int, known: tuple[str, ...]) -> Iterator[FormRow]:
    """Yield a row for each unknown key of a table, so that the user can correct or remove it."""
    for key in table:
        if key not in known:
            yield raw_row((*place, key), indent, table[key])


def tool_marks(source: FormSource, call: Table) -> tuple[str, ...]:
    """Return why the tool of a call or mock is unknown, in a tuple. It is empty if the tool is known."""
    tool = call.get("tool")
    if not isinstance(tool, str) or not tool:
        return ()
    return marks_of(mark_tool(source.tools, tool))


def tool_cell(place: Place, tool: object) -> Cell:
    """Return the cell for the name of a tool."""
    if tool is ABSENT:
        return Cell("tool", place, absent=True, shown="which tool?")
    if tool == "":
        return Cell("tool", place, shown="which tool?")
    if isinstance(tool, str):
        return Cell("tool", place, shown_name(tool))
    return raw_row(place, 0, tool).cells[0]


ItemRows = Callable[[FormSource, Place, Table], Iterator[FormRow]]
"""Yields the rows of one table in a list."""


def section(source: FormSource, key: str, rows_of: ItemRows, *, is_rare: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a list of tables: a heading, then the rows of each table."""
    written = source.table.get(key, ABSENT)
    if written is not ABSENT and not isinstance(written, list):
        yield raw_row((key,), 0, written)
        return
    items = items_at(source.table, (key,))
    yield heading((key,), 0, items, is_rare=is_rare)
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from rows_of(source, (key, index), item)
        else:
            yield raw_row((key, index), 1, item, str(index + 1))


def one_of_keys(table: Table, place: Place, keys: tuple[str, ...], kinds: dict[str, CellKind], indent: int) -> FormRow:
    """Return the row of a table that has one of `keys`. One cell shows the key, and another shows its value."""
    written = list(only_keys(table, keys))
    # If no key is written, the row uses the place of the first key, because the cursor needs a place.
    if not written:
        chosen = Cell("one_key", (*place, ""), absent=True, shown="answer", choices=keys)
        return FormRow("pair", (*place, keys[0]), indent, "", (chosen,), absent=True)
    key = written[0]
    at = (*place, key)
    value = Cell("value", at, shown_value(table[key]), empty_stays=True)
    if (text := text_of(kinds[key], table[key])) is not None:
        value = replace(value, kind=kinds[key], text=text)
    return FormRow("pair", at, indent, "", (Cell("one_key", at, key, choices=keys), value))


def number_of(place: Place) -> str:
    index = place[-1]
    assert isinstance(index, int)
    return str(index + 1)
