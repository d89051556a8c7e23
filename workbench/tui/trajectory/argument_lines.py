"""The arguments of a call, one row each, with columns for name, value and verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from workbench.grading.grade import ArgumentVerdict, Issue
from workbench.grading.scoring import part_earned
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json
from workbench.show.lazy_lines import JsonLines, compact_json
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, indented, padded, signed, wrap
from workbench.show.visible import one_line
from workbench.suite.sameness import same
from workbench.trajectory.events import JsonValue

ARGUMENT_INDENT = 6
MAX_NAME_CELLS = 18
"""Longer argument names are not aligned."""

MIN_VALUE_CELLS = 6
"""The minimum width of a value, however long the names are."""

_MAX_ON_ONE_ROW = 2_000
"""Characters of a value that are considered when it is shown on one row."""

_EXPECTED = " expected "
"""The word before an expected value, where it fits."""


_Mark = tuple[str, Role]
"""A note after an argument: its text, beginning with a sign, and its role. Empty if there is none."""


def argument_rows(
    arguments: Mapping[str, JsonValue],
    verdicts: Sequence[ArgumentVerdict],
    issues: Sequence[Issue],
    width: int,
    expanded: bool,
    edited: Mapping[str, JsonValue] | None = None,
) -> list[Sequence[Line]]:
    """Return lists of lines: the given arguments, then expected ones that are missing. A verdict that does not fit next
    to its value goes below it. When expanded, values are complete and issues give reasons. `edited` are the user's
    replacements, shown after the values; verdicts are about the model's own."""
    sent = arguments if edited is None else edited
    given = [*arguments, *(name for name in sent if name not in arguments)]
    absent = [verdict.argument for verdict in verdicts if not verdict.given and verdict.argument not in given]
    names = [*given, *absent]
    if not names:
        return [[(Span(" " * ARGUMENT_INDENT), Span("no arguments", "muted"))]]
    judged = {verdict.argument: verdict for verdict in verdicts}
    faults = {issue.argument: issue for issue in issues if issue.argument is not None}
    marks = {name: [_mark(judged.get(name), faults.get(name)), _edit_mark(name, arguments, sent)] for name in names}
    values = {
        name: compact_json(arguments[name], _MAX_ON_ONE_ROW) if name in arguments else "not given" for name in names
    }
    name_width = min(max(cell_len(one_line(name)) for name in names), MAX_NAME_CELLS)
    room = width - ARGUMENT_INDENT - name_width - 2
    for_marks = min(max(map(_width_of, marks.values())), 2 + room // 3)
    value_width = max(min(max(map(cell_len, values.values())), room - for_marks), MIN_VALUE_CELLS)
    parts: list[Sequence[Line]] = []
    for name in names:
        label = Span(" " * ARGUMENT_INDENT + padded(one_line(name), name_width) + "  ", "key")
        if expanded and name in arguments and cell_len(values[name]) > room - for_marks:
            signs = [Span(f"{text}  ", role) for text, role in marks[name] if text]
            parts.append([cut_line((label, *signs), width)])
            parts.append(JsonLines(arguments[name], width, ARGUMENT_INDENT + 2))
        else:
            rows = _value_rows(values[name], marks[name], value_width, room, name in arguments)
            parts.append([cut_line(row, width) for row in ((label, *rows[0]), *indented(rows[1:], width - room))])
        if expanded and name in sent and cell_len(marks[name][1][0]) > room:
            parts.append(JsonLines(sent[name], width, ARGUMENT_INDENT + 2))
        if expanded and name in faults and faults[name].kind != "schema violation":
            why = [(Span(row, "muted"),) for row in wrap(one_line(faults[name].why), room)]
            parts.append(indented(why, width - room))
    return parts


def _width_of(marks: Sequence[_Mark]) -> int:
    return sum(2 + cell_len(text) for text, _ in marks if text)


def _value_rows(value: str, marks: Sequence[_Mark], value_width: int, room: int, given: bool) -> list[Line]:
    """Return the rows of a value and its notes. Notes that do not fit lose the word "expected", then go below."""
    shorter = [(text.replace(_EXPECTED, " ", 1), role) for text, role in marks]
    own_width = min(cell_len(value), value_width)
    if marks[1][0] and own_width + _width_of(shorter) <= room < value_width + _width_of(shorter):
        value_width = own_width  # An edit is read with its value, so the column matters less.
    if value_width + _width_of(shorter) <= room < value_width + _width_of(marks):
        marks = shorter
    beside: Line = EMPTY
    below: list[Line] = []
    for text, role in marks:
        left = room - value_width - cells(beside) - 2
        fitting = [form for form in (text, text.replace(_EXPECTED, " ", 1)) if cell_len(form) <= left]
        if text and fitting and not below:
            beside = (*beside, Span("  "), Span(fitting[0], role))
        elif text:
            below += signed(text[:1], text[2:], role, room, 0)
    own_room = value_width if beside else room
    painted: Line = cut_json(value, own_room) if given else (Span(cut(value, own_room), "muted"),)
    filled = Span(" " * (value_width - cells(painted))) if beside else Span("")
    return [(*painted, filled, *beside) if beside else painted, *below]


def _edit_mark(name: str, arguments: Mapping[str, JsonValue], sent: Mapping[str, JsonValue]) -> _Mark:
    """Return the note for an argument that the user changed."""
    if name not in sent:
        return f"{GLYPHS.by_hand} not sent" if name in arguments else "", "accent"
    if name in arguments and _alike(arguments[name], sent[name]):
        return "", "accent"
    return f"{GLYPHS.by_hand} sent {compact_json(sent[name], _MAX_ON_ONE_ROW)}", "accent"


def _alike(left: JsonValue, right: JsonValue) -> bool:
    try:
        return same(left, right)
    except RecursionError:
        return False  # too deeply nested to compare


def _mark(verdict: ArgumentVerdict | None, fault: Issue | None) -> _Mark:
    """Return the note of an argument: a sign and, unless it is right, the expected value."""
    if verdict is not None and not verdict.listed:
        return f"{GLYPHS.failed} unexpected", "failed"
    if fault is not None and fault.kind == "schema violation" and (verdict is None or verdict.holds is not False):
        return f"{GLYPHS.failed} refused by the schema", "failed" if fault.decides else "warned"
    if verdict is not None and verdict.holds is not None:
        part = part_earned(verdict.score, verdict.weight) if verdict.counted else ""
        earned = f" {part}" if part else ""
        if verdict.holds and fault is not None and fault.kind == "partial credit":
            return f"{GLYPHS.warned}{earned}{_EXPECTED}{one_line(verdict.expected)}", "warned"
        if verdict.holds:
            return GLYPHS.passed, "passed"
        return f"{GLYPHS.failed}{earned}{_EXPECTED}{one_line(verdict.expected)}", "failed"
    if fault is not None and verdict is None and fault.kind == "unexpected argument":
        return f"{GLYPHS.dot} not expected, costs nothing", "muted"
    if fault is not None:
        return f"{GLYPHS.failed} {fault.kind.removesuffix(' argument')}", "failed"
    if verdict is not None:
        return f"{GLYPHS.dot} not judged", "muted"
    return "", "text"


def shown_at_argument(issue: Issue, verdicts: Sequence[ArgumentVerdict], arguments: Mapping[str, JsonValue]) -> bool:
    """Return whether an issue is about an argument with a row of its own, which says all of it."""
    if issue.argument is None or issue.kind == "schema violation":
        return False
    return issue.argument in arguments or any(verdict.argument == issue.argument for verdict in verdicts)
