"""The rows of the form for `setup` and `final`: calls before each run of a case, and conditions after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.authoring.form.call_rows import IS_ERROR, call_rows, given_rows, result_rows
from workbench.authoring.form.field_text import ABSENT, items_at
from workbench.authoring.form.row import (
    DETAIL,
    Cell,
    Field,
    FormRow,
    FormSource,
    field_row,
    heading,
    raw_row,
    section,
    tool_cell,
    tool_marks,
    unknown_rows,
)
from workbench.suite.model import FinalState, FinalTable, SetupCall
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.user_model import SaidText

_READERS = Field("readers", "names", rare=True)


def setup_section(source: FormSource) -> Iterator[FormRow]:
    yield from section(source, "setup", _setup_rows, is_rare=True)


def final_section(source: FormSource) -> Iterator[FormRow]:
    written = source.table.get("final", {})
    place: Place = ("final",)
    if not isinstance(written, dict):
        yield raw_row(place, 0, written)
        return
    yield FormRow("section", place, 0, "final", absent=not written, rare=True, note="" if written else "none")
    inner = 2
    yield from _changes(source, written, inner)
    yield field_row(written, place, _READERS, inner)
    yield from _texts(source, written, inner)
    yield from _states(source, written, inner)
    yield from _goal(written, inner)
    yield from unknown_rows(written, place, inner, tuple(FinalTable.model_fields))


def _changes(source: FormSource, final: Table, indent: int) -> Iterator[FormRow]:
    place: Place = ("final", "changes")
    changes = final.get("changes", ABSENT)
    if changes is not ABSENT and not isinstance(changes, list):
        yield raw_row(place, indent, changes)
        return
    # Without the key, changes are not checked. An empty list means that there must be no changes.
    cells: tuple[Cell, ...] = ()
    if not changes or changes is ABSENT:
        shown = "any" if changes is ABSENT else "none"
        cells = (Cell("args", place, shown, changes is ABSENT, shown, choices=("any", "none")),)
    yield FormRow("section", place, indent, "changes", cells, absent=changes is ABSENT, rare=True)
    for index, change in enumerate(items_at(source.table, place)):
        yield from call_rows(source, (*place, index), change, indent + 1, str(index + 1))


def _texts(source: FormSource, final: Table, indent: int) -> Iterator[FormRow]:
    place: Place = ("final", "says")
    texts = final.get("says", [])
    if not isinstance(texts, list):
        yield raw_row(place, indent, texts)
        return
    yield heading(place, indent, texts, is_rare=True)
    for index, text in enumerate(texts):
        at = (*place, index)
        # An item may be plain text. It is a table if it also names a tool.
        table = text if isinstance(text, dict) else {"text": text}
        cell = field_row(table, at, Field("text", "text", "which text?", empty_stays=True)).cells[0]
        if not isinstance(text, dict):
            cell = replace(cell, place=at)
        yield FormRow("item", at, indent + 1, str(index + 1), (cell,))
        inner = indent + 1 + DETAIL
        tool = tool_cell((*at, "after_tool"), table.get("after_tool", ABSENT))
        if tool.absent:
            tool = replace(tool, shown="anywhere")
        marks = tool_marks(source, {"tool": table.get("after_tool")})
        yield FormRow("field", tool.place, inner, "after_tool", (tool,), absent=tool.absent, marks=marks)
        yield from unknown_rows(table, at, inner, tuple(SaidText.model_fields))


def _goal(final: Table, indent: int) -> Iterator[FormRow]:
    if "goal" in final:
        yield from result_rows(("final",), final, indent, key="goal")
        return
    cell = Cell("response", ("final", "goal"), absent=True, shown="none")
    yield FormRow("field", cell.place, indent, "goal", (cell,), absent=True, rare=True)


def _states(source: FormSource, final: Table, indent: int) -> Iterator[FormRow]:
    place: Place = ("final", "state")
    states = final.get("state", ABSENT)
    if states is not ABSENT and not isinstance(states, list):
        yield raw_row(place, indent, states)
        return
    yield heading(place, indent, states if states is not ABSENT else [], is_rare=True)
    for index, state in enumerate(items_at(source.table, place)):
        at = (*place, index)
        if not isinstance(state, dict):
            yield raw_row(at, indent + 1, state, str(index + 1))
            continue
        yield from _call(source, at, state, indent + 1)
        yield from result_rows(at, state, indent + 1 + DETAIL, is_rare="is_error" in state)
        yield field_row(state, at, IS_ERROR, indent + 1 + DETAIL)
        yield from unknown_rows(state, at, indent + 1 + DETAIL, tuple(FinalState.model_fields))


def _setup_rows(source: FormSource, place: Place, call: Table) -> Iterator[FormRow]:
    yield from _call(source, place, call, 1)
    yield from unknown_rows(call, place, 1 + DETAIL, tuple(SetupCall.model_fields))


def _call(source: FormSource, place: Place, call: Table, indent: int) -> Iterator[FormRow]:
    cells = (tool_cell((*place, "tool"), call.get("tool", ABSENT)),)
    index = place[-1]
    assert isinstance(index, int)
    yield FormRow("item", place, indent, str(index + 1), cells, marks=tool_marks(source, call))
    yield from given_rows(source, place, call, indent + DETAIL)
