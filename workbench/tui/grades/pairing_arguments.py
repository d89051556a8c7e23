"""The arguments of a paired call as lines: expected value, actual value, verdict and score."""

from __future__ import annotations

from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from workbench.checks.check import describe_whole
from workbench.grading.grade import ArgumentVerdict, CallPairing
from workbench.grading.scoring import ROUNDING_SLACK
from workbench.grading.traits import GraderTraits
from workbench.numerals import figure
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line
from workbench.show.lazy_lines import compact_json
from workbench.show.spans import (
    ELLIPSIS,
    EMPTY,
    Line,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    indented,
    padded,
    wrap,
    wrap_line,
)
from workbench.show.visible import one_line
from workbench.tui.grades.state import GradesState

INDENT = 4
EARNED_CELLS = 19

_FOLDED, UNFOLDED = 2_000, 20_000
"""Characters of a value that are considered, on one row and on several."""


class Columns(NamedTuple):
    """The widths of the columns. If there is only room for one, `expected` is 0 and the expected value goes below."""

    name: int
    expected: int
    got: int


def argument_lines(
    state: GradesState, pairing: CallPairing, verdict: ArgumentVerdict, columns: Columns, width: int
) -> list[Line]:
    """Return the lines of one argument: name, expected value, actual value, verdict and score."""
    sign, role = _sign(verdict)
    earned = f"{sign} {_earned(verdict, state.traits)}".rstrip()
    if pairing.call is None and not verdict.weight:
        earned = ""
    label = padded(one_line(verdict.argument), columns.name)
    lead = Span(" " * INDENT + label + "  ", "key")
    expected = _asked(state, pairing, verdict)
    asked = expected if verdict.expected.startswith("not ") else f"expected {expected}"
    given = verdict.given and pairing.call is not None
    got = "not given" if pairing.call is not None else ""
    if verdict.given or verdict.got is not None:
        got = compact_json(verdict.got, UNFOLDED if state.more else _FOLDED) + ("" if verdict.given else " by default")
    lines: list[Line] = []
    if columns.expected:
        left = wrap(expected, columns.expected) if state.more else [cut(expected, columns.expected)]
        right = _value(got, given, columns.got - 2, whole=state.more)
        for row, (one, other) in enumerate(zip_longest(left, right, fillvalue=None)):
            start = lead if row == 0 else Span(" " * cell_len(lead.text))
            line: Line = (start, Span(padded(one or "", columns.expected) + "  ", "muted"), *(other or EMPTY))
            lines.append(with_earned(line, earned if row == 0 else "", role, width))
    else:
        rows = _value(got if pairing.call is not None else asked, given, columns.got, whole=state.more)
        lines.append(with_earned((lead, *rows[0]), earned, role, width))
        lines += indented(rows[1:], cell_len(lead.text))
        if pairing.call is not None and verdict.holds is not True:
            lines += _below(asked, width, state.more)
    if (
        state.more
        and verdict.why not in ("", got, verdict.expected)
        and verdict.holds is not True
        and pairing.call is not None
    ):
        lines += _below(one_line(verdict.why), width, True)
    return lines


def _asked(state: GradesState, pairing: CallPairing, verdict: ArgumentVerdict) -> str:
    """Return the expected value of an argument, in full with `more`."""
    assert pairing.expected_call is not None
    checks = state.expected[pairing.expected_call].args or {}
    if state.more and verdict.expected.endswith(ELLIPSIS) and verdict.argument in checks:
        return one_line(describe_whole(checks[verdict.argument])[:UNFOLDED])
    return one_line(verdict.expected)


def _below(text: str, width: int, whole: bool) -> list[Line]:
    """Return a note below an argument."""
    room = width - INDENT - 4
    rows = wrap(text, room) if whole else [cut(text, room)]
    return [(Span(" " * (INDENT + 2)), Span(row, "muted")) for row in rows]


def _value(text: str, given: bool, room: int, *, whole: bool) -> list[Line]:
    """Return a value in one row, or the `whole` of it in as many as it needs."""
    if not whole:
        return [cut_json(text, room) if given else (Span(cut(text, room), "muted"),)]
    return wrap_line(json_line(text) if given else (Span(text, "muted"),), room)


def with_earned(line: Line, earned: str, role: Role, width: int) -> Line:
    """Put a score into the last column of a line."""
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


def _earned(verdict: ArgumentVerdict, traits: GraderTraits) -> str:
    if not traits.scores_arguments:
        return ""
    if not verdict.listed:
        return figure(verdict.score) if verdict.score else ""
    if verdict.holds is None:
        return "not judged"
    if not verdict.counted:
        return "not counted"
    if traits.arguments_weigh_alike:
        return amount_text(verdict.score / verdict.weight, 1.0)
    return amount_text(verdict.score, verdict.weight)


def amount_text(earned: float, weight: float) -> str:
    """Format how much of a maximum was earned."""
    return f"{figure(earned)} of {figure(weight)}"
