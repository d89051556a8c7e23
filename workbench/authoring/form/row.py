"""The rows of a form and the fields they are built from."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Literal, get_args

from workbench.authoring.form.argument_schemas import argument_of, mark, mark_name, mark_tool, tool_named
from workbench.authoring.form.cells import (
    because_text,
    class_of,
    form_names,
    is_optional,
    kind_of,
    options_of,
    required_text,
    value_text,
    weight_text,
)
from workbench.authoring.form.inner_rows import InnerField, inner_fields, parts_text
from workbench.authoring.form.typed import (
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
from workbench.suite.expected_calls import DisallowedCall
from workbench.suite.model import Step
from workbench.suite.problems import Place, Problem
from workbench.suite.render import Table
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import TEXT, Schema

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
`required` and `weight` are the parts of one check. `response` stands for a missing check of the answer, `times` is the
allowed number of calls."""

RowKind = Literal["field", "section", "item", "pair", "more"]
"""The kind of a row. `field` is a key with its value, `section` a list or table, and `item` an element of a list.
`pair` is an entry of a table with free keys, such as arguments. `more` stands for hidden rows."""


@dataclass(frozen=True)
class Limits:
    """The bounds of a number."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


ANY_NUMBER = Limits()


@dataclass(frozen=True)
class Cell:
    """One editable value in a row.

    `text` is the content that editing starts with. While the cell is not edited, `shown` is displayed if set, such as
    the default of an unwritten (`absent`) value.
    """

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
    """Invalid text that was typed here and left; it is displayed in place of the content."""

    @property
    def asks(self) -> bool:
        """Whether the value is missing and must be filled in."""
        return not self.text and self.shown.endswith("?")

    @property
    def is_gap(self) -> bool:
        """Whether the value is written but empty, and must be filled in."""
        return self.asks and not self.absent


def cell_id(cell: Cell) -> CellId:
    """Return the identity of a cell, regardless of its content."""
    return cell.kind, cell.place, cell.option


@dataclass(frozen=True)
class FormRow:
    """One row of a form.

    `label_cells` and `widths` are the minimum widths of the label and the cells; they align the rows.
    """

    kind: RowKind
    place: Place
    indent: int
    label: str
    cells: tuple[Cell, ...] = ()
    absent: bool = False
    """Whether the row's key is not written. The row is then hidden, or shows the default in a muted colour."""
    rare: bool = False
    """Whether the search for keys to add lists it after the usual keys."""
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
        """The name of the check in the row; `None` without one."""
        for cell in self.cells:
            if cell.kind == "check":
                return cell.text
        return None


@dataclass(frozen=True)
class FormSource:
    """The data of a form.

    `table` is a case's table and `at` its place in the file, or `table` is the head of the file and `at` is empty.

    `header` is always the head. `problems` are the file's problems, `tools` the suite's known tools, `models` and
    `tags` the names in use. With `every_key`, all unwritten keys are shown, otherwise only the key at `revealed`.
    `invalid_texts` holds the invalid texts in cells.
    """

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


def _field_rows(table: Table, owner: Place, fields: Iterable[Field], indent: int) -> Iterator[FormRow]:
    for each in fields:
        yield field_row(table, owner, each, indent)


def field_row(table: Table, owner: Place, field: Field, indent: int = 0) -> FormRow:
    place = (*owner, field.key)
    # `ABSENT`, because null, false and empty text are values of their own.
    value = table.get(field.key, ABSENT)
    absent = value is ABSENT
    text, shown = "", field.default
    if not absent:
        written = text_of(field.kind, value)
        if written is None:  # a value of another type is shown as TOML, to be corrected
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
    """Return a value as the text of a cell of this kind; `None` for a value of another type."""
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
            raise ValueError(f"no value is read from a cell of the kind {kind}")


def _json_text(value: object) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except (TypeError, ValueError):
        return None  # JSON has no dates and infinite numbers


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def raw_row(place: Place, indent: int, value: object, label: str = "") -> FormRow:
    """Return the row of a value that has the wrong type or an unknown key."""
    text = shown_value(value)
    return FormRow("field", place, indent, label or str(place[-1]), (Cell("value", place, text),))


DETAIL = 3
"""The indentation of an element's details, relative to its number."""

FORBIDDEN_ARGS = Field("forbidden_args", "names", rare=True)
ONLY_ARGS = Field("only_args", "yes_no", "no", rare=True)
OPTIONAL = Field("optional", "yes_no", "no", rare=True)
TIMES = Field("times", "times", "once", rare=True)
RETURNS_ERROR = Field("is_error", "yes_no", "either", rare=True)
BECAUSE = Field("because", "text", "no reason", rare=True)
PARALLEL = Field("parallel", "yes_no", "no", rare=True)


def heading(place: Place, indent: int, written: object, *, rare: bool = False) -> FormRow:
    """Return the heading of a list or table, with the word `none` unless it is `written`."""
    row = FormRow("section", place, indent, str(place[-1]), rare=rare)
    if written:
        return row
    return replace(row, absent=True, note="none")


def calls_section(source: FormSource, key: str) -> Iterator[FormRow]:
    """Yield the rows of a list of expected calls, including groups in `ordered`."""
    written = value_at(source.table, (key,))
    if written is not ABSENT and not isinstance(written, list):
        yield raw_row((key,), 0, written)
        return
    items = items_at(source.table, (key,))
    yield heading((key,), 0, items)
    for index, item in enumerate(items):
        place: Place = (key, index)
        if isinstance(item, dict) and isinstance(item.get("any_order"), list):
            note = "in one answer" if item.get("parallel") is True else "in any order"
            yield FormRow("item", place, 1, str(index + 1), note=note)
            yield field_row(item, place, PARALLEL, 1 + DETAIL)
            yield from unknown_rows(item, place, 1 + DETAIL, ("any_order", "parallel"))
            for inner, call in enumerate(item["any_order"]):
                yield from call_rows(source, (*place, "any_order", inner), call, 1 + DETAIL, f"{index + 1}.{inner + 1}")
        else:
            yield from call_rows(source, place, item, 1, str(index + 1))


def call_rows(source: FormSource, place: Place, call: object, indent: int, label: str) -> Iterator[FormRow]:
    if not isinstance(call, dict):
        yield raw_row(place, indent, call, label)
        return
    inner = indent + DETAIL
    if isinstance(call.get("any_of"), list):
        yield FormRow("item", place, indent, label, note="one of")
        yield from alternative_rows(source, place, call, inner, label)
        yield from _resolved_rows(place, call, inner)
        yield from unknown_rows(call, place, inner, tuple(DisallowedCall.model_fields))
        return
    yield replace(_tool_row(place, call, indent, label), marks=tool_marks(source, call))
    # Absent rows are yielded, too: the screen hides the `rare` ones.
    details = [
        *argument_rows(source, (*place, "args"), call.get("args", ABSENT), inner, call),
        field_row(call, place, FORBIDDEN_ARGS, inner),
        field_row(call, place, ONLY_ARGS, inner),
        *_resolved_rows(place, call, inner),
        *(_condition_rows(source, place, call, inner) if place[0] == "disallowed" and len(place) == 2 else ()),
        *unknown_rows(call, place, inner, tuple(DisallowedCall.model_fields)),
    ]
    yield from details


def alternative_rows(source: FormSource, place: Place, call: Table, indent: int, label: str) -> Iterator[FormRow]:
    for number, alternative in enumerate(items_at(call, ("any_of",))):
        yield from call_rows(source, (*place, "any_of", number), alternative, indent, f"{label}.{number + 1}")


def _resolved_rows(place: Place, call: Table, indent: int) -> Iterator[FormRow]:
    """Yield the rows for the number of calls, the result and the reason; forbidden calls have only the reason."""
    if place[0] == "disallowed" and len(place) == 2:
        yield field_row(call, place, BECAUSE, indent)
        return
    if place[0] == "disallowed":
        yield from result_rows(place, call, indent, rare=True)
        yield field_row(call, place, RETURNS_ERROR, indent)
    if place[0] not in ("ordered", "unordered", "steps"):
        return
    if place[0] != "steps" and "any_of" not in place:
        yield from _field_rows(call, place, (OPTIONAL, TIMES), indent)
    yield from result_rows(place, call, indent, rare=True)
    yield field_row(call, place, RETURNS_ERROR, indent)
    if "any_of" not in place:
        yield field_row(call, place, BECAUSE, indent)


def result_rows(
    place: Place, call: Table, indent: int, *, rare: bool = False, key: Literal["result", "message"] = "result"
) -> Iterator[FormRow]:
    """Yield the rows of the check of a call's result, or of the message that an answer applies to."""
    at = (*place, key)
    if key not in call:
        check = Cell("check", at, absent=True, shown=f"any {key}" if rare else f"which {key}?", choices=form_names())
        cells = (check,) if rare else (check, Cell("response", at, absent=True))
        yield FormRow("field", at, indent, key, cells, absent=True, rare=rare)
        return
    value = call[key]
    schema = {"result": None, "message": TEXT}[key]
    parts = list(inner_fields(at, key, value, schema))
    kind, expected, _ = check_cells(at, value, schema)
    yield FormRow("field", at, indent, key, (kind, replace(expected, summary=parts_text(value, parts))))
    # `required` would change nothing, because these checks always decide; `because` would not be shown for a message.
    without_effect = {"result": ("required",), "message": ("required", "because")}[key]
    for row in option_rows(at, value, indent + 2, of_answer=True):
        if row.place[-1] not in without_effect:
            yield row
    # The labels contain the whole path, so the rows need no indentation.
    for part in parts:
        yield from _inner_rows(part, indent)


def _condition_rows(source: FormSource, place: Place, call: Table, indent: int) -> Iterator[FormRow]:
    for key in ("before", "after"):
        at = (*place, key)
        if key in call:
            yield from call_rows(source, at, call[key], indent, key)
        else:
            # Entering the tool's name writes the call.
            yield FormRow("field", at, indent, key, (tool_cell((*at, "tool"), ABSENT),), absent=True, rare=True)


def step_rows(source: FormSource, index: int, step: object, system: str) -> Iterator[FormRow]:
    """Yield the rows of one step of a chain. `system` is the prompt that applies if the step has none."""
    place: Place = ("steps", index)
    if not isinstance(step, dict):
        yield raw_row(place, 1, step, str(index + 1))
        return
    head = _tool_row(place, step, 1, str(index + 1))
    if isinstance(step.get("any_of"), list):
        head = replace(head, cells=(), note="one of")
    elif "tool" not in step:
        head = replace(head, cells=(replace(head.cells[0], absent=True, shown="no call expected"),))
    yield replace(head, marks=tool_marks(source, step))
    inner = 1 + DETAIL
    # Only the first step needs a message; the others may continue with the results of calls.
    asked = "what is asked?" if index == 0 or "user" in step else "none"
    fields = (Field("user", "lines", asked), Field("system", "lines", system, rare=True, empty_stays=True))
    details = list(_field_rows(step, place, fields, inner))
    if isinstance(step.get("any_of"), list):
        details += alternative_rows(source, place, step, inner, str(index + 1))
    elif "tool" in step or "args" in step:
        details += argument_rows(source, (*place, "args"), step.get("args", ABSENT), inner, step)
        details += _field_rows(step, place, (FORBIDDEN_ARGS, ONLY_ARGS), inner)
    if "tool" in step or "any_of" in step:
        details += _resolved_rows(place, step, inner)
    details.append(field_row(step, place, Field("mock_result", "value"), inner))
    yield from [*details, *unknown_rows(step, place, inner, tuple(Step.model_fields))]


def argument_rows(source: FormSource, place: Place, args: object, indent: int, call: Table) -> list[FormRow]:
    """Return the rows of a call's arguments (`args`), or of the arguments that a mock answers (`when`)."""
    key = str(place[-1])
    if args is ABSENT or args == {}:
        if key == "when":  # a mock answers any arguments, with an empty table, too
            return [FormRow("section", place, indent, key, absent=True, note="any")]
        # Without the key, arguments do not matter; an empty table means that the call has none.
        is_absent = args is ABSENT
        shown = "any" if is_absent else "none"
        cell = Cell("args", place, shown, is_absent, shown, choices=("any", "none"))
        return [FormRow("section", place, indent, key, (cell,), absent=is_absent)]
    if not isinstance(args, dict):
        return [raw_row(place, indent, args)]
    rows: list[FormRow] = []
    deeper = indent
    if key != "args":
        rows.append(FormRow("section", place, indent, key))
        deeper += 2
    tool = source.tool(call)
    for name, value in args.items():
        at = (*place, name)
        info = argument_of(tool, name)
        schema: Schema | None = None
        if info is not None:
            schema = info.schema
        # An unknown argument name explains more than a value without a schema.
        text = mark_name(tool, name) or mark(value, schema)
        kind, expected, weight = check_cells(at, value, schema)
        # Parts have rows of their own below.
        fields = list(inner_fields(at, shown_name(name), value, schema))
        expected = replace(expected, summary=parts_text(value, fields))
        cells = (Cell("key", at, shown_name(name)), kind, expected, weight)
        rows.append(FormRow("pair", at, deeper, "", cells, marks=_marks(text)))
        rows += option_rows(at, value, deeper + 2)
        for inner in fields:
            rows += _inner_rows(inner, deeper + 2)
    return rows


def _inner_rows(field: InnerField, indent: int) -> Iterator[FormRow]:
    kind, expected, _ = check_cells(field.place, field.value, field.schema)
    cells = (kind, replace(expected, summary=field.summary))
    marks = _marks(mark(field.value, field.schema))
    yield FormRow("field", field.place, indent, field.label, cells, marks=marks)
    # Only a field can be optional; an element of a list is always there.
    is_element = isinstance(field.place[-1], int) or field.place[-1] == "each_element"
    for row in option_rows(field.place, field.value, indent + 2, of_answer=is_element):
        if row.label != "required":
            yield row


def _marks(text: str | None) -> tuple[str, ...]:
    return (text,) if text else ()


def check_cells(place: Place, value: object, schema: Schema | None) -> tuple[Cell, ...]:
    """Return the cells of one check: its kind, its expected value and its weight."""
    kind, weight = kind_of(value), weight_text(value)
    expected = Cell("expected", place, value_text(value, schema))
    if class_of(value).accepts_all:
        expected = replace(expected, shown="any value")
    of_weight = Cell("weight", place, weight)
    if not weight:
        of_weight = replace(of_weight, absent=True, shown="weight")
    return Cell("check", place, kind, choices=form_names()), expected, of_weight


def option_rows(place: Place, value: object, indent: int, *, of_answer: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a check's options, and of `optional` and `required` where these apply."""
    is_plain = kind_of(value) == "is"
    for option in options_of(value):
        cell = Cell("option", place, option.text, not option.text, option.default or "none", option=option.name)
        at = (*place, option.name)
        yield FormRow("field", at, indent, option.name, (cell,), absent=not option.text, rare=is_plain)
    if not of_answer:  # an answer cannot be left out
        optional = is_optional(value)
        cell = Cell("optional", place, "yes" if optional else "no", absent=not optional)
        yield FormRow("field", (*place, "optional"), indent, "optional", (cell,), absent=not optional, rare=True)
    if len(place) > 1 and place[-2] != "when":  # a mock only matches arguments, and grades none
        text = required_text(value)
        cell = Cell("required", place, text)
        if not text:
            cell = replace(cell, absent=True, shown="yes" if of_answer else "as the grader has it")
        yield FormRow("field", (*place, "required"), indent, "required", (cell,), absent=not text, rare=True)
        text = because_text(value)
        cell = Cell("option", place, text, not text, "no reason", option="because")
        yield FormRow("field", (*place, "because"), indent, "because", (cell,), absent=not text, rare=True)


def unknown_rows(table: Table, place: Place, indent: int, known: tuple[str, ...]) -> Iterator[FormRow]:
    """Yield rows for unknown keys, so that they can be corrected or removed."""
    for key in table:
        if key not in known:
            yield raw_row((*place, key), indent, table[key])


def tool_marks(source: FormSource, call: Table) -> tuple[str, ...]:
    """Return the reasons why the tool of a call or mock is unknown."""
    tool = call.get("tool")
    if not isinstance(tool, str) or not tool:
        return ()
    return _marks(mark_tool(source.tools, tool))


def _tool_row(place: Place, call: Table, indent: int, label: str) -> FormRow:
    tool = call.get("tool", ABSENT)
    cell = tool_cell((*place, "tool"), tool)
    return FormRow("item", place, indent, label, (cell,))


def tool_cell(place: Place, tool: object) -> Cell:
    """Return the cell for the name of a tool."""
    if tool is ABSENT:
        return Cell("tool", place, absent=True, shown="which tool?")
    if tool == "":
        return Cell("tool", place, shown="which tool?")
    if isinstance(tool, str):
        return Cell("tool", place, shown_name(tool))
    return raw_row(place, 0, tool).cells[0]


Role = Literal["user", "assistant", "tool"]

ANSWERS: tuple[str, ...] = ("result", "results", "error", "python")
"""The keys of a mock's answer; a mock has exactly one."""

ROLES: tuple[Role, ...] = get_args(Role)
STATE = Field("state", "choice", "run", choices=("run", "batch"), rare=True)
DELAY_MS = Field("delay_ms", "number", "0", rare=True, limits=Limits(0))
IS_ERROR = Field("is_error", "yes_no", "no", rare=True)

_KEYS_OF_ROLE: dict[object, tuple[str, ...]] = {
    "user": ("content",),
    "assistant": ("content", "tool_calls"),
    "tool": ("call", "content", "is_error"),
}


ItemRows = Callable[[FormSource, Place, Table], Iterator[FormRow]]
"""Yields the rows of one table in a list."""


def mocks_section(source: FormSource) -> Iterator[FormRow]:
    yield from section(source, "mocks", _mock_rows)


def messages_section(source: FormSource) -> Iterator[FormRow]:
    yield from section(source, "messages", _message_rows)


def section(source: FormSource, key: str, rows_of: ItemRows, *, rare: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a list of tables: a heading, then each table."""
    written = source.table.get(key, ABSENT)
    if written is not ABSENT and not isinstance(written, list):
        yield raw_row((key,), 0, written)
        return
    items = items_at(source.table, (key,))
    yield heading((key,), 0, items, rare=rare)
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from rows_of(source, (key, index), item)
        else:
            yield raw_row((key, index), 1, item, str(index + 1))


def one_of_keys(table: Table, place: Place, keys: tuple[str, ...], kinds: dict[str, CellKind], indent: int) -> FormRow:
    """Return a row with two cells: a choice among several keys, and the value of the written key."""
    written = list(only_keys(table, keys))
    # Without a written key, the first key gives the row its place, which the cursor needs.
    if not written:
        chosen = Cell("one_key", (*place, ""), absent=True, shown="answer", choices=keys)
        return FormRow("pair", (*place, keys[0]), indent, "", (chosen,), absent=True)
    key = written[0]
    at = (*place, key)
    value = Cell("value", at, shown_value(table[key]), empty_stays=True)
    if (text := text_of(kinds[key], table[key])) is not None:
        value = replace(value, kind=kinds[key], text=text)
    return FormRow("pair", at, indent, "", (Cell("one_key", at, key, choices=keys), value))


def _mock_rows(source: FormSource, place: Place, mock: Table) -> Iterator[FormRow]:
    indent = 1 + DETAIL
    tool = mock.get("tool", ABSENT)
    cells = (tool_cell((*place, "tool"), tool),)
    yield FormRow("item", place, 1, _number(place), cells, marks=tool_marks(source, mock))
    details = argument_rows(source, (*place, "when"), mock.get("when", ABSENT), indent, mock)
    results = mock.get("results")
    answers: list[FormRow] = []
    if isinstance(results, list) and results and list(only_keys(mock, ANSWERS)) == ["results"]:
        chosen = Cell("one_key", (*place, "results"), "results", choices=ANSWERS)
        answers.append(FormRow("section", (*place, "results"), indent, "", (chosen,)))
        for index, result in enumerate(results):
            at = (*place, "results", index)
            cell = Cell("value", at, shown_value(result), empty_stays=True)
            answers.append(FormRow("item", at, indent + 2, str(index + 1), (cell,)))
    else:
        kinds: dict[str, CellKind] = {"result": "value", "results": "value", "error": "text", "python": "text"}
        answers.append(one_of_keys(mock, place, ANSWERS, kinds, indent))
        # Two answers are an error of the suite. The second one is shown so that it can be removed.
        for key in list(only_keys(mock, ANSWERS))[1:]:
            answers.append(raw_row((*place, key), indent, mock[key]))
    fields = [DELAY_MS]
    if "python" in mock or "state" in mock:
        fields.insert(0, STATE)
    others = [field_row(mock, place, field, indent) for field in fields]
    others += unknown_rows(mock, place, indent, _MOCK_KEYS)
    yield from [*details, *answers, *others]


_MOCK_KEYS = ("tool", "when", *ANSWERS, "state", "delay_ms")


def _message_rows(source: FormSource, place: Place, message: Table) -> Iterator[FormRow]:
    indent = 1 + DETAIL
    role = message.get("role", ABSENT)
    text = ""
    if isinstance(role, str):
        text = role
    elif role is not ABSENT:
        text = shown_value(role)
    cell = Cell("choice", (*place, "role"), text, absent=role is ABSENT, choices=ROLES)
    if not text:
        cell = replace(cell, shown="which role?")
    yield FormRow("item", place, 1, _number(place), (cell,))
    keys = _KEYS_OF_ROLE.get(role, ("content",))
    details: list[FormRow] = []
    # The cell suggests each id of a call in earlier messages once.
    if "call" in keys:
        ids = tuple(dict.fromkeys(_call_ids(source)))
        call = Field("call", "text", "which call?", choices=ids, empty_stays=True)
        details.append(field_row(message, place, call, indent))
    words = "none" if "tool_calls" in message else "what is said?"
    details.append(field_row(message, place, Field("content", "lines", words, empty_stays=True), indent))
    if "is_error" in keys:
        details.append(field_row(message, place, IS_ERROR, indent))
    # Keys that do not belong to the role are shown as unknown, so that they can be removed.
    calls = message.get("tool_calls")
    known = ["role", *keys, "content"]
    rows: list[FormRow] = []
    if isinstance(calls, list):
        known.append("tool_calls")
        rows.append(FormRow("section", (*place, "tool_calls"), indent, "tool_calls"))
        for index, call in enumerate(calls):
            rows += _past_call_rows(source, (*place, "tool_calls", index), call, indent + 1)
    elif "tool_calls" in keys and "tool_calls" not in message:
        rows.append(FormRow("section", (*place, "tool_calls"), indent, "tool_calls", absent=True, note="none"))
    yield from [*details, *unknown_rows(message, place, indent, tuple(known)), *rows]


def _past_call_rows(source: FormSource, place: Place, call: object, indent: int) -> Iterator[FormRow]:
    if not isinstance(call, dict):
        yield raw_row(place, indent, call)
        return
    yield FormRow("item", place, indent, _number(place), (tool_cell((*place, "tool"), call.get("tool", ABSENT)),))
    indent += DETAIL
    rows = [field_row(call, place, Field("id", "text", "which id?", empty_stays=True), indent)]
    rows += given_rows(source, place, call, indent)
    yield from [*rows, *unknown_rows(call, place, indent, ("id", "tool", "args"))]


def given_rows(source: FormSource, place: Place, call: Table, indent: int) -> list[FormRow]:
    """Return the rows of the arguments of a call that is made or was made; they are values, not checks."""
    rows = []
    arguments = call.get("args", {})
    if isinstance(arguments, dict):
        tool = source.tool(call)
        if not arguments:
            rows.append(FormRow("section", (*place, "args"), indent, "args", absent="args" not in call, note="none"))
        for name, value in arguments.items():
            at = (*place, "args", name)
            info = argument_of(tool, name)
            schema = info.schema if info is not None else None
            shown = shown_value(value, schema)
            cells = (Cell("key", at, shown_name(name)), Cell("value", at, shown, empty_stays=True))
            text = mark_name(tool, name) or mark({"equals": value}, schema)
            rows.append(FormRow("pair", at, indent, "", cells, marks=_marks(text)))
    else:
        rows.append(raw_row((*place, "args"), indent, arguments))
    return rows


def _call_ids(source: FormSource) -> Iterator[str]:
    for message in items_at(source.table, ("messages",)):
        for call in items_at(message, ("tool_calls",)):
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                yield call["id"]


def _number(place: Place) -> str:
    index = place[-1]
    assert isinstance(index, int)
    return str(index + 1)
