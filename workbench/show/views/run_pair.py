"""Two runs side by side, in columns or one above the other.

Values and texts may be long, so lines are built when they are read (`show.lazy_lines`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from workbench.analysis.alignment import AlignedRow, Part, PartKind, PartState
from workbench.checks.values import json_equal
from workbench.numerals import duration_text, short_tokens_text
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line
from workbench.show.lazy_lines import GrowingText, JoinedLines, JsonLines, LazyLines, parsed_json, text_rows
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, padded, plain, wrap_line
from workbench.show.views.run_lines import MAX_NAME_CELLS, MAX_RESULT_CHARS
from workbench.show.views.values import call_text
from workbench.show.visible import compact_json, one_line, widest_cells
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Round

INDENT = 2
TEXT_ROWS = 3
"""Rows of a differing text that are shown before the user expands it."""

_MAX_LOOKED_AT = 2_000
"""Number of characters of a value that are read to show the value on one row."""

_LEAD = 24
"""Most equal characters shown before a difference."""

_LABELS: dict[PartKind, str] = {"system": "system: ", "said": "told: ", "result": f"{GLYPHS.result} "}


class Sides(NamedTuple):
    """The lines of the left run and of the right run that stand side by side."""

    left: Sequence[Line]
    right: Sequence[Line]
    state: PartState


def row_sides(row: AlignedRow, width: int, *, whole: bool) -> list[Sides]:
    """Return the lines of two aligned parts, with `width` cells for each run. With `whole`, nothing is cut."""
    if row.part.kind == "call":
        return _call(row, width, whole=whole)
    if row.part.kind != "round":
        return [_text(row, width, whole=whole)]
    # Latency and tokens differ between any two runs, so their difference needs no sign.
    how = row.state
    if how == "differs":
        how = "same"
    return [Sides(_head_of(row.left, width), _head_of(row.right, width), how)]


def _head_of(part: Part | None, width: int) -> list[Line]:
    if part is None or part.of is None:
        return []
    line: Line = (Span(f"round {part.of.number}", "heading"), Span(f"  {_round_facts(part.of)}", "muted"))
    return [cut_line(line, width)]


def both_heads(left: Part, right: Part, width: int) -> Line:
    """Return the numbers and token usage of two rounds on one line."""
    # Two rounds with the same number are named once.
    numbers = dict.fromkeys((left.round, right.round))
    spans = [Span(f"round {' beside round '.join(map(str, numbers))}", "heading")]
    rounds = filter(None, (left.of, right.of))
    for number, facts in enumerate(map(_round_facts, rounds), 1):
        # A round that is still in flight has no facts yet.
        if facts:
            spans.append(Span(f"  {number} {facts}", "muted"))
    return cut_line(tuple(spans), width)


def fold_line(summary: str, width: int, *, is_open: bool) -> Line:
    """Return the heading of a group of rows that are equal in both runs. `is_open` is true if they are shown."""
    sign = GLYPHS.folded
    if is_open:
        sign = GLYPHS.open
    return cut_line((Span(f"{sign} {summary}", "comment"),), width)


def _round_facts(of: Round) -> str:
    parts: list[str] = []
    if of.step is not None:
        parts.append(f"step {of.step.step}")
    if of.latency_ms:
        parts.append(duration_text(of.latency_ms))
    if of.usage is not None:
        parts.append(short_tokens_text(of.usage.input_tokens, of.usage.output_tokens))
    return f" {GLYPHS.dot} ".join(parts)


_DIMMED: Mapping[PartState, Role] = {"same": "muted"}
"""The role of rows that are equal on both sides. It replaces their own roles."""


# Texts


def _text(row: AlignedRow, width: int, *, whole: bool) -> Sides:
    if whole:
        return Sides(_whole_text(row.left, row.state, width), _whole_text(row.right, row.state, width), row.state)
    at = 0
    if row.state == "differs" and row.left is not None and row.right is not None:
        at = _difference_at(_part_text(row.left), _part_text(row.right))
    return Sides(_short_text(row.left, at, row.state, width), _short_text(row.right, at, row.state, width), row.state)


def _part_text(part: Part) -> str:
    if part.call is not None and part.call.result is not None:
        return part.call.result.content
    return part.text


def _label(part: Part, state: PartState) -> Line:
    label = Span(" " * INDENT + _LABELS.get(part.kind, ""), _DIMMED.get(state, "accent"))
    if part.call is not None and part.call.result is not None and part.call.result.is_error:
        return (label, Span("error  ", "failed"))
    return (label,)


def _short_text(part: Part | None, at: int, state: PartState, width: int) -> list[Line]:
    if part is None:
        return []
    label, text = _label(part, state), _part_text(part)
    if state == "same":
        return [cut_line((*label, Span(one_line(text[: 2 * width]), "muted")), width)]
    shown = _from(text, at, state, width, TEXT_ROWS)
    if state != "differs" and part.kind == "result" and text[:1] in ("{", "["):
        shown = json_line(plain(shown))
    rows = wrap_line((*label, *shown), width, hang=INDENT)
    # The added blanks make the last row too long, so that `cut_line` puts an ellipsis at its end.
    if len(rows) > TEXT_ROWS:
        rows[TEXT_ROWS - 1 :] = [cut_line((*rows[TEXT_ROWS - 1], Span(" " * width)), width)]
    return rows


def _whole_text(part: Part | None, state: PartState, width: int) -> Sequence[Line]:
    if part is None:
        return []
    text, label = _part_text(part), _label(part, state)
    head: list[Line] = []
    indent = INDENT
    if plain(label).strip():
        head.append(cut_line(label, width))
        indent += 2
    if part.kind == "result" and (parsed := parsed_json(text, MAX_RESULT_CHARS)) is not None:
        return JoinedLines([head, JsonLines(parsed, width, INDENT + 2)])
    role = _DIMMED.get(state, "text")
    return JoinedLines([head, text_rows(GrowingText(text, MAX_RESULT_CHARS), width, None, role, indent)])


def _difference_at(left: str, right: str) -> int:
    """Return the index of the first difference between two texts, by bisection because texts may be long."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        # Python compares slices in C, which is faster than a loop over a million characters.
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _from(text: str, at: int, state: PartState, width: int, rows: int) -> Line:
    """Return the part of a text that is shown in at most `rows` rows.

    If the first difference, at the index `at`, is beyond the first row, the part begins shortly before it."""
    longest = width * rows
    if state != "differs":
        return (Span(one_line(text[:longest]), "text"),)
    begin, lead = 0, ""
    if at > width - 12:
        # The part begins at the start of a word, unless that would push the difference out of the row.
        begin, lead = max(text.rfind(" ", 0, at - 8) + 1, at - _LEAD), "…"
    same, other = one_line(text[begin:at]), one_line(text[at : begin + longest])
    return Span(lead, "muted"), Span(same, "muted"), Span(other, "warned")


# Calls


def _call(row: AlignedRow, width: int, *, whole: bool) -> list[Sides]:
    left, right = _call_of(row.left), _call_of(row.right)
    if row.state == "same" and left is not None and not whole:
        line = _in_short(left, width)
        return [Sides([line], [line], "same")]
    role = _DIMMED.get(row.state, "tool")
    how = row.state
    if left is not None and right is not None and left.tool == right.tool:
        how = "same"
    lines = [Sides(_head(left, role, width), _head(right, role, width), how)]
    lines += _notes(_broken(left), _broken(right), width)
    given = _arguments_of(left), _arguments_of(right)
    names = list(dict.fromkeys((*given[0], *given[1])))
    name_width = min(widest_cells(names), MAX_NAME_CELLS, width // 3)
    for name in names:
        label = " " * (INDENT + 2) + padded(one_line(name), name_width) + "  "
        lines.append(_argument(label, given[0], given[1], name, width, whole=whole))
    lines += _notes(_sent(left), _sent(right), width)
    return lines


def _call_of(part: Part | None) -> CallRecord | None:
    if part is None:
        return None
    return part.call


def _arguments_of(call: CallRecord | None) -> Mapping[str, JsonValue]:
    if call is None:
        return {}
    return call.arguments


def _head(call: CallRecord | None, role: Role, width: int) -> list[Line]:
    if call is None:
        return []
    arrow = role
    if role == "tool":
        arrow = "accent"
    sign = Span(" " * INDENT + f"{GLYPHS.call} ", arrow)
    return [cut_line((sign, Span(one_line(call.tool), role)), width)]


def _in_short(call: CallRecord, width: int) -> Line:
    text = call_text(call.tool, call.arguments, width)
    return cut_line((Span(f"{' ' * INDENT}{GLYPHS.call} {text}", "muted"),), width)


def _argument(
    label: str, left: Mapping[str, JsonValue], right: Mapping[str, JsonValue], name: str, width: int, *, whole: bool
) -> Sides:
    how = _how(name in left, name in right, json_equal(left.get(name), right.get(name)))
    longest = _MAX_LOOKED_AT
    if whole:
        longest = MAX_RESULT_CHARS
    of_left, of_right = compact_json(left.get(name), longest), compact_json(right.get(name), longest)
    at = 0
    if how == "differs":
        at = _difference_at(of_left, of_right)
    key = Span(label, _DIMMED.get(how, "key"))
    room = max(width - cell_len(label), 1)
    sides: list[Sequence[Line]] = []
    for given, text in ((left, of_left), (right, of_right)):
        if name not in given:
            sides.append([])
        elif whole and cell_len(text) > room:
            head = [cut_line((Span(label, "key"),), width)]
            sides.append(JoinedLines([head, JsonLines(given[name], width, INDENT + 4)]))
        else:
            sides.append([(key, *_value(text, at, how, room))])
    return Sides(sides[0], sides[1], how)


def _how(in_left: bool, in_right: bool, is_same: bool) -> PartState:
    if not in_left:
        return "right"
    if not in_right:
        return "left"
    if is_same:
        return "same"
    return "differs"


def _value(text: str, at: int, state: PartState, max_width: int) -> Line:
    """Return the value of an argument on one row.

    If the runs have different values, the value has another colour from the first difference on. A value that only one
    run has is highlighted as JSON."""
    match state:
        case "same":
            return cut_line((Span(text, "muted"),), max_width)
        case "differs":
            return cut_line(_from(text, at, state, max_width, 2), max_width)
        case _:
            return cut_json(text, max_width)


def _broken(call: CallRecord | None) -> str | None:
    if call is None or call.call.problem is None:
        return None
    return f"{GLYPHS.failed} {call.call.problem}: {call.call.raw or ''}"


def _sent(call: CallRecord | None) -> str | None:
    if call is None or call.edited is None:
        return None
    return f"{GLYPHS.by_hand} sent {compact_json(dict(call.edited), _MAX_LOOKED_AT)}"


def _notes(left: str | None, right: str | None, width: int) -> list[Sides]:
    if left is None and right is None:
        return []
    how = _how(left is not None, right is not None, left == right)
    role = _DIMMED.get(how, "warned")
    return [Sides(_note(left, role, width), _note(right, role, width), how)]


def _note(text: str | None, role: Role, width: int) -> list[Line]:
    if text is None:
        return []
    return [(Span(" " * (INDENT + 2)), Span(cut(one_line(text), width - INDENT - 2), role))]


GUTTER = 3
"""Width of the sign in cells: between two columns, or before each line of stacked sides."""

TWO_COLUMNS_CELLS = 72
"""Minimum width in cells for two columns."""

NARROWEST = 12

_SIGNS: dict[PartState, tuple[str, Role]] = {
    "same": ("│", "border"),
    "differs": (GLYPHS.disagree, "warned"),
    "left": ("<", "warned"),
    "right": (">", "warned"),
}


class SideBySideColumns(LazyLines):
    """Both sides of a pair in two columns."""

    def __init__(self, sides: Sides, width: int) -> None:
        self._sides = sides
        self._width = width

    def __len__(self) -> int:
        return max(len(self._sides.left), len(self._sides.right))

    def line(self, index: int) -> Line:
        left, right, how = self._sides
        # The sign for a difference is shown only on its first line.
        if index:
            how = "same"
        sign, role = _SIGNS[how]
        return two_columns(_line_at(left, index), Span(f" {sign} ", role), _line_at(right, index), self._width)


def _line_at(lines: Sequence[Line], index: int) -> Line:
    if index >= len(lines):
        return EMPTY
    return lines[index]


class StackedColumns(LazyLines):
    """The left side of a pair above its right side. Lines that are equal on both sides appear once."""

    def __init__(self, sides: Sides, width: int) -> None:
        self._left, self._right, self._how = sides

    def __len__(self) -> int:
        if self._how == "same":
            return len(self._left)
        return len(self._left) + len(self._right)

    def line(self, index: int) -> Line:
        if self._how == "same":
            return (Span(" " * GUTTER), *self._left[index])
        side, number, at = self._left, 1, index
        if index >= len(self._left):
            side, number, at = self._right, 2, index - len(self._left)
        lead = " " * GUTTER
        if at == 0:
            sign = " "
            if index == 0:
                sign = _SIGNS[self._how][0]
            lead = f"{sign}{number} "
        return (Span(lead, "warned"), *side[at])


def two_columns(left: Line, between: Span, right: Line, width: int) -> Line:
    """Return two lines as columns of `width` cells, with `between` between them."""
    return (*left, Span(" " * max(width - cells(left), 0)), between, *right)
