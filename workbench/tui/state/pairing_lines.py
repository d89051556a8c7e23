"""The pairing of a grade as lines: who was matched with whom, what every argument earned, what each line is worth.

Where there is room, what was expected stands beside what was done; else below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from workbench.grading.findings import describe_call, describe_expected
from workbench.grading.formulas import Amount, figure, in_numbers
from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.grading.readings import Account
from workbench.grading.thresholds import ROUNDING_SLACK
from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.highlight import json_line
from workbench.tui.state.grades import GradesState
from workbench.tui.state.json_lines import compact_json
from workbench.tui.state.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, padded, wrap

SIDE_BY_SIDE_CELLS = 76
"""From this width on what was expected and what was done stand side by side."""

LONGEST_NAME = 18
INDENT = 4
EARNED_CELLS = 19

MOST_PAIRINGS = 300
"""Lines of a pairing that are shown."""

_FOLDED, _UNFOLDED = 2_000, 20_000
"""Characters of a value that are looked at, on one row or on as many as it needs."""

EARN_BY_ARGUMENT = frozenset({"critics", "decision", "dimensions"})
"""Graders under which an argument earns something by itself; under the others a call is right or not."""


class _Columns(NamedTuple):
    """Cells of the columns. Without room for two `expected` is 0, and what was expected stands below."""

    name: int
    expected: int
    got: int


def pairing_lines(state: GradesState, width: int) -> list[Line]:
    """All lines of the pairing of the grade under the cursor, with a heading."""
    grade, accounts = state.selected, state.explanation.accounts
    if not grade.pairings:
        return []
    columns = _columns(grade.pairings, width)
    lines: list[Line] = [EMPTY, _heading(columns)]
    for pairing, account in list(zip(grade.pairings, accounts, strict=True))[:MOST_PAIRINGS]:
        if pairing.prohibition is not None:
            lines += _prohibition(state, pairing, width)
        elif pairing.expected_call is None:
            lines += _extra(state, pairing, columns, width)
        else:
            lines += _expected(state, pairing, columns, width)
        lines += _worth(pairing, account, width)
    if len(grade.pairings) > MOST_PAIRINGS:
        left = len(grade.pairings) - MOST_PAIRINGS
        lines.append((Span(f" {GLYPHS.running} {left:,} more calls and expectations", "comment"),))
    return lines


def _columns(pairings: Sequence[CallPairing], width: int) -> _Columns:
    names = (verdict.argument for pairing in pairings[:MOST_PAIRINGS] for verdict in pairing.arguments)
    name = min(max((cell_len(one_line(name)) for name in names), default=0), LONGEST_NAME)
    room = width - INDENT - name - 2 - EARNED_CELLS
    if width >= SIDE_BY_SIDE_CELLS:
        return _Columns(name, room // 2 - 2, room - room // 2)
    return _Columns(name, 0, max(room, 8))


def _heading(columns: _Columns) -> Line:
    if not columns.expected:
        return (Span(" Calls", "heading"),)
    start = INDENT + columns.name + 2 + columns.expected + 2
    return (Span(padded(" Expected", start), "heading"), Span("Made", "heading"))


def _expected(state: GradesState, pairing: CallPairing, columns: _Columns, width: int) -> list[Line]:
    """An expected call with the call it was paired with, or without one."""
    assert pairing.expected_call is not None
    wanted = state.expected[pairing.expected_call]
    number = Span(f" {pairing.expected_call + 1:>2} ", "muted")
    made = _made(state, pairing, brief=not columns.expected)
    earned = ""
    if pairing.call is not None and pairing.tool_weight:
        earned = _amount(pairing.tool_score, pairing.tool_weight)
    name = one_line(wanted.tool)
    if columns.expected:
        room = columns.name + 2 + columns.expected
        head: Line = (number, Span(padded(name, room), "tool"), Span("  "), *made)
    else:
        head = (number, Span(name, "tool"), Span("  "), *made)
    lines = [_with_earned(head, earned, "muted", width)]
    if wanted.args is None:
        lines.append(cut_line((Span(" " * INDENT), Span("arguments do not matter", "muted")), width))
    for verdict in pairing.arguments:
        lines += _argument(state, pairing, verdict, columns, width)
    return lines


def _made(state: GradesState, pairing: CallPairing, *, brief: bool) -> Line:
    """The actual call of a line, or that there is none; `brief`: a tool that is the expected one is not said again."""
    if pairing.call is None:
        return (Span(f"{GLYPHS.missing} never called", "failed"),)
    tool = state.calls[pairing.call].tool
    arrow = Span(f"{GLYPHS.call} call {pairing.call + 1} ", "muted")
    same = pairing.expected_call is not None and state.expected[pairing.expected_call].tool == tool
    if same and brief:
        return (arrow,)
    return (arrow, Span(one_line(tool), "tool" if same or pairing.same_tool else "failed"))


def _argument(
    state: GradesState, pairing: CallPairing, verdict: ArgumentVerdict, columns: _Columns, width: int
) -> list[Line]:
    """One argument: name, what was expected, what came, whether it holds and what it earned."""
    by_argument = state.selected.grader in EARN_BY_ARGUMENT
    sign, role = _sign(verdict)
    earned = f"{sign} {_earned(verdict)}" if by_argument else sign
    label = padded(one_line(verdict.argument), columns.name)
    lead = Span(" " * INDENT + label + "  ", "key")
    expected = one_line(verdict.expected)
    given = verdict.given and pairing.call is not None
    got = "not given" if pairing.call is not None else ""
    if verdict.given or verdict.got is not None:
        got = compact_json(verdict.got, _UNFOLDED if state.more else _FOLDED) + ("" if verdict.given else " by default")
    lines: list[Line] = []
    if columns.expected:
        left = wrap(expected, columns.expected) if state.more else [cut(expected, columns.expected)]
        right = wrap(got, columns.got - 2) if state.more else [cut(got, columns.got - 2)]
        for row, (one, other) in enumerate(zip_longest(left, right, fillvalue="")):
            start = lead if row == 0 else Span(" " * cell_len(lead.text))
            line: Line = (start, Span(padded(one, columns.expected) + "  ", "muted"), *_value(other, given))
            lines.append(_with_earned(line, earned if row == 0 else "", role, width))
    else:
        shown = got if pairing.call is not None else f"expected {expected}"
        rows = wrap(shown, columns.got) if state.more else [cut(shown, columns.got)]
        lines.append(_with_earned((lead, *_value(rows[0], given)), earned, role, width))
        indent = Span(" " * cell_len(lead.text))
        lines += [(indent, *_value(row, given)) for row in rows[1:]]
        if pairing.call is not None and verdict.holds is not True:
            lines += _below(f"expected {expected}", width, state.more)
    if state.more and verdict.why not in ("", got) and verdict.holds is not True and pairing.call is not None:
        lines += _below(one_line(verdict.why), width, True)
    return lines


def _below(text: str, width: int, whole: bool) -> list[Line]:
    """Something about an argument, below it."""
    room = width - INDENT - 4
    rows = wrap(text, room) if whole else [cut(text, room)]
    return [(Span(" " * (INDENT + 2)), Span(row, "muted")) for row in rows]


def _value(text: str, given: bool) -> Line:
    return json_line(text) if given else (Span(text, "muted"),)


def _with_earned(line: Line, earned: str, role: Role, width: int) -> Line:
    """A line with what it earned in the last column."""
    if not earned:
        return cut_line(line, width)
    at = width - EARNED_CELLS + 1
    line = cut_line(line, at - 1)
    return (*line, Span(" " * (at - cells(line))), Span(cut(earned, EARNED_CELLS - 1), role))


def _sign(verdict: ArgumentVerdict) -> tuple[str, Role]:
    if verdict.holds is None:
        return GLYPHS.dot, "muted"
    if not verdict.holds:
        return GLYPHS.failed, "failed"
    return (GLYPHS.warned, "warned") if verdict.score < verdict.weight - ROUNDING_SLACK else (GLYPHS.passed, "passed")


def _earned(verdict: ArgumentVerdict) -> str:
    if verdict.holds is None:
        return "not judged"
    return _amount(verdict.score, verdict.weight) if verdict.counted else "not counted"


def _amount(earned: float, weight: float) -> str:
    return f"{figure(earned)} of {figure(weight)}"


def _extra(state: GradesState, pairing: CallPairing, columns: _Columns, width: int) -> list[Line]:
    """A call that no expectation stands behind."""
    assert pairing.call is not None
    lead = INDENT + columns.name + 2 + columns.expected + 2 if columns.expected else 1
    record = state.calls[pairing.call]
    number = f"{GLYPHS.call} call {pairing.call + 1} "
    blanks = " " * cell_len(number)
    texts = [one_line(describe_call(record))]
    if state.more:
        whole = f"{one_line(record.tool)} {compact_json(dict(record.arguments), _UNFOLDED)}"
        texts = wrap(whole, max(width - lead - cell_len(number), 10))
    return [
        cut_line((Span(" " * lead), Span(number if row == 0 else blanks, "muted"), Span(text, "tool")), width)
        for row, text in enumerate(texts)
    ]


def _prohibition(state: GradesState, pairing: CallPairing, width: int) -> list[Line]:
    """A prohibition, and the call that broke it, if one did."""
    assert pairing.prohibition is not None
    what = one_line(describe_expected(state.case.disallowed[pairing.prohibition]))
    sign, role = (GLYPHS.passed, "passed") if pairing.call is None else (GLYPHS.failed, "failed")
    broken = "" if pairing.call is None else f"  broken by call {pairing.call + 1}"
    line: Line = (Span(f" {sign}  ", role), Span("no ", "muted"), Span(what, "tool"), Span(broken, "failed"))  # type: ignore[arg-type]
    return [cut_line(line, width)]


def _worth(pairing: CallPairing, account: Account | None, width: int) -> list[Line]:
    """What became of a line, how its credit came about, and what that does to the score."""
    parts = [pairing.outcome] if pairing.outcome and pairing.prohibition is None else []
    if not parts and pairing.expected_call is None and pairing.prohibition is None:
        parts.append("extra")
    role: Role = "muted"
    if account is not None:
        if account.formula is not None and not isinstance(account.formula, Amount):
            parts.append(in_numbers(account.formula))
        if account.share < 0:
            parts.append(f"takes {figure(-account.share)} from the score")
            role = "failed"
        elif account.most == 0:
            parts.append("costs nothing")
        else:
            parts.append(f"adds {figure(account.share)} of {figure(account.most)}")
            if account.share < account.most - ROUNDING_SLACK:
                role = "warned" if account.share > 0 else "failed"
    if not parts:
        return []
    said = one_line(f" {GLYPHS.dot} ".join(parts))
    return [(Span(" " * INDENT), Span(row, role)) for row in wrap(said, max(width - INDENT, 10))]
