"""Two runs side by side: their rows, and the lines of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from workbench.analysis.alignment import How, Kind, Part, Row
from workbench.checks.values import json_equal
from workbench.numerals import duration_text, short_tokens_text
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line
from workbench.show.lazy_lines import GrowingText, JoinedLines, JsonLines, LaidOut, LazyLines, parsed_json, text_rows
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, padded, plain, wrap_line
from workbench.show.views.run_lines import MAX_NAME_CELLS, MAX_RESULT_CHARS
from workbench.show.visible import compact_json, one_line
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Round
from workbench.tui.run_pair.state import Entry, Fold, PairState
from workbench.tui.trajectory.headline import headline, run_name

INDENT = 2
TEXT_ROWS = 3
"""Rows of a differing text before it is shown in full."""

_MAX_LOOKED_AT = 2_000
"""Characters of a value that are considered when it is shown on one row."""

_LEAD = 24
"""The maximum of equal text shown before a difference."""

_LABELS: dict[Kind, str] = {"system": "system: ", "said": "told: ", "result": f"{GLYPHS.result} "}


class Block(NamedTuple):
    """The lines of the left side and those of the right side."""

    left: Sequence[Line]
    right: Sequence[Line]
    how: How


def blocks_of(row: Row, width: int, *, whole: bool) -> list[Block]:
    """Return the lines of a row, `width` cells for each side. With `whole`, nothing is cut."""
    if row.part.kind == "round":
        heads = [[round_head(part.of, width)] if part is not None and part.of else [] for part in (row.left, row.right)]
        return [Block(heads[0], heads[1], "same" if row.how == "differs" else row.how)]
    if row.part.kind == "call":
        return _call(row, width, whole=whole)
    return [_text(row, width, whole=whole)]


def round_head(of: Round, width: int) -> Line:
    """Return the number and usage of a round."""
    line: Line = (Span(f"round {of.number}", "heading"), Span(f"  {round_facts(of)}", "muted"))
    return cut_line(line, width)


def round_facts(of: Round) -> str:
    """Return the step of a chain, the latency and the tokens of a round."""
    parts = [f"step {of.step.step}"] if of.step is not None else []
    if of.latency_ms:
        parts.append(duration_text(of.latency_ms))
    if of.usage is not None:
        parts.append(short_tokens_text(of.usage.input_tokens, of.usage.output_tokens))
    return f" {GLYPHS.dot} ".join(parts)


# Texts


def _text(row: Row, width: int, *, whole: bool) -> Block:
    texts = [_part_text(part) if part is not None else None for part in (row.left, row.right)]
    if whole:
        return Block(_whole_text(row.left, row.how, width), _whole_text(row.right, row.how, width), row.how)
    at = _difference_at(texts[0] or "", texts[1] or "") if row.how == "differs" else 0
    sides = [
        _short_text(part, text, at, row.how, width) if part is not None and text is not None else []
        for part, text in zip((row.left, row.right), texts, strict=True)
    ]
    return Block(sides[0], sides[1], row.how)


def _part_text(part: Part) -> str:
    if part.call is not None and part.call.result is not None:
        return part.call.result.content
    return part.text


def _label(part: Part, how: How) -> Line:
    failed = part.call is not None and part.call.result is not None and part.call.result.is_error
    role: Role = "muted" if how == "same" else "accent"
    label = Span(" " * INDENT + _LABELS.get(part.kind, ""), role)
    return (label, Span("error  ", "failed")) if failed else (label,)


def _short_text(part: Part, text: str, at: int, how: How, width: int) -> list[Line]:
    label = _label(part, how)
    if how == "same":
        return [cut_line((*label, Span(one_line(text[: 2 * width]), "muted")), width)]
    shown = _from(text, at, how, width, TEXT_ROWS)
    if how != "differs" and part.kind == "result" and text[:1] in ("{", "["):
        shown = json_line(plain(shown))
    rows = wrap_line((*label, *shown), width, hang=INDENT)
    if len(rows) > TEXT_ROWS:
        rows[TEXT_ROWS - 1 :] = [cut_line((*rows[TEXT_ROWS - 1], Span(" " * width)), width)]
    return rows


def _whole_text(part: Part | None, how: How, width: int) -> Sequence[Line]:
    if part is None:
        return []
    text = _part_text(part)
    role: Role = "muted" if how == "same" else "text"
    parsed = parsed_json(text, MAX_RESULT_CHARS) if part.kind == "result" else None
    label = _label(part, how)
    head = [cut_line(label, width)] if "".join(span.text for span in label).strip() else []
    if parsed is not None:
        return JoinedLines([head, JsonLines(parsed, width, INDENT + 2)])
    return JoinedLines(
        [head, text_rows(GrowingText(text, MAX_RESULT_CHARS), width, None, role, INDENT + 2 * bool(head))]
    )


def _difference_at(left: str, right: str) -> int:
    """Return the first character where two texts differ, by bisection: they may be long."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _from(text: str, at: int, how: How, width: int, rows: int) -> Line:
    """Return the part of a text that fits into rows. It starts shortly before the difference if that is not in the
    first row."""
    longest = width * rows
    if how != "differs":
        return (Span(one_line(text[:longest]), "text"),)
    begin = max(text.rfind(" ", 0, at - 8) + 1, at - _LEAD) if at > width - 12 else 0
    alike, other = one_line(text[begin:at]), one_line(text[at : begin + longest])
    return Span("…" if begin else "", "muted"), Span(alike, "muted"), Span(other, "warned")


# Calls


def _call(row: Row, width: int, *, whole: bool) -> list[Block]:
    calls = [part.call if part is not None else None for part in (row.left, row.right)]
    if row.how == "same" and not whole:
        line = _in_short(row.part.call, width) if row.part.call is not None else EMPTY
        return [Block([line], [line], "same")]
    left, right = calls
    same_tool = left is not None and right is not None and left.tool == right.tool
    heads = [[_head(call, "same" if row.how == "same" else "text", width)] if call else [] for call in calls]
    blocks = [Block(heads[0], heads[1], "same" if same_tool else row.how)]
    if any(call is not None and call.call.problem is not None for call in calls):
        blocks.append(_pair([_broken(call) for call in calls], width))
    given: list[Mapping[str, JsonValue]] = [call.arguments if call is not None else {} for call in calls]
    names = [*given[0], *(name for name in given[1] if name not in given[0])]
    name_width = min(max((cell_len(one_line(name)) for name in names), default=0), MAX_NAME_CELLS, width // 3)
    for name in names:
        label = " " * (INDENT + 2) + padded(one_line(name), name_width) + "  "
        blocks.append(_argument(label, given[0], given[1], name, width, whole=whole))
    if any(call is not None and call.edited is not None for call in calls):
        blocks.append(_pair([_sent(call) for call in calls], width))
    return blocks


def _head(call: CallRecord, role: Role | How, width: int) -> Line:
    muted = role == "same"
    sign = Span(" " * INDENT + f"{GLYPHS.call} ", "muted" if muted else "accent")
    return cut_line((sign, Span(one_line(call.tool), "muted" if muted else "tool")), width)


def _in_short(call: CallRecord, width: int) -> Line:
    given = ", ".join(f"{one_line(name)}={compact_json(value, width)}" for name, value in call.arguments.items())
    return cut_line((Span(f"{' ' * INDENT}{GLYPHS.call} {one_line(call.tool)}({given})", "muted"),), width)


def _argument(
    label: str, left: Mapping[str, JsonValue], right: Mapping[str, JsonValue], name: str, width: int, *, whole: bool
) -> Block:
    """Return one argument on both sides, after its label."""
    how: How = "right" if name not in left else "left" if name not in right else "differs"
    if how == "differs" and json_equal(left[name], right[name]):
        how = "same"
    longest = MAX_RESULT_CHARS if whole else _MAX_LOOKED_AT
    texts = [compact_json(given[name], longest) if name in given else "" for given in (left, right)]
    at = _difference_at(texts[0], texts[1]) if how == "differs" else 0
    room = max(width - cell_len(label), 1)
    sides: list[Sequence[Line]] = []
    for given, text in zip((left, right), texts, strict=True):
        if name not in given:
            sides.append([])
        elif whole and cell_len(text) > room:
            head = [cut_line((Span(label, "key"),), width)]
            sides.append(JoinedLines([head, JsonLines(given[name], width, INDENT + 4)]))
        else:
            key = Span(label, "muted" if how == "same" else "key")
            sides.append([(key, *_value(text, at, how, room))])
    return Block(sides[0], sides[1], how)


def _value(text: str, at: int, how: How, room: int) -> Line:
    """Return an argument's value on one row. What two runs share or do not has its colour from that."""
    match how:
        case "same":
            return cut_line((Span(text, "muted"),), room)
        case "differs":
            return cut_line(_from(text, at, how, room, 2), room)
        case _:
            return cut_json(text, room)


def _broken(call: CallRecord | None) -> str | None:
    if call is None or call.call.problem is None:
        return None
    return f"{GLYPHS.failed} {call.call.problem}: {call.call.raw or ''}"


def _sent(call: CallRecord | None) -> str | None:
    if call is None or call.edited is None:
        return None
    return f"{GLYPHS.by_hand} sent {compact_json(dict(call.edited), _MAX_LOOKED_AT)}"


def _pair(texts: Sequence[str | None], width: int) -> Block:
    """Return a note for each side."""
    left, right = texts
    how: How = "same" if left == right else "differs" if left and right else "left" if left else "right"
    role: Role = "muted" if how == "same" else "warned"
    lead = Span(" " * (INDENT + 2))
    notes = [[(lead, Span(cut(one_line(text), width - INDENT - 2), role))] if text else [] for text in texts]
    return Block(notes[0], notes[1], how)


GUTTER = 3
"""The width between two columns, for the sign; when stacked, before each line."""

TWO_COLUMNS_CELLS = 72
"""From this width on, the runs are in two columns."""

NARROWEST = 12

_COPIED_CELLS = 160

_SIGNS: dict[How, tuple[str, Role]] = {
    "same": ("│", "border"),
    "differs": (GLYPHS.disagree, "warned"),
    "left": ("<", "warned"),
    "right": (">", "warned"),
}


class PairLines(LaidOut):
    """The lines of two runs at one width."""

    def __init__(self, state: PairState, width: int, *, stacked: bool, whole: bool = False) -> None:
        super().__init__(width)
        self.state = state
        self.stacked = stacked
        self._whole = whole
        self._begin(map(self._rough_height, state.entries))

    def lay_out(self, item: int) -> JoinedLines:
        entry = self.state.entries[item]
        if isinstance(entry, Fold):
            return JoinedLines([[self._fold_line(entry)]])
        row = self.state.rows[entry]
        if self.stacked and row.how in ("same", "differs") and row.part.kind == "round":
            return JoinedLines([[self._both_heads(row)]])
        width, whole = self._side_width, self._whole or entry in self.state.expanded
        lines = _Above if self.stacked else _Beside
        return JoinedLines([lines(block, width) for block in blocks_of(row, width, whole=whole)])

    def arrange(self, width: int, *, stacked: bool) -> None:
        """Set the width and the arrangement."""
        self.stacked, before = stacked, self.stacked
        if stacked is not before:
            self.width = 0
        self.resize(width)

    def turn(self, item: int, folded: bool | None) -> bool:
        """Fold or unfold an entry; `None` toggles. Returns whether that changed anything."""
        entry = self.state.entries[item]
        if isinstance(entry, Fold):
            heights = [self._heights[at] for at in range(len(self._heights))]
            found = self.state.turn(item, folded)
            if found is None:
                return False
            at, count = found
            heights[at : at + max(-count, 0)] = map(self._rough_height, self.state.entries[at : at + max(count, 0)])
            self._begin(heights)
            return True
        if folded is (entry not in self.state.expanded):
            return False
        self.state.expanded ^= {entry}
        self._measure(item)
        return True

    @property
    def _side_width(self) -> int:
        return max(self.width - GUTTER if self.stacked else (self.width - GUTTER) // 2, NARROWEST)

    def _rough_height(self, entry: Entry) -> int:
        if isinstance(entry, Fold):
            return 1
        row = self.state.rows[entry]
        if row.how == "same" or row.part.kind == "round":
            return 1
        return 1 + (len(row.part.call.arguments) if row.part.kind == "call" and row.part.call is not None else 0)

    def _fold_line(self, fold: Fold) -> Line:
        sign = GLYPHS.open if fold in self.state.unfolded else GLYPHS.folded
        return cut_line((Span(f"{sign} {fold.summary}", "comment"),), self.width)

    def _both_heads(self, row: Row) -> Line:
        assert row.left is not None and row.right is not None
        numbers = dict.fromkeys(part.round for part in (row.left, row.right))
        facts = [round_facts(part.of) for part in (row.left, row.right) if part.of is not None]
        name = Span(f"round {' beside round '.join(map(str, numbers))}", "heading")
        parts = tuple(Span(f"  {number} {fact}", "muted") for number, fact in enumerate(facts, 1) if fact)
        return cut_line((name, *parts), self.width)


class _Beside(LazyLines):
    """A block in two columns."""

    def __init__(self, block: Block, width: int) -> None:
        self._block = block
        self._width = width

    def __len__(self) -> int:
        return max(len(self._block.left), len(self._block.right))

    def line(self, index: int) -> Line:
        left, right, how = self._block
        sign, role = _SIGNS[how if not index else "same"]
        return beside(
            left[index] if index < len(left) else EMPTY,
            Span(f" {sign} ", role),
            right[index] if index < len(right) else EMPTY,
            self._width,
        )


class _Above(LazyLines):
    """A block with the left side above the right one. Equal content appears once."""

    def __init__(self, block: Block, width: int) -> None:
        self._left, self._right, self._how = block

    def __len__(self) -> int:
        return len(self._left) + (0 if self._how == "same" else len(self._right))

    def line(self, index: int) -> Line:
        if self._how == "same":
            return (Span(" " * GUTTER), *self._left[index])
        is_left = index < len(self._left)
        at = index if is_left else index - len(self._left)
        sign = _SIGNS[self._how][0] if not index else " "
        lead = f"{sign}{1 if is_left else 2} " if not at else " " * GUTTER
        return (Span(lead, "warned"), *(self._left if is_left else self._right)[at])


def beside(left: Line, between: Span, right: Line, width: int) -> Line:
    """Join two lines as columns of `width` cells."""
    return (*left, Span(" " * max(width - cells(left), 0)), between, *right)


def header_lines(state: PairState, width: int, *, stacked: bool) -> list[Line]:
    """Return the names and results of the runs, on one line or two."""
    others = state.runs if len(set(state.batches)) < len(state.runs) else ()  # otherwise the batches tell them apart
    batches = [f"{batch} " for batch in state.batches] or ["", ""]
    names = [f"{number} {batches[number - 1]}{run_name(run, others)}" for number, run in enumerate(state.runs, 1)]
    if stacked:
        return [(Span(" "), *headline(name, run, width - 1)) for name, run in zip(names, state.runs, strict=True)]
    side = max((width - GUTTER) // 2, NARROWEST)
    left, right = (headline(name, run, side) for name, run in zip(names, state.runs, strict=True))
    return [cut_line(beside(left, Span(" │ ", "border"), right, side), width)]


def copied_pair(state: PairState) -> str:
    """Return the comparison as text without cuts. Folds stay folded."""
    lines = PairLines(state, _COPIED_CELLS, stacked=True, whole=True)
    head = [plain(line).strip() for line in header_lines(state, _COPIED_CELLS, stacked=True)]
    body = (plain(line).rstrip() for entry in range(len(state.entries)) for line in lines.lay_out(entry))
    return "\n".join([*head, state.sentence, "", *body, ""])
