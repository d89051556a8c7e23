"""The rows of a case, of the tools it defines, and of a suite's settings."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.authoring.form.cells import form_names
from workbench.authoring.form.row import Cell, CellKind, Field, FormRow, FormSource, Limits, as_it_stands, field_row
from workbench.authoring.form.rows_calls import (
    DETAIL,
    calls_section,
    check_cells,
    messages_section,
    mocks_section,
    one_of_keys,
    option_rows,
    section,
    step_rows,
    tool_cell,
    tool_marks,
    unknown_rows,
)
from workbench.authoring.form.settings import GATE_PER, default_text, settings_rows, surplus_default
from workbench.authoring.form.tables import ABSENT, items_at
from workbench.authoring.form.typed import shown_name
from workbench.checks.check import are_named_checks
from workbench.limits import MAX_REPEATS
from workbench.suite.model import Aggregate, Case, Subject, Suite, derived_id
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.rules import MEASURES, STATISTICS
from workbench.suite.tables import EXTRA_CALLS_RULES
from workbench.trajectory.json_types import TEXT

_EXCLUDED_BY_STEPS = ("user", "ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls")


def rows_of_case(source: FormSource) -> Iterator[FormRow]:
    """Yield all rows of a case, rarely used ones included."""
    table = source.table
    yield from _head(source)
    yield from messages_section(source)
    if source.is_chain:
        yield from _steps(source)
        written = [key for key in _EXCLUDED_BY_STEPS if key in table and key != "user"]
    else:
        written = ["ordered", "unordered", "disallowed"]
    for key in ("ordered", "unordered", "disallowed"):
        if key in written:
            yield from calls_section(source, key)
    if not source.is_chain:
        written += ["extra_calls", "expect_no_calls"]
    yield from _rest(source, written)
    yield from mocks_section(source)
    yield from section(source, "tools", tool_rows, rare=True)
    yield from _seldom(source)
    if not source.is_chain and not any(key in table for key in _EXCLUDED_BY_STEPS[1:]):
        yield FormRow("section", ("steps",), 0, "steps", absent=True, rare=True, note="none")
    yield from settings_rows(source, "limits", rare=True)
    yield from settings_rows(source, "grading", rare=True)
    yield from unknown_rows(table, (), 0, tuple(Case.model_fields))


def _head(source: FormSource) -> Iterator[FormRow]:
    table, header = source.table, source.header
    name = table.get("name")
    yield field_row(table, (), Field("name", "text", "which name?", empty_stays=True))
    yield field_row(table, (), Field("id", "text", derived_id(name) if isinstance(name, str) else "none", rare=True))
    yield field_row(table, (), Field("tags", "names"))
    if not source.is_chain or "user" in table:
        yield field_row(table, (), Field("user", "lines", "what is asked?", empty_stays=True))
    yield field_row(table, (), Field("system", "lines", _system_of_suite(header), empty_stays=True))


def _system_of_suite(header: Table) -> str:
    system = header.get("system", ABSENT)
    return default_text(system, system is not ABSENT)


def _steps(source: FormSource) -> Iterator[FormRow]:
    steps = source.table["steps"]
    items = items_at(source.table, ("steps",))
    if not isinstance(steps, list):
        yield from unknown_rows({"steps": steps}, (), 0, ())
        return
    yield FormRow("section", ("steps",), 0, "steps", absent=not items, note="" if items else "none")
    own = source.table.get("system", ABSENT)
    system = _system_of_suite(source.header) if own is ABSENT else f"case: {default_text(own, False)}"
    for index, step in enumerate(items):
        yield from step_rows(source, index, step, system)
    yield field_row(source.table, (), Field("stop_on_failure", "yes_no", "no"))


def _rest(source: FormSource, written: list[str]) -> Iterator[FormRow]:
    table = source.table
    if "extra_calls" in written:
        yield field_row(table, (), Field("extra_calls", "choice", surplus_default(source), choices=EXTRA_CALLS_RULES))
    if "expect_no_calls" in written:
        yield field_row(table, (), Field("expect_no_calls", "yes_no", "no"))
    if "expect_nothing_yet" in table:
        yield field_row(table, (), Field("expect_nothing_yet", "yes_no", "no"))
    if not source.is_chain and "stop_on_failure" in table:
        yield field_row(table, (), Field("stop_on_failure", "yes_no", "no"))
    yield field_row(table, (), Field("response_contains", "names"))
    yield from _response(table.get("response", ABSENT))


def _response(response: object) -> Iterator[FormRow]:
    place = ("response",)
    if response is ABSENT:
        check = Cell("check", place, absent=True, shown="none", choices=form_names())
        yield FormRow("field", place, 0, "response", (check, Cell("response", place, absent=True)), absent=True)
        return
    if isinstance(response, dict) and are_named_checks(response):
        yield FormRow("section", place, 0, "response")
        for name, value in response.items():
            at = (*place, name)
            pair = (Cell("key", at, shown_name(name)), *check_cells(at, value, TEXT)[:2])
            yield FormRow("pair", at, 2, "", pair)
            yield from option_rows(at, value, 2 + DETAIL, of_answer=True)
        return
    cells = check_cells(place, response, TEXT)
    yield FormRow("field", place, 0, "response", cells if cells[2].text else cells[:2])  # a weight has no effect here
    yield from option_rows(place, response, 1 + DETAIL, of_answer=True)


def _seldom(source: FormSource) -> Iterator[FormRow]:
    table, header = source.table, source.header
    yield field_row(table, (), Field("repeats", "number", "1", limits=Limits(1, MAX_REPEATS, whole=True)))
    yield field_row(table, (), Field("skip", "text"))
    yield field_row(table, (), Field("cluster", "text", rare=True))
    yield field_row(table, (), Field("offer", "names", "all tools", rare=True))
    models = header.get("models", ABSENT)
    text = "offline" if models is ABSENT else default_text(models, True)
    yield field_row(table, (), Field("models", "names", text, rare=True))
    execute = header.get("execute", ABSENT)
    text = "no" if execute is ABSENT else default_text(execute, True)
    yield field_row(table, (), Field("execute", "yes_no", text, rare=True))


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


REACHED: tuple[str, ...] = ("command", "url", "module")
"""The keys of which a server has exactly one."""

_REACHED_form_names: dict[str, CellKind] = {"command": "words", "url": "text", "module": "text"}

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
    yield from _subject_rows(table)
    yield from section(source, "servers", _server_rows)
    yield from section(source, "tools", tool_rows)
    yield from mocks_section(source)
    for key in ("limits", "grading", "gate"):
        yield from settings_rows(source, key, rare=False)
    yield from section(source, "aggregates", _aggregate_rows, rare=True)
    yield from section(source, "variants", _variant_rows, rare=True)
    yield from unknown_rows(table, (), 0, tuple(Suite.model_fields))


def _subject_rows(table: Table) -> Iterator[FormRow]:
    """Yield the rows of the subject, where the suite has one."""
    subject = table.get("subject")
    if not isinstance(subject, dict):
        if subject is not None:
            yield as_it_stands(("subject",), 0, subject)
        return
    place: Place = ("subject",)
    yield FormRow("section", place, 0, "subject")
    if "command" in subject:
        yield as_it_stands((*place, "command"), 1, subject["command"])
    yield field_row(subject, place, Field("name", "text", "subject"), 1)
    yield field_row(subject, place, Field("timeout_s", "number"), 1)
    yield from _map_rows(subject, (*place, "env"), 1)
    yield from unknown_rows(subject, place, 1, tuple(Subject.model_fields))


def _server_rows(_: FormSource, place: Place, server: Table) -> Iterator[FormRow]:
    yield named_row(place, server)
    indent = 1 + DETAIL
    yield one_of_keys(server, place, REACHED, _REACHED_form_names, indent)
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
        cells = (Cell("key", at, shown_name(name)), Cell(kind, at, text, empty_stays=True))
        rows.append(FormRow("pair", at, indent + 2, "", cells))
    yield from rows


_OF_VARIANT = (
    Field("description", "lines", rare=True),
    Field("system", "lines", "as written", empty_stays=True),
    Field("model", "text", "each model", rare=True),
    Field("offer", "names", "as written", rare=True),
    Field("params", "json", "as written", rare=True),
)
_OF_CHANGE = (
    Field("name", "text", "as written"),
    Field("description", "lines", "as written", empty_stays=True),
    Field("parameters", "json", "as written", rare=True),
    Field("hidden", "yes_no", "no", rare=True),
)


def _variant_rows(source: FormSource, place: Place, variant: Table) -> Iterator[FormRow]:
    """Yield the rows of one variant. Its own tools, servers and mocks are shown as they stand."""
    yield named_row(place, variant)
    indent = 1 + DETAIL
    yield from (field_row(variant, place, field, indent) for field in _OF_VARIANT)
    if "names" in variant:
        yield from _map_rows(variant, (*place, "names"), indent)
    at = (*place, "changes")
    changes = variant.get("changes", [])
    if isinstance(changes, list):
        yield FormRow("section", at, indent, "changes", absent=not changes, note="" if changes else "none")
        for index, change in enumerate(changes):
            yield from _change_rows(source, (*at, index), change, indent + 1)
    else:
        yield as_it_stands(at, indent, changes)
    yield from unknown_rows(variant, place, indent, ("name", "names", "changes", *(f.key for f in _OF_VARIANT)))


def _change_rows(source: FormSource, place: Place, change: object, indent: int) -> Iterator[FormRow]:
    """Yield the rows of what a variant changes of one tool."""
    label = str(int(place[-1]) + 1)
    if not isinstance(change, dict):
        yield as_it_stands(place, indent, change, label)
        return
    cell = tool_cell((*place, "tool"), change.get("tool", ABSENT))
    yield FormRow("item", place, indent, label, (cell,), marks=tool_marks(source, change))
    inner = indent + DETAIL
    yield from (field_row(change, place, field, inner) for field in _OF_CHANGE)
    if "arguments" in change:
        yield from _map_rows(change, (*place, "arguments"), inner)
    yield from unknown_rows(change, place, inner, ("tool", "arguments", *(field.key for field in _OF_CHANGE)))


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
    for key in ("at_least", "above", "at_most"):
        at, written = (*place, key), aggregate.get(key, {})
        if not isinstance(written, dict):
            yield as_it_stands(at, indent, written)
            continue
        yield FormRow("section", at, indent, key, absent=not written, note="" if written else "none")
        rows = [field_row(written, at, Field(name, "number", rare=True), indent + 2) for name in STATISTICS]
        yield from [*rows, *unknown_rows(written, at, indent + 2, STATISTICS)]
