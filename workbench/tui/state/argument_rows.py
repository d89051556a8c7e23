"""The arguments of a call, one row each: name, value and verdict, every one in its column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from workbench.grading.grade import ArgumentVerdict, Issue
from workbench.reports.visible import one_line
from workbench.trajectory.messages import JsonValue
from workbench.tui.glyphs import GLYPHS
from workbench.tui.highlight import json_line
from workbench.tui.state.json_lines import JsonLines, compact_json
from workbench.tui.state.spans import Line, Role, Span, cut, cut_line, padded, wrap

ARGUMENT_INDENT = 6
LONGEST_NAME = 18
"""Cells of the widest argument name that is aligned."""

SHORTEST_VALUE = 6
"""Cells that a value gets however long the names are."""

_MOST_ON_ONE_ROW = 2_000
"""Characters of a value that are looked at to show it on one row."""

_EXPECTED = " expected "
"""Stands before what was expected, where there is room for the word."""


def argument_rows(
    arguments: Mapping[str, JsonValue],
    verdicts: Sequence[ArgumentVerdict],
    issues: Sequence[Issue],
    width: int,
    expanded: bool,
) -> list[Sequence[Line]]:
    """Lists of lines: the arguments that were given, then those that were expected and were not; a verdict that does
    not fit beside its value goes below it. Expanded, values are shown whole, and issues say why."""
    absent = [verdict.argument for verdict in verdicts if not verdict.given and verdict.argument not in arguments]
    names = [*arguments, *absent]
    if not names:
        return [[(Span(" " * ARGUMENT_INDENT), Span("no arguments", "muted"))]]
    judged = {verdict.argument: verdict for verdict in verdicts}
    faults = {issue.argument: issue for issue in issues if issue.argument is not None}
    marks = {name: _mark(judged.get(name), faults.get(name)) for name in names}
    values = {
        name: compact_json(arguments[name], _MOST_ON_ONE_ROW) if name in arguments else "not given" for name in names
    }
    name_width = min(max(cell_len(one_line(name)) for name in names), LONGEST_NAME)
    room = width - ARGUMENT_INDENT - name_width - 2
    for_marks = 2 + min(max(cell_len(mark) for mark, _ in marks.values()), room // 3)
    value_width = max(min(max(map(cell_len, values.values())), room - for_marks), SHORTEST_VALUE)
    parts: list[Sequence[Line]] = []
    for name in names:
        label = Span(" " * ARGUMENT_INDENT + padded(one_line(name), name_width) + "  ", "key")
        rows = _value_rows(values[name], marks[name], value_width, room, name in arguments)
        if expanded and name in arguments and cell_len(values[name]) > room - for_marks:
            parts.append([cut_line((label, Span(*marks[name])), width)])
            parts.append(JsonLines(arguments[name], width, ARGUMENT_INDENT + 2))
        else:
            parts.append([cut_line(row, width) for row in ((label, *rows[0]), *indented(rows[1:], width - room))])
        if expanded and name in faults:
            why = [(Span(row, "muted"),) for row in wrap(one_line(faults[name].why), room)]
            parts.append(indented(why, width - room))
    return parts


def _value_rows(value: str, mark: tuple[str, Role], value_width: int, room: int, given: bool) -> list[Line]:
    """A value with its verdict beside it: the whole of it, without the word for what was expected, or else below."""
    sign, role = mark
    left = room - value_width - 2
    fitting = next((text for text in (sign, sign.replace(_EXPECTED, " ", 1)) if cell_len(text) <= left), None)
    shown = cut(value, room if fitting is None or not sign else value_width)
    painted: Line = json_line(shown) if given else (Span(shown, "muted"),)
    if not sign:
        return [painted]
    if fitting is not None:
        return [(*painted, Span(" " * (value_width - cell_len(shown) + 2)), Span(fitting, role))]
    return [painted, *signed(sign[:1], sign[2:], role, room, 0)]


def _mark(verdict: ArgumentVerdict | None, fault: Issue | None) -> tuple[str, Role]:
    """What stands behind an argument: a sign and, unless it is right, what was expected."""
    if verdict is not None and not verdict.listed:
        return f"{GLYPHS.failed} unexpected", "failed"
    if verdict is not None and verdict.holds is not None:
        if verdict.holds and fault is not None and fault.kind == "partial credit":
            earned = verdict.score / verdict.weight if verdict.weight else 0.0
            return f"{GLYPHS.warned} {earned:.0%}{_EXPECTED}{one_line(verdict.expected)}", "warned"
        if verdict.holds:
            return GLYPHS.passed, "passed"
        return f"{GLYPHS.failed}{_EXPECTED}{one_line(verdict.expected)}", "failed"
    if fault is not None and verdict is None and fault.kind == "unexpected argument":
        return f"{GLYPHS.dot} not expected, costs nothing", "muted"
    if fault is not None:
        return f"{GLYPHS.failed} {fault.kind.removesuffix(' argument')}", "failed"
    if verdict is not None:
        return f"{GLYPHS.dot} not judged", "muted"
    return "", "text"


def shown_at_argument(issue: Issue, verdicts: Sequence[ArgumentVerdict], arguments: Mapping[str, JsonValue]) -> bool:
    """Whether an issue is about an argument that has a row of its own."""
    if issue.argument is None:
        return False
    return issue.argument in arguments or any(verdict.argument == issue.argument for verdict in verdicts)


def signed(sign: str, text: str, role: Role, width: int, indent: int) -> list[Line]:
    """A wrapped paragraph behind a sign."""
    first, *others = wrap(text, width - indent - 2)
    return [
        (Span(" " * indent), Span(f"{sign} {first}", role)),
        *((Span(" " * (indent + 2)), Span(row, role)) for row in others),
    ]


def indented(lines: Sequence[Line], indent: int) -> list[Line]:
    """Lines moved to the right."""
    return [(Span(" " * indent), *line) for line in lines]
