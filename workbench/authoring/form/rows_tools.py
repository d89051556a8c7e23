"""Rows for tools that a suite or a case defines."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.authoring.form.fields import Field, as_it_stands, field_row
from workbench.authoring.form.row import Cell, FormRow, FormSource
from workbench.authoring.form.rows_calls import DETAIL, unknown_rows
from workbench.authoring.form.tables import ABSENT
from workbench.suite.problems import Place
from workbench.suite.render import Table

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def tool_rows(_: FormSource, place: Place, tool: Table) -> Iterator[FormRow]:
    """Yield the rows of one tool: name, description, parameters and MCP's hints."""
    yield named_row(place, tool)
    indent = 1 + DETAIL
    fields = (Field("description", "lines"), Field("parameters", "json", "no arguments"))
    annotations = tool.get("annotations", {})
    yield from (field_row(tool, place, field, indent) for field in fields)
    yield from unknown_rows(tool, place, indent, ("name", "description", "parameters", "annotations"))
    at = (*place, "annotations")
    if not isinstance(annotations, dict):
        yield as_it_stands(at, indent, annotations)
        return
    yield FormRow("section", at, indent, "annotations", absent=not annotations, rare=True)
    hints = [Field("title", "text", rare=True), *(Field(hint, "yes_no", "not said", rare=True) for hint in _HINTS)]
    rows = [field_row(annotations, at, hint, indent + 2) for hint in hints]
    yield from [*rows, *unknown_rows(annotations, at, indent + 2, ("title", *_HINTS))]


def named_row(place: Place, table: Table) -> FormRow:
    """Return the row of an element that has a name."""
    index = place[-1]
    assert isinstance(index, int)
    name = table.get("name", ABSENT)
    at = (*place, "name")
    if name is ABSENT:
        cell = Cell("text", at, absent=True, shown="which name?", empty_stays=True)
    elif isinstance(name, str):
        cell = Cell("text", at, name, shown="" if name else "which name?", empty_stays=True)
    else:
        cell = as_it_stands(at, 0, name).cells[0]
    return FormRow("item", place, 1, str(index + 1), (cell,))
