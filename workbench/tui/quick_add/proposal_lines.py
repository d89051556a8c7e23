"""Renders a proposed expectation. In the run pane, its lines replace the arguments of the run's calls."""

from __future__ import annotations

from collections.abc import Callable

from workbench.authoring.proposal import AcceptedArgument
from workbench.authoring.quick_add import TYPED, Question, calls_shown
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import ELLIPSIS, Line, Role, Span, cut_line, padded
from workbench.show.views.run_items import CallItem
from workbench.show.visible import compact_json, one_line, widest_cells

_MAX_NAME_CELLS = 18
_KIND_CELLS = 10


def row_in_call(question: Question, focus: tuple[int, int | None]) -> tuple[int, int]:
    """Return the index of the focused call in the run, and the row of the focus within the lines of this call."""
    call, argument = focus
    places = calls_shown(question, question.runs[0].trajectory)
    index = next((at for at, number in places.items() if number == call), 0)
    return index, 0 if argument is None else argument + 1


def unseen_calls(question: Question) -> str:
    """Return the expected calls as text if the run has no calls, otherwise "".

    If the run has calls, `call_lines` shows the expected calls at their place in the run."""
    if question.runs[0].trajectory.calls:
        return ""
    calls: list[str] = []
    for call in question.proposal.calls:
        arguments = []
        for argument in call.arguments:
            if argument.choice.written is not None:
                arguments.append(f"{argument.name}={argument.choice.text}")
        # An ellipsis stands for arguments that the case does not check.
        calls.append(one_line(f"{call.tool}({', '.join(arguments) or ELLIPSIS})"))
    return ", ".join(calls)


def call_lines(question: Question) -> Callable[[CallItem, int], list[Line] | None]:
    """Return a function that renders a call of the run as the proposed expectation.

    The function takes the call's item and a width. It returns `None` for a call without a proposed expectation."""
    places = calls_shown(question, question.runs[0].trajectory)

    def lines(item: CallItem, width: int) -> list[Line] | None:
        number = places.get(item.index) if item.index is not None else None
        if number is None or number >= len(question.proposal.calls):
            return None
        return [cut_line(line, width) for line in _lines(question, number)]

    return lines


def _lines(question: Question, number: int) -> list[Line]:
    call = question.proposal.calls[number]
    is_left_out = number in question.left_out or question.kind == "no call"
    tool: Role = "muted" if is_left_out else "tool"
    head: Line = (*_mark(question, (number, None)), Span(f"{GLYPHS.call} ", "accent"), Span(one_line(call.tool), tool))
    if is_left_out:
        head = (*head, Span("  not expected", "muted"))
    elif question.is_unordered(call):
        head = (*head, Span("  in any order", "muted"))
    found = [head]
    widest = min(widest_cells(call.argument_names), _MAX_NAME_CELLS)
    for at, argument in enumerate(call.arguments):
        found.append((*_mark(question, (number, at)), *_argument(argument, widest, is_left_out=is_left_out)))
    return found


def _mark(question: Question, row: tuple[int, int | None]) -> Line:
    indent = 3 if row[1] is None else 6
    if question.focus != row:
        return (Span(" " * indent),)
    return (Span(GLYPHS.thumb, "accent"), Span(" " * (indent - 1)))


def _argument(argument: AcceptedArgument, widest: int, *, is_left_out: bool) -> Line:
    name = padded(one_line(argument.name), widest)
    if is_left_out:
        return (Span(f"{name}  {compact_json(argument.value, 200)}", "muted"),)
    choice = argument.choice
    line: Line = (Span(f"{name}  ", "key"), Span(f"{choice.kind:<{_KIND_CELLS}} ", "accent"))
    if choice.written is None:
        return (*line, Span(compact_json(argument.value, 200), "muted"))
    line = (*line, Span(one_line(choice.text)))
    if choice.kind == TYPED and argument.value is not None:
        line = (*line, Span(f"  gave {compact_json(argument.value, 200)}", "muted"))
    return line
