"""Rows for mocks and for the messages before the request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal, get_args

from workbench.authoring.form.argument_schemas import mark_name
from workbench.authoring.form.fields import Field, as_it_stands, field_row, text_of
from workbench.authoring.form.row import Cell, CellKind, FormRow, FormSource, Limits
from workbench.authoring.form.rows_calls import DETAIL, argument_rows, tool_cell, tool_marks, unknown_rows
from workbench.authoring.form.tables import ABSENT, items_at
from workbench.authoring.form.typed import shown_text, shown_value
from workbench.suite.problems import Place
from workbench.suite.render import Table

Role = Literal["user", "assistant", "tool"]

ANSWERS: tuple[str, ...] = ("result", "results", "error", "python")
"""The keys of which a mock has exactly one."""

ROLES: tuple[Role, ...] = get_args(Role)
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
    """Yield the rows of the mocks of a case or suite."""
    yield from section(source, "mocks", _mock_rows)


def messages_section(source: FormSource) -> Iterator[FormRow]:
    """Yield the rows of the messages before the request."""
    yield from section(source, "messages", _message_rows)


def section(source: FormSource, key: str, rows_of: ItemRows, *, rare: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a list of tables: a heading, then each table."""
    written = source.table.get(key, ABSENT)
    if written is not ABSENT and not isinstance(written, list):
        yield as_it_stands((key,), 0, written)
        return
    items = items_at(source.table, (key,))
    absent = not items
    yield FormRow("section", (key,), 0, key, absent=absent, rare=rare, note="none" if absent else "")
    for index, item in enumerate(items):
        if isinstance(item, dict):
            yield from rows_of(source, (key, index), item)
        else:
            yield as_it_stands((key, index), 1, item, str(index + 1))


def one_of_keys(table: Table, place: Place, keys: tuple[str, ...], kinds: dict[str, CellKind], indent: int) -> FormRow:
    """Return a row with two cells: which of several keys is written, and its value."""
    key = next((name for name in keys if name in table), "")
    chosen = Cell("one_key", (*place, key), key, absent=not key, shown="" if key else "answer", choices=keys)
    if not key:
        return FormRow("pair", (*place, keys[0]), indent, "", (chosen,), absent=True)
    text = text_of(kinds[key], table[key])
    value = Cell(kinds[key] if text is not None else "value", (*place, key), shown_value(table[key]), empty_stays=True)
    if text is not None:
        value = replace(value, text=text)
    return FormRow("pair", (*place, key), indent, "", (chosen, value))


def _mock_rows(source: FormSource, place: Place, mock: Table) -> Iterator[FormRow]:
    indent = 1 + DETAIL
    tool = mock.get("tool", ABSENT)
    cells = (tool_cell((*place, "tool"), tool),)
    yield FormRow("item", place, 1, _number(place), cells, marks=tool_marks(source, mock))
    details = argument_rows(source, (*place, "when"), mock.get("when", ABSENT), indent, mock)
    results = mock.get("results")
    answers: list[FormRow] = []
    if isinstance(results, list) and results and not any(key in mock for key in ("result", "error", "python")):
        chosen = Cell("one_key", (*place, "results"), "results", choices=ANSWERS)
        answers.append(FormRow("section", (*place, "results"), indent, "", (chosen,)))
        answers += (
            FormRow("item", at, indent + 2, str(index + 1), (Cell("value", at, shown_value(result), empty_stays=True),))
            for index, result in enumerate(results)
            for at in [(*place, "results", index)]
        )
    else:
        kinds: dict[str, CellKind] = {"result": "value", "results": "value", "error": "text", "python": "text"}
        answers.append(one_of_keys(mock, place, ANSWERS, kinds, indent))
        # Two answers are an error in the suite. The second is shown so that it can be removed.
        written = [key for key in ANSWERS if key in mock][1:]
        answers += (as_it_stands((*place, key), indent, mock[key]) for key in written)
    others = [field_row(mock, place, DELAY_MS, indent), *unknown_rows(mock, place, indent, _MOCK_KEYS)]
    yield from [*details, *answers, *others]


_MOCK_KEYS = ("tool", "when", *ANSWERS, "delay_ms")


def _message_rows(source: FormSource, place: Place, message: Table) -> Iterator[FormRow]:
    indent = 1 + DETAIL
    role = message.get("role", ABSENT)
    text = role if isinstance(role, str) else "" if role is ABSENT else shown_value(role)
    shown = "" if text else "which role?"
    cell = Cell("choice", (*place, "role"), text, absent=role is ABSENT, shown=shown, choices=ROLES)
    yield FormRow("item", place, 1, _number(place), (cell,))
    keys = _KEYS_OF_ROLE.get(role, ("content",))
    details: list[FormRow] = []
    if "call" in keys:
        ids = tuple(dict.fromkeys(_call_ids(source)))
        call = Field("call", "text", "which call?", choices=ids, empty_stays=True)
        details.append(field_row(message, place, call, indent))
    said = "none" if "tool_calls" in message else "what is said?"
    details.append(field_row(message, place, Field("content", "lines", said, empty_stays=True), indent))
    if "is_error" in keys:
        details.append(field_row(message, place, IS_ERROR, indent))
    calls = message.get("tool_calls")
    rows: list[FormRow] = []
    if isinstance(calls, list):
        rows.append(FormRow("section", (*place, "tool_calls"), indent, "tool_calls"))
        for index, call in enumerate(calls):
            rows += _past_call_rows(source, (*place, "tool_calls", index), call, indent + 1)
    elif "tool_calls" in keys and "tool_calls" not in message:
        rows.append(FormRow("section", (*place, "tool_calls"), indent, "tool_calls", absent=True, note="none"))
    known = ("role", *keys, "content", *(("tool_calls",) if isinstance(calls, list) else ()))
    yield from [*details, *unknown_rows(message, place, indent, known), *rows]


def _past_call_rows(source: FormSource, place: Place, call: object, indent: int) -> Iterator[FormRow]:
    if not isinstance(call, dict):
        yield as_it_stands(place, indent, call)
        return
    yield FormRow("item", place, indent, _number(place), (tool_cell((*place, "tool"), call.get("tool", ABSENT)),))
    indent += DETAIL
    rows = [field_row(call, place, Field("id", "text", "which id?", empty_stays=True), indent)]
    arguments = call.get("args", {})
    if isinstance(arguments, dict):
        tool = source.tool(call)
        if not arguments:
            rows.append(FormRow("section", (*place, "args"), indent, "args", absent="args" not in call, note="none"))
        for name, value in arguments.items():
            at = (*place, "args", name)
            said = mark_name(tool, name)
            cells = (Cell("key", at, shown_text(name)), Cell("value", at, shown_value(value), empty_stays=True))
            rows.append(FormRow("pair", at, indent, "", cells, marks=(said,) if said else ()))
    else:
        rows.append(as_it_stands((*place, "args"), indent, arguments))
    yield from [*rows, *unknown_rows(call, place, indent, ("id", "tool", "args"))]


def _call_ids(source: FormSource) -> Iterator[str]:
    for message in items_at(source.table, ("messages",)):
        for call in items_at(message, ("tool_calls",)):
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                yield call["id"]


def _number(place: Place) -> str:
    index = place[-1]
    assert isinstance(index, int)
    return str(index + 1)
