"""The pairing of a grade as lines: which calls match, and the score of each argument and line.

The expected call is next to the actual one if there is room, otherwise above it. Among many calls, a correct one takes
a single line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from workbench.checks.check import describe
from workbench.grading.explanation import Account, Amount, in_numbers
from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.grading.pairing import describe_call, describe_expected
from workbench.grading.scoring import ROUNDING_SLACK
from workbench.numerals import figure
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import json_line
from workbench.show.lazy_lines import compact_json
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut_line, padded, spread, wrap, wrap_line
from workbench.show.visible import one_line
from workbench.tui.grades.pairing_arguments import (
    EARNED_CELLS,
    INDENT,
    UNFOLDED,
    Columns,
    amount_text,
    argument_lines,
    with_earned,
)
from workbench.tui.grades.state import GradesState, SilentStep
from workbench.tui.grades.step_lines import silent_lines, silent_steps, step_label

SIDE_BY_SIDE_CELLS = 76
"""From this width on, expected and actual calls are side by side."""

MAX_NAME_CELLS = 18
_PLACE_CELLS = len("any order") + 2

MAX_PAIRINGS = 300
"""The number of pairings shown."""

FOLDED_FROM = 4
"""From this number of pairings on, correct ones are folded."""

_WRONG_ALONE = frozenset({"too many", "unexpected", "must not be called", "called where nothing should be", "extra"})
"""Outcomes of calls without an expectation that are wrong even if they do not affect the score."""


class Block(NamedTuple):
    """The lines of one call, expectation or heading. `right` is true if nothing is wrong with it."""

    lines: list[Line]
    right: bool = True


_Entry = tuple[CallPairing | SilentStep, Account | None]
"""A pairing or step with lines of its own, and its score."""


def pairing_blocks(state: GradesState, width: int) -> list[Block]:
    """Return all lines of the selected grade's pairing, with a heading."""
    grade, accounts = state.selected, state.explanation.accounts
    entries: list[_Entry] = [
        *zip(grade.pairings, accounts, strict=True),
        *((step, None) for step in silent_steps(state)),
    ]
    if not entries:
        return []
    if state.case.steps:
        entries.sort(key=lambda line: state.step_of(line[0]) or sys.maxsize)
    columns = _columns(state, grade.pairings, width)
    folding = len(grade.pairings) >= FOLDED_FROM and not state.more
    blocks = [Block([EMPTY, _heading(columns)])]
    for pairing, account in entries[:MAX_PAIRINGS]:
        if isinstance(pairing, SilentStep):
            blocks.append(Block(silent_lines(state, pairing, width), pairing.reached))
            continue
        right = _is_right(pairing, account)
        if pairing.prohibition is not None:
            lines = _prohibition(state, pairing, width)
        elif pairing.expected_call is None:
            lines = _extra(state, pairing, columns, width)
        elif right and folding:
            blocks.append(Block(_folded(state, pairing, account, columns, width)))
            continue
        else:
            lines = _expected(state, pairing, columns, width)
        blocks.append(Block([*lines, *_worth(pairing, account, width)], right))
    if len(entries) > MAX_PAIRINGS:
        left = len(entries) - MAX_PAIRINGS
        blocks.append(Block([(Span(f" {GLYPHS.running} {left:,} more calls and expectations", "comment"),)]))
    return blocks


def _is_right(pairing: CallPairing, account: Account | None) -> bool:
    if pairing.prohibition is not None:
        return pairing.call is None
    full = True
    if account is not None and account.share is not None and account.most is not None:
        full = account.share >= account.most - ROUNDING_SLACK
    if pairing.expected_call is None:
        return full and pairing.outcome not in _WRONG_ALONE
    if pairing.call is None or not pairing.same_tool or not full:
        return False
    return all(
        verdict.holds is not False and verdict.score >= verdict.weight - ROUNDING_SLACK for verdict in pairing.arguments
    )


def _columns(state: GradesState, pairings: Sequence[CallPairing], width: int) -> Columns:
    shown = pairings[:MAX_PAIRINGS]
    names = {verdict.argument for pairing in shown for verdict in pairing.arguments}
    for pairing in shown:
        if pairing.expected_call is not None:
            names.update(state.expected[pairing.expected_call].args or ())
    name = min(max((cell_len(one_line(name)) for name in names), default=0), MAX_NAME_CELLS)
    room = width - INDENT - name - 2 - EARNED_CELLS
    if width >= SIDE_BY_SIDE_CELLS:
        return Columns(name, room // 2 - 2, room - room // 2)
    return Columns(name, 0, max(room, 8))


def _heading(columns: Columns) -> Line:
    if not columns.expected:
        return (Span(" Calls", "heading"),)
    start = INDENT + columns.name + 2 + columns.expected + 2
    return (Span(padded(" Expected", start), "heading"), Span("Made", "heading"))


def _expected(state: GradesState, pairing: CallPairing, columns: Columns, width: int) -> list[Line]:
    """Return the lines of an expected call and the call that it was paired with, if any."""
    assert pairing.expected_call is not None
    wanted = state.expected[pairing.expected_call]
    made = _made(state, pairing, brief=not columns.expected)
    earned = ""
    role: Role = "muted"
    if pairing.call is not None and pairing.tool_weight:
        sign, role = (GLYPHS.passed, "passed") if pairing.same_tool else (GLYPHS.failed, "failed")
        earned = f"{sign} {amount_text(pairing.tool_score, pairing.tool_weight)}"
    head = _beside(_wanted(state, pairing, (Span(one_line(wanted.tool_text), "tool"),)), made, columns)
    lines = [with_earned(head, earned, role, width)]
    arguments = pairing.arguments
    if pairing.call is None and not arguments:
        arguments = tuple(
            ArgumentVerdict(name, None, 0.0, 0.0, describe(check), None, False, "")
            for name, check in (wanted.args or {}).items()
            if not check.optional
        )
    if wanted.args is None:
        lines.append(cut_line((Span(" " * INDENT), Span("arguments do not matter", "muted")), width))
    for verdict in arguments:
        lines += argument_lines(state, pairing, verdict, columns, width)
    return lines


def _folded(
    state: GradesState, pairing: CallPairing, account: Account | None, columns: Columns, width: int
) -> list[Line]:
    """Return a correct call on one line."""
    assert pairing.expected_call is not None
    assert pairing.call is not None
    record = state.calls[pairing.call]
    number = Span(f"{GLYPHS.call} call {pairing.call + 1} ", "muted")
    made: Line = (number, *_elsewhere(state, pairing), Span(one_line(describe_call(record)), "tool"))
    wanted: Line = ()
    if columns.expected:
        wanted = (Span(one_line(describe_expected(state.expected[pairing.expected_call])), "tool"),)
    line = _beside(_wanted(state, pairing, wanted), made, columns)
    if not columns.expected:
        return [spread(line, (Span(GLYPHS.passed, "passed"),), width)]
    added = "" if account is None or account.share is None else f" adds {figure(account.share)}"
    return [with_earned(line, f"{GLYPHS.passed}{added}", "passed", width)]


def _wanted(state: GradesState, pairing: CallPairing, what: Line) -> Line:
    """Return an expected call after its step or number and, if the grader considers the order, its position."""
    assert pairing.expected_call is not None
    if step := step_label(state.step_of(pairing)):
        return (Span(step, "muted"), *what)
    number = Span(f" {pairing.expected_call + 1:>2} ", "muted")
    if not state.traits.shows_order:
        return (number, *what)
    return (number, Span(f"{state.places[pairing.expected_call]:<{_PLACE_CELLS}}", "comment"), *what)


def _beside(wanted: Line, made: Line, columns: Columns) -> Line:
    """Put the expected and the actual call on one line, in columns if there is room."""
    if not columns.expected:
        return (*wanted, Span("  "), *made) if wanted[-1].role == "tool" else (*wanted, *made)
    room = INDENT + columns.name + 2 + columns.expected
    wanted = cut_line(wanted, room)
    return (*wanted, Span(" " * (room - cells(wanted) + 2)), *made)


def _made(state: GradesState, pairing: CallPairing, *, brief: bool) -> Line:
    """Return the actual call of a pairing, or that there is none. With `brief`, an expected tool is not repeated."""
    if pairing.call is None:
        return (Span(f"{GLYPHS.missing} never called", "failed"),)
    tool = state.calls[pairing.call].tool
    nearest = "nearest is " if state.traits.shows_order and pairing.outcome == "unmet" else ""
    arrow: Line = (Span(f"{GLYPHS.call} {nearest}call {pairing.call + 1} ", "muted"), *_elsewhere(state, pairing))
    same = pairing.expected_call is not None and state.expected[pairing.expected_call].tool == tool
    if same and brief:
        return arrow
    return (*arrow, Span(one_line(tool), "tool" if same or pairing.same_tool else "failed"))


def _elsewhere(state: GradesState, pairing: CallPairing) -> Line:
    """Return a note if a call was made outside of the step that expects it."""
    where = state.made_elsewhere(pairing)
    return (Span(f"{where} ", "warned"),) if where else EMPTY


def _extra(state: GradesState, pairing: CallPairing, columns: Columns, width: int) -> list[Line]:
    """Return the lines of a call without an expectation."""
    assert pairing.call is not None
    step = step_label(state.step_of(pairing))
    lead = INDENT + columns.name + 2 + columns.expected + 2 if columns.expected else cell_len(step) or 1
    record = state.calls[pairing.call]
    number = f"{GLYPHS.call} call {pairing.call + 1} "
    blanks = " " * cell_len(number)
    texts: list[Line] = [(Span(one_line(describe_call(record)), "tool"),)]
    if state.more:
        given = json_line(compact_json(dict(record.arguments), UNFOLDED))
        whole = (Span(f"{one_line(record.tool)} ", "tool"), *given)
        texts = wrap_line(whole, max(width - lead - cell_len(number), 10))
    return [
        cut_line(
            (
                Span(padded(step if row == 0 else "", lead), "muted"),
                Span(number if row == 0 else blanks, "muted"),
                *text,
            ),
            width,
        )
        for row, text in enumerate(texts)
    ]


def _prohibition(state: GradesState, pairing: CallPairing, width: int) -> list[Line]:
    """Return the line of a prohibition, and the call that broke it, if any."""
    assert pairing.prohibition is not None
    what = one_line(describe_expected(state.case.disallowed[pairing.prohibition]))
    sign, role = (GLYPHS.passed, "passed") if pairing.call is None else (GLYPHS.failed, "failed")
    broken = "" if pairing.call is None else f"  broken by call {pairing.call + 1}"
    line: Line = (Span(f" {sign}  ", role), Span("no ", "muted"), Span(what, "tool"), Span(broken, "failed"))  # type: ignore[arg-type]
    return [cut_line(line, width)]


def _worth(pairing: CallPairing, account: Account | None, width: int) -> list[Line]:
    """Return the outcome of a pairing, how its credit was computed, and its effect on the score."""
    parts = [pairing.outcome] if pairing.outcome and pairing.prohibition is None else []
    if not parts and pairing.expected_call is None and pairing.prohibition is None:
        parts.append("extra")
    role: Role = "muted"
    if account is not None:
        if account.arguments is not None:
            parts.append(f"arguments {in_numbers(account.arguments)}")
        if account.formula is not None and not isinstance(account.formula, Amount):
            parts.append(in_numbers(account.formula))
        if account.share is None or account.most is None:
            role = "muted" if pairing.credit >= 1 - ROUNDING_SLACK else "warned" if pairing.credit else "failed"
        elif account.share < 0:
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
    text = one_line(f" {GLYPHS.dot} ".join(parts))
    return [(Span(" " * INDENT), Span(row, role)) for row in wrap(text, max(width - INDENT, 10))]
