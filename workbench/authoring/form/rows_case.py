"""The rows of a case."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.authoring.form.cells import KINDS
from workbench.authoring.form.fields import Field, field_row
from workbench.authoring.form.json_types import TEXT
from workbench.authoring.form.row import Cell, FormRow, FormSource, Limits
from workbench.authoring.form.rows_calls import DETAIL, calls_section, check_cells, option_rows, step_rows, unknown_rows
from workbench.authoring.form.rows_mocks import messages_section, mocks_section, section
from workbench.authoring.form.rows_tools import tool_rows
from workbench.authoring.form.settings import default_text, settings_rows
from workbench.authoring.form.tables import ABSENT, items_at
from workbench.suite.model import MOST_REPEATS, Case, derived_id
from workbench.suite.render import Table

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
        yield field_row(table, (), Field("extra_calls", "choice", "allow", choices=("allow", "forbid")))
    if "expect_no_calls" in written:
        yield field_row(table, (), Field("expect_no_calls", "yes_no", "no"))
    if not source.is_chain and "stop_on_failure" in table:
        yield field_row(table, (), Field("stop_on_failure", "yes_no", "no"))
    yield field_row(table, (), Field("response_contains", "names"))
    yield from _response(table.get("response", ABSENT))


def _response(response: object) -> Iterator[FormRow]:
    place = ("response",)
    if response is ABSENT:
        check = Cell("check", place, absent=True, shown="none", choices=KINDS)
        yield FormRow("field", place, 0, "response", (check, Cell("response", place, absent=True)), absent=True)
        return
    cells = check_cells(place, response, TEXT)
    yield FormRow("field", place, 0, "response", cells if cells[2].text else cells[:2])  # a weight has no effect here
    yield from option_rows(place, response, 1 + DETAIL, of_answer=True)


def _seldom(source: FormSource) -> Iterator[FormRow]:
    table, header = source.table, source.header
    yield field_row(table, (), Field("repeats", "number", "1", limits=Limits(1, MOST_REPEATS, whole=True)))
    yield field_row(table, (), Field("skip", "text"))
    yield field_row(table, (), Field("offer", "names", "all tools", rare=True))
    models = header.get("models", ABSENT)
    said = "offline" if models is ABSENT else default_text(models, True)
    yield field_row(table, (), Field("models", "names", said, rare=True))
    execute = header.get("execute", ABSENT)
    said = "no" if execute is ABSENT else default_text(execute, True)
    yield field_row(table, (), Field("execute", "yes_no", said, rare=True))
