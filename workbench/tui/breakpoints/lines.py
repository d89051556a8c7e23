"""Breakpoints as lines, completions while one is typed, and the breakpoint for the cursor's position."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.authoring.form.completions import Completion
from workbench.authoring.form.tables import tool_of_call, value_at
from workbench.engine.breakpoints import KINDS, Breakpoint, BreakpointError, breakpoint_line, breakpoint_of
from workbench.grading.status import Status
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Span, behind, cut_line, wrap
from workbench.show.views.run_items import CallItem, HoldItem, Item, MissingItem, OutcomeItem, ResultItem, RoundItem
from workbench.show.views.run_view import RunPlace
from workbench.show.visible import one_line
from workbench.suite.problems import Place
from workbench.suite.render import Table, key_text
from workbench.suite.render import one_line as toml_line
from workbench.tui.breakpoints.project import Breakpoints

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
        case OutcomeItem() if item.result is not None and item.result.status == Status.FAILED:
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
            line += f" when {{ {key_text(name)} = {toml_line(value)} }}"
        except ValueError as error:
            return str(error)
    try:
        return breakpoint_of(line)
    except BreakpointError as error:
        return f"the check has a mistake: {error}"


_NAMED = ("tool", "error", "failed-check")


def point_line(point: Breakpoint, width: int) -> Line:
    """Return one breakpoint: whether it is enabled, and its text."""
    text = one_line(breakpoint_line(point))
    if point.enabled:
        return cut_line((Span(f" {GLYPHS.breakpoint} ", "failed"), Span(text)), width)
    return cut_line((Span(f"   off  {text}", "muted"),), width)


def storage_lines(breakpoints: Breakpoints, width: int) -> list[Line]:
    """Return where breakpoints are stored, or why they are not."""
    if breakpoints.problem is not None:
        return warned_lines(breakpoints.problem, width)
    if breakpoints.file is None:
        text = "For this session only: given with --break on the command line."
    else:
        text = f"Stored in {one_line(str(breakpoints.file.path))}"
    return [(Span(f" {row}", "muted"),) for row in wrap(text, max(width - 2, 10))]


def typing_lines(text: str, mistake: str | None, width: int) -> list[Line]:
    """Return the error in the typed text, otherwise the meaning of its first word."""
    if mistake is not None:
        return warned_lines(mistake, width)
    kind = text.split(" ", 1)[0]
    meaning = next((message for name, message in KINDS.items() if name == kind), "")
    meaning = meaning or f"one of {', '.join(KINDS)}"
    return [(Span(f" {row}", "muted"),) for row in wrap(meaning, max(width - 2, 10))]


def warned_lines(text: str | None, width: int) -> list[Line]:
    """Return a warning, empty if there is none."""
    if text is None:
        return []
    return behind((Span(f" {GLYPHS.warned} ", "warned"),), text, "warned", max(width - 4, 10))


def completions_of(text: str, tools: Sequence[str]) -> tuple[Completion, ...]:
    """Return the completions of the typed text, as complete lines. Names that begin with it come first."""
    kind, blank, name = text.lstrip().partition(" ")
    if not blank:
        begun = (each for each in KINDS if each.startswith(kind))
        return tuple(
            Completion(f"{each} " if each in ("tool", "round") else each, each, KINDS[each].partition(":")[0])
            for each in begun
        )
    if kind not in _NAMED:
        return ()
    typed = name.strip().casefold()
    holding = [tool for tool in tools if typed in tool.casefold()]
    named = sorted(holding, key=lambda tool: not tool.casefold().startswith(typed))
    lines = (breakpoint_line(Breakpoint(on, tool)) for on in KINDS if on == kind for tool in named)
    return tuple(Completion(line, one_line(line)) for line in lines if line != text.strip())
