"""Rows for tool calls: expected calls and groups, their arguments with checks, and steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.authoring.form.argument_schemas import argument_of, mark, mark_name, mark_tool
from workbench.authoring.form.cells import (
    KINDS,
    is_optional,
    kind_of,
    options_of,
    required_text,
    value_text,
    weight_text,
)
from workbench.authoring.form.fields import Field, as_it_stands, field_row
from workbench.authoring.form.json_types import Schema
from workbench.authoring.form.row import Cell, FormRow, FormSource
from workbench.authoring.form.tables import ABSENT, items_at, value_at
from workbench.authoring.form.typed import shown_text
from workbench.suite.model import ExpectedCall, Step
from workbench.suite.problems import Place
from workbench.suite.render import Table

DETAIL = 3
"""The indentation of an element's details, relative to its number."""

FORBIDDEN_ARGS = Field("forbidden_args", "names", rare=True)
ONLY_ARGS = Field("only_args", "yes_no", "no", rare=True)


def calls_section(source: FormSource, key: str) -> Iterator[FormRow]:
    """Yield the rows of a list of expected calls, including groups in `ordered`."""
    written = value_at(source.table, (key,))
    if written is not ABSENT and not isinstance(written, list):
        yield as_it_stands((key,), 0, written)
        return
    items = items_at(source.table, (key,))
    yield FormRow("section", (key,), 0, key, absent=not items, note="" if items else "none")
    for index, item in enumerate(items):
        place: Place = (key, index)
        if isinstance(item, dict) and isinstance(item.get("any_order"), list):
            yield FormRow("item", place, 1, str(index + 1), note="in any order")
            yield from unknown_rows(item, place, 1 + DETAIL, ("any_order",))
            for inner, call in enumerate(item["any_order"]):
                yield from call_rows(source, (*place, "any_order", inner), call, 1 + DETAIL, f"{index + 1}.{inner + 1}")
        else:
            yield from call_rows(source, place, item, 1, str(index + 1))


def call_rows(source: FormSource, place: Place, call: object, indent: int, label: str) -> Iterator[FormRow]:
    """Yield the rows of one expected call."""
    if not isinstance(call, dict):
        yield as_it_stands(place, indent, call, label)
        return
    yield replace(_tool_row(place, call, indent, label), marks=tool_marks(source, call))
    inner = indent + DETAIL
    details = [
        *argument_rows(source, (*place, "args"), call.get("args", ABSENT), inner, call),
        field_row(call, place, FORBIDDEN_ARGS, inner),
        field_row(call, place, ONLY_ARGS, inner),
        *unknown_rows(call, place, inner, tuple(ExpectedCall.model_fields)),
    ]
    yield from details


def step_rows(source: FormSource, index: int, step: object, system: str) -> Iterator[FormRow]:
    """Yield the rows of one step of a chain. `system` is the prompt that applies if the step has none."""
    place: Place = ("steps", index)
    if not isinstance(step, dict):
        yield as_it_stands(place, 1, step, str(index + 1))
        return
    head = _tool_row(place, step, 1, str(index + 1))
    if "tool" not in step:
        head = replace(head, cells=(replace(head.cells[0], absent=True, shown="no call expected"),))
    yield replace(head, marks=tool_marks(source, step))
    inner = 1 + DETAIL
    asked = "what is asked?" if index == 0 or "user" in step else "none"
    fields = (Field("user", "lines", asked), Field("system", "lines", system, rare=True, empty_stays=True))
    details = [field_row(step, place, field, inner) for field in fields]
    if "tool" in step or "args" in step:
        details += argument_rows(source, (*place, "args"), step.get("args", ABSENT), inner, step)
        details += [field_row(step, place, field, inner) for field in (FORBIDDEN_ARGS, ONLY_ARGS)]
    details.append(field_row(step, place, Field("mock_result", "value"), inner))
    yield from [*details, *unknown_rows(step, place, inner, tuple(Step.model_fields))]


def argument_rows(source: FormSource, place: Place, args: object, indent: int, call: Table) -> list[FormRow]:
    """Return the rows of a call's arguments (`args`), or of the arguments that a mock answers (`when`)."""
    key = str(place[-1])
    if key == "when" and (args is ABSENT or args == {}):
        return [FormRow("section", place, indent, key, absent=True, note="any")]
    if args is ABSENT or args == {}:
        shown = "any" if args is ABSENT else "none"
        cell = Cell("args", place, shown, args is ABSENT, shown, choices=("any", "none"))
        return [FormRow("section", place, indent, key, (cell,), absent=args is ABSENT)]
    if not isinstance(args, dict):
        return [as_it_stands(place, indent, args)]
    rows = [] if key == "args" else [FormRow("section", place, indent, key)]
    deeper = indent if key == "args" else indent + 2
    tool = source.tool(call)
    for name, value in args.items():
        at = (*place, name)
        info = argument_of(tool, name)
        said = mark_name(tool, name) or mark(value, info.schema if info is not None else None)
        cells = (Cell("key", at, shown_text(name)), *check_cells(at, value, info.schema if info is not None else None))
        rows.append(FormRow("pair", at, deeper, "", cells, marks=(said,) if said else ()))
        rows += option_rows(at, value, deeper + 2)
    return rows


def check_cells(place: Place, value: object, schema: Schema | None) -> tuple[Cell, ...]:
    """Return the cells of one check: its kind, the expected value and its weight."""
    kind, weight = kind_of(value), weight_text(value)
    return (
        Cell("check", place, kind, choices=KINDS),
        Cell("expected", place, value_text(value, schema), shown="any value" if kind == "present" else ""),
        Cell("weight", place, weight, absent=not weight, shown="weight" if not weight else ""),
    )


def option_rows(place: Place, value: object, indent: int, *, of_answer: bool = False) -> Iterator[FormRow]:
    """Yield the rows of a check's options, and of `optional` and `required`."""
    is_plain = kind_of(value) == "is"
    for option in options_of(value):
        cell = Cell("option", place, option.text, not option.text, option.default or "none", option=option.name)
        at = (*place, option.name)
        yield FormRow("field", at, indent, option.name, (cell,), absent=not option.text, rare=is_plain)
    if not of_answer:
        text = "yes" if is_optional(value) else "no"
        cell = Cell("optional", place, text, text == "no")
        yield FormRow("field", (*place, "optional"), indent, "optional", (cell,), absent=text == "no", rare=True)
    if not of_answer and place[-2] != "when":
        text = required_text(value)
        cell = Cell("required", place, text, not text, "" if text else "as the grader has it")
        yield FormRow("field", (*place, "required"), indent, "required", (cell,), absent=not text, rare=True)


def unknown_rows(table: Table, place: Place, indent: int, known: tuple[str, ...]) -> Iterator[FormRow]:
    """Yield rows for keys that the format does not have, so that they can be corrected or removed."""
    for key in table:
        if key not in known:
            yield as_it_stands((*place, key), indent, table[key])


def tool_marks(source: FormSource, call: Table) -> tuple[str, ...]:
    """Return why the tool of a call or mock is unknown."""
    tool = call.get("tool")
    said = mark_tool(source.tools, tool) if isinstance(tool, str) and tool else None
    return (said,) if said else ()


def _tool_row(place: Place, call: Table, indent: int, label: str) -> FormRow:
    tool = call.get("tool", ABSENT)
    cell = tool_cell((*place, "tool"), tool)
    return FormRow("item", place, indent, label, (cell,))


def tool_cell(place: Place, tool: object) -> Cell:
    """Return the cell for the name of a tool."""
    if tool is ABSENT:
        return Cell("tool", place, absent=True, shown="which tool?")
    if isinstance(tool, str):
        return Cell("tool", place, shown_text(tool) if tool else "", shown="" if tool else "which tool?")
    return as_it_stands(place, 0, tool).cells[0]
