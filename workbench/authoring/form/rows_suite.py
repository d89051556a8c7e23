"""The rows of a suite's settings: everything except its cases."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.authoring.form.fields import Field, as_it_stands, field_row
from workbench.authoring.form.row import Cell, CellKind, FormRow, FormSource
from workbench.authoring.form.rows_calls import DETAIL, unknown_rows
from workbench.authoring.form.rows_mocks import mocks_section, one_of_keys, section
from workbench.authoring.form.rows_tools import named_row, tool_rows
from workbench.authoring.form.settings import GATE_PER, settings_rows
from workbench.authoring.form.typed import shown_text
from workbench.suite.model import Aggregate, Suite
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.rules import MEASURES, STATISTICS

REACHED: tuple[str, ...] = ("command", "url", "module")
"""The keys of which a server has exactly one."""

_REACHED_KINDS: dict[str, CellKind] = {"command": "words", "url": "text", "module": "text"}

_HEAD = (
    Field("name", "text", "which name?", empty_stays=True),
    Field("description", "lines"),
    Field("system", "lines"),
    Field("tags", "names"),
    Field("models", "names", "offline"),
    Field("execute", "yes_no", "no"),
)


def rows_of_suite(source: FormSource) -> Iterator[FormRow]:
    """Yield all rows of a suite's settings, rarely used ones included."""
    table = source.table
    yield from (field_row(table, (), field) for field in _HEAD)
    if table.get("format") != 1:
        yield field_row(table, (), Field("format", "number", "which format?"))
    yield from section(source, "servers", _server_rows)
    yield from section(source, "tools", tool_rows)
    yield from mocks_section(source)
    for key in ("limits", "grading", "gate"):
        yield from settings_rows(source, key, rare=False)
    yield from section(source, "aggregates", _aggregate_rows, rare=True)
    yield from unknown_rows(table, (), 0, tuple(Suite.model_fields))


def _server_rows(_: FormSource, place: Place, server: Table) -> Iterator[FormRow]:
    yield named_row(place, server)
    indent = 1 + DETAIL
    yield one_of_keys(server, place, REACHED, _REACHED_KINDS, indent)
    for key in [key for key in REACHED if key in server][1:]:
        yield as_it_stands((*place, key), indent, server[key])
    fields = [Field("prefix", "text", rare=True)]
    if "url" in server or "transport" in server:
        fields.append(Field("transport", "choice", "http", choices=("http", "sse"), rare=True))
    if "module" in server or "object" in server:
        fields.append(Field("object", "text", "mcp", rare=True))
    yield from (field_row(server, place, field, indent) for field in fields)
    for key, beside in (("env", "command"), ("headers", "url")):
        if key in server or beside in server:
            yield from _map_rows(server, (*place, key), indent)
    known = ("name", *REACHED, "prefix", "transport", "object", "env", "headers")
    yield from unknown_rows(server, place, indent, known)


def _map_rows(table: Table, place: Place, indent: int) -> Iterator[FormRow]:
    """Yield the rows of a table with free names and text values, such as environment variables or headers."""
    written = table.get(str(place[-1]), {})
    if not isinstance(written, dict):
        yield as_it_stands(place, indent, written)
        return
    label = str(place[-1])
    yield FormRow("section", place, indent, label, absent=not written, note="" if written else "none")
    rows = []
    for name, value in written.items():
        at = (*place, name)
        kind: CellKind = "text" if isinstance(value, str) else "value"
        text = value if isinstance(value, str) else as_it_stands(at, 0, value).cells[0].text
        cells = (Cell("key", at, shown_text(name)), Cell(kind, at, text, empty_stays=True))
        rows.append(FormRow("pair", at, indent + 2, "", cells))
    yield from rows


def _aggregate_rows(_: FormSource, place: Place, aggregate: Table) -> Iterator[FormRow]:
    yield named_row(place, aggregate)
    indent = 1 + DETAIL
    fields = (
        Field("of", "choice", "score", choices=MEASURES),
        Field("tags", "names", "all cases"),
        Field("per", "choice", Aggregate.model_fields["per"].default, choices=GATE_PER),
        Field("statistics", "names", ", ".join(Aggregate.model_fields["statistics"].default)),
    )
    yield from (field_row(aggregate, place, field, indent) for field in fields)
    yield from unknown_rows(aggregate, place, indent, tuple(Aggregate.model_fields))
    for key in ("at_least", "above"):
        at, written = (*place, key), aggregate.get(key, {})
        if not isinstance(written, dict):
            yield as_it_stands(at, indent, written)
            continue
        yield FormRow("section", at, indent, key, absent=not written, note="" if written else "none")
        rows = [field_row(written, at, Field(name, "number", rare=True), indent + 2) for name in STATISTICS]
        yield from [*rows, *unknown_rows(written, at, indent + 2, STATISTICS)]
