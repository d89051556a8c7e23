"""The breakpoint that the cursor refers to: an item of a run, or a row of a case's form."""

from __future__ import annotations

from workbench.authoring.form.tables import tool_of_call, value_at
from workbench.engine.breakpoint_text import BreakpointError, breakpoint_line, breakpoint_of
from workbench.engine.breakpoints import Breakpoint
from workbench.suite.problems import Place
from workbench.suite.render import Table, key_text, one_line
from workbench.tui.lines.spans import Line
from workbench.tui.run_book.shown.items import CallItem, HoldItem, Item, MissingItem, OutcomeItem, ResultItem, RoundItem
from workbench.tui.run_book.shown.places import RunPlace

NOTHING_IN_RUN = "put the cursor on a call, one of its arguments, its result, or a request"
NOTHING_IN_FORM = "put the cursor on an expected call, a step, a mock, or one of their arguments"


def breakpoint_in_run(item: Item | None, place: RunPlace | None, line: Line) -> Breakpoint | str:
    """Return the breakpoint for an item of a run and the selected line of it, or why there is none."""
    match item:
        case CallItem():
            judged = {verdict.argument for verdict in item.verdicts if verdict.holds is not None}
            row = next((span.text.strip() for span in line if span.role == "key"), None)
            return Breakpoint("failed-check" if row in judged else "tool", item.tool)
        case MissingItem():
            return Breakpoint("tool", item.tool)
        case ResultItem() if item.tool:
            failed = item.result is not None and item.result.is_error
            return Breakpoint("error" if failed else "tool", item.tool)
        case RoundItem() | HoldItem():
            return Breakpoint("round", round=item.round)
        case OutcomeItem() if item.result is not None and item.result.status == "failed":
            return Breakpoint("failed-check")
        case None | OutcomeItem():
            return NOTHING_IN_RUN
    return Breakpoint("round", round=place.round) if place is not None else NOTHING_IN_RUN


def breakpoint_in_form(table: Table, place: Place) -> Breakpoint | str:
    """Return the breakpoint for a row of a form, or why there is none: on a tool's call, or on one of its checked
    arguments."""
    length = next((length for length in range(1, len(place) + 1) if tool_of_call(table, place[:length])), 0)
    tool = tool_of_call(table, place[:length])
    if tool is None:
        return NOTHING_IN_FORM
    line = breakpoint_line(Breakpoint("tool", tool))
    inner = place[length:]
    if len(inner) > 1 and inner[0] in ("args", "when"):
        name, value = str(inner[1]), value_at(table, place[: length + 2])
        try:
            line += f" when {{ {key_text(name)} = {one_line(value)} }}"
        except ValueError as error:
            return str(error)
    try:
        return breakpoint_of(line)
    except BreakpointError as error:
        return f"the check has a mistake: {error}"
