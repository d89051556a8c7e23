"""The lines of a grade's pairing: which call matches which expectation, and the score of each argument.

The expected call is beside the actual call, or above it if there is no room. In a long list of calls, a correct call
takes a single line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from workbench.checks.check import describe, describe_whole
from workbench.grading.explanation import Amount, Contribution, formula_in_numbers
from workbench.grading.grade import ArgumentVerdict, CallPairing, StepGrade
from workbench.grading.pairing_issues import describe_call, describe_expected
from workbench.grading.scoring import ROUNDING_SLACK
from workbench.grading.traits import GraderTraits
from workbench.numerals import count_text, counted, figure
from workbench.show.glyphs import GLYPHS
from workbench.show.highlight import cut_json, json_line
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
    sign_paragraph,
    spread,
    wrap,
    wrap_line,
)
from workbench.show.views.grades import note_of_issue, note_of_step
from workbench.show.visible import compact_json, one_line, widest_cells
from workbench.tui.grades.state import GradesState, SilentStep

SIDE_BY_SIDE_CELLS = 76
"""The minimum width for expected and actual calls side by side."""

MAX_NAME_CELLS = 18
_PLACE_CELLS = len("any order") + 2

MAX_PAIRINGS = 300
"""The maximum number of pairings to show."""

MIN_FOLDED_PAIRINGS = 4
"""The number of pairings from which a correct call takes a single line."""

_MARKS: dict[bool, tuple[str, Role]] = {True: (GLYPHS.passed, "passed"), False: (GLYPHS.failed, "failed")}

_WRONG_ALONE = frozenset({"too many", "unexpected", "must not be called", "called where nothing should be", "extra"})
"""Outcomes of unexpected calls that count as wrong even if they do not affect the score."""


class Block(NamedTuple):
    """The lines of a call, an expectation or a heading.

    `right` is whether the block contains no mistake."""

    lines: list[Line]
    right: bool = True


_Entry = tuple[CallPairing | SilentStep, Contribution | None]
"""A pairing with its score, or a step without a call."""


def pairing_blocks(state: GradesState, width: int) -> list[Block]:
    """Return the selected grade's pairing as blocks of lines, beginning with a heading."""
    grade, accounts = state.selected, state.explanation.contributions
    entries: list[_Entry] = list(zip(grade.pairings, accounts, strict=True))
    entries += ((step, None) for step in silent_steps(state))
    if not entries:
        return []
    if state.case.steps:
        # Calls outside of all steps come last.
        entries.sort(key=lambda entry: state.step_of(entry[0]) or sys.maxsize)
    columns = _columns(state, grade.pairings, width)
    folding = len(grade.pairings) >= MIN_FOLDED_PAIRINGS and not state.more
    blocks = [Block([EMPTY, _heading(columns)])]
    for pairing, account in entries[:MAX_PAIRINGS]:
        if isinstance(pairing, SilentStep):
            blocks.append(Block(silent_lines(state, pairing, width), pairing.reached))
            continue
        right = _is_right(pairing, account)
        if pairing.prohibition is not None:
            lines = _forbidden_call_lines(state, pairing, width)
        elif pairing.expected_call is None:
            lines = _unexpected_call_lines(state, pairing, columns, width)
        elif right and folding:
            # The single line already shows the effect on the score.
            blocks.append(Block(_correct_call_line(state, pairing, account, columns, width)))
            continue
        else:
            lines = _expected_call_lines(state, pairing, columns, width)
        blocks.append(Block([*lines, *_effect(pairing, account, width)], right))
    if len(entries) > MAX_PAIRINGS:
        left = len(entries) - MAX_PAIRINGS
        blocks.append(Block([(Span(f" {GLYPHS.running} {count_text(left)} more calls and expectations", "comment"),)]))
    return blocks


def _is_right(pairing: CallPairing, account: Contribution | None) -> bool:
    if pairing.prohibition is not None:
        return pairing.call is None
    # Sums of shares have rounding errors, hence the slack.
    full = True
    if account is not None and account.share is not None and account.most is not None:
        full = account.share >= account.most - ROUNDING_SLACK
    if pairing.expected_call is None:
        return full and pairing.outcome not in _WRONG_ALONE
    if pairing.call is None or not pairing.same_tool or not full:
        return False
    for verdict in pairing.arguments:
        # An unjudged argument (`None`) is not wrong.
        if verdict.holds is False or verdict.score < verdict.weight - ROUNDING_SLACK:
            return False
    return True


def _columns(state: GradesState, pairings: Sequence[CallPairing], width: int) -> Columns:
    # The column of names is as wide as the longest visible name.
    names: set[str] = set()
    for pairing in pairings[:MAX_PAIRINGS]:
        for verdict in pairing.arguments:
            names.add(verdict.argument)
        if pairing.expected_call is not None:
            names.update(state.expected[pairing.expected_call].args or ())
    name_cells = min(widest_cells(names), MAX_NAME_CELLS)
    room = width - INDENT - name_cells - 2 - EARNED_CELLS
    if width >= SIDE_BY_SIDE_CELLS:
        return Columns(name_cells, room // 2 - 2, room - room // 2)
    return Columns(name_cells, 0, max(room, 8))


def _heading(columns: Columns) -> Line:
    if not columns.expected:
        return (Span(" Calls", "heading"),)
    start = INDENT + columns.name + 2 + columns.expected + 2
    return (Span(padded(" Expected", start), "heading"), Span("Actual", "heading"))


def _expected_call_lines(state: GradesState, pairing: CallPairing, columns: Columns, width: int) -> list[Line]:
    assert pairing.expected_call is not None
    wanted = state.expected[pairing.expected_call]
    made = _actual_call(state, pairing, brief=not columns.expected)
    earned = ""
    role: Role = "muted"
    if pairing.call is not None and pairing.tool_weight:
        sign, role = _MARKS[pairing.same_tool]
        earned = f"{sign} {amount_text(pairing.tool_score, pairing.tool_weight)}"
    head = _both_calls(_expected_call(state, pairing, (Span(one_line(wanted.tool_text), "tool"),)), made, columns)
    lines = [with_earned(head, earned, role, width)]
    if wanted.args is None:
        lines.append(cut_line((Span(" " * INDENT), Span("arguments do not matter", "muted")), width))
    arguments = pairing.arguments
    if pairing.call is None and not arguments:
        # A missing call has no verdicts, so its required arguments are shown without a score.
        required = []
        for name, check in (wanted.args or {}).items():
            if not check.optional:
                required.append(ArgumentVerdict(name, None, 0.0, 0.0, describe(check), None, False, ""))
        arguments = tuple(required)
    for verdict in arguments:
        lines += argument_lines(state, pairing, verdict, columns, width)
    return lines


def _correct_call_line(
    state: GradesState, pairing: CallPairing, account: Contribution | None, columns: Columns, width: int
) -> list[Line]:
    assert pairing.expected_call is not None
    assert pairing.call is not None
    record = state.calls[pairing.call]
    number = Span(f"{GLYPHS.call} call {pairing.call + 1} ", "muted")
    made: Line = (number, *_other_step_note(state, pairing), Span(one_line(describe_call(record)), "tool"))
    wanted: Line = ()
    if columns.expected:
        wanted = (Span(one_line(describe_expected(state.expected[pairing.expected_call])), "tool"),)
    line = _both_calls(_expected_call(state, pairing, wanted), made, columns)
    if not columns.expected:
        return [spread(line, (Span(GLYPHS.passed, "passed"),), width)]
    earned = GLYPHS.passed
    if account is not None and account.share is not None:
        earned += f" adds {figure(account.share)}"
    return [with_earned(line, earned, "passed", width)]


def _expected_call(state: GradesState, pairing: CallPairing, call: Line) -> Line:
    """Return the line of an expected call. It begins with the step or the number of the call.

    If the grader considers the order of calls, the line also has the position."""
    assert pairing.expected_call is not None
    if step := step_label(state.step_of(pairing)):
        return (Span(step, "muted"), *call)
    number = Span(f" {pairing.expected_call + 1:>2} ", "muted")
    if not state.traits.shows_order:
        return (number, *call)
    return (number, Span(f"{state.places[pairing.expected_call]:<{_PLACE_CELLS}}", "comment"), *call)


def _both_calls(expected: Line, actual: Line, columns: Columns) -> Line:
    if not columns.expected:
        gap = EMPTY
        if expected[-1].role == "tool":
            gap = (Span("  "),)
        return (*expected, *gap, *actual)
    room = INDENT + columns.name + 2 + columns.expected
    expected = cut_line(expected, room)
    return (*expected, Span(" " * (room - cells(expected) + 2)), *actual)


def _actual_call(state: GradesState, pairing: CallPairing, *, brief: bool) -> Line:
    """Return the line of a pairing's actual call. With `brief`, omit the tool's name if it is the expected tool."""
    if pairing.call is None:
        return (Span(f"{GLYPHS.missing} never called", "failed"),)
    tool = state.calls[pairing.call].tool
    nearest = ""
    if state.traits.shows_order and pairing.outcome == "unmet":
        nearest = "nearest is "
    arrow: Line = (Span(f"{GLYPHS.call} {nearest}call {pairing.call + 1} ", "muted"), *_other_step_note(state, pairing))
    same = pairing.expected_call is not None and state.expected[pairing.expected_call].tool == tool
    if same and brief:
        return arrow
    role: Role = "failed"
    if same or pairing.same_tool:
        role = "tool"
    return (*arrow, Span(one_line(tool), role))


def _other_step_note(state: GradesState, pairing: CallPairing) -> Line:
    step = state.other_step_text(pairing)
    if not step:
        return EMPTY
    return (Span(f"{step} ", "warned"),)


def _unexpected_call_lines(state: GradesState, pairing: CallPairing, columns: Columns, width: int) -> list[Line]:
    assert pairing.call is not None
    step = step_label(state.step_of(pairing))
    lead = cell_len(step) or 1
    if columns.expected:
        lead = INDENT + columns.name + 2 + columns.expected + 2
    record = state.calls[pairing.call]
    number = f"{GLYPHS.call} call {pairing.call + 1} "
    start = Span(padded(step, lead) + number, "muted")
    if not state.more:
        return [cut_line((start, Span(one_line(describe_call(record)), "tool")), width)]
    given = json_line(compact_json(dict(record.arguments), UNFOLDED))
    whole = (Span(f"{one_line(record.tool)} ", "tool"), *given)
    lines: list[Line] = []
    for text in wrap_line(whole, max(width - lead - cell_len(number), 10)):
        lines.append(cut_line((start, *text), width))
        # Only the first row has the step and the number of the call.
        start = Span(" " * cell_len(start.text))
    return lines


def _forbidden_call_lines(state: GradesState, pairing: CallPairing, width: int) -> list[Line]:
    assert pairing.prohibition is not None
    tool = one_line(describe_expected(state.case.disallowed[pairing.prohibition]))
    sign, role = _MARKS[pairing.call is None]
    line: Line = (Span(f" {sign}  ", role), Span("no ", "muted"), Span(tool, "tool"))
    if pairing.call is not None:
        line = (*line, Span(f"  broken by call {pairing.call + 1}", "failed"))
    return [cut_line(line, width)]


def _effect(pairing: CallPairing, account: Contribution | None, width: int) -> list[Line]:
    parts: list[str] = []
    if pairing.prohibition is None and pairing.outcome:
        parts.append(pairing.outcome)
    elif pairing.prohibition is None and pairing.expected_call is None:
        parts.append("extra")
    role: Role = "muted"
    if account is not None:
        if account.arguments is not None:
            parts.append(f"arguments {formula_in_numbers(account.arguments)}")
        if account.formula is not None and not isinstance(account.formula, Amount):
            parts.append(formula_in_numbers(account.formula))
        if account.share is None or account.most is None:
            role = _part_role(pairing.credit, 1)
        elif account.share < 0:
            parts.append(f"takes {figure(-account.share)} from the score")
            role = "failed"
        elif account.most == 0:
            parts.append("costs nothing")
        else:
            parts.append(f"adds {figure(account.share)} of {figure(account.most)}")
            role = _part_role(account.share, account.most)
    if not parts:
        return []
    text = one_line(f" {GLYPHS.dot} ".join(parts))
    return [(Span(" " * INDENT), Span(row, role)) for row in wrap(text, max(width - INDENT, 10))]


def _part_role(earned: float, maximum: float) -> Role:
    if earned >= maximum - ROUNDING_SLACK:
        return "muted"
    if earned > 0:
        return "warned"
    return "failed"


INDENT = 4
EARNED_CELLS = 19

_FOLDED, UNFOLDED = 2_000, 20_000
"""The maximum number of characters to lay out for a value: on one row, and on several rows."""


class Columns(NamedTuple):
    """The widths of the columns of arguments, in cells.

    If expected and actual values do not fit side by side, `expected` is 0. The expected value is then below the actual
    value."""

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
    lead = Span(" " * INDENT + padded(one_line(verdict.argument), columns.name) + "  ", "key")
    expected, actual = _expected_value(state, pairing, verdict), _actual_value(state, pairing, verdict)
    wanted = expected
    if not expected.startswith("not "):
        wanted = f"expected {expected}"
    given = verdict.given and pairing.call is not None
    lines: list[Line] = []
    if columns.expected:
        left = [cut(expected, columns.expected)]
        if state.more:
            left = wrap(expected, columns.expected)
        right = _value(actual, given, columns.got - 2, whole=state.more)
        for text, value in zip_longest(left, right):
            line: Line = (lead, Span(padded(text or "", columns.expected) + "  ", "muted"), *(value or EMPTY))
            lines.append(with_earned(line, earned, role, width))
            # Only the first line has the argument's name and score.
            lead, earned = Span(" " * cell_len(lead.text)), ""
    else:
        shown = wanted
        if pairing.call is not None:
            shown = actual
        rows = _value(shown, given, columns.got, whole=state.more)
        lines.append(with_earned((lead, *rows[0]), earned, role, width))
        lines += indented(rows[1:], cell_len(lead.text))
        if pairing.call is not None and verdict.holds is not True:
            lines += _value_below(wanted, width, state.more)
    if pairing.call is None or verdict.holds is True or not state.more:
        return lines
    # A reason that only repeats a value above is omitted.
    if verdict.why not in ("", actual, verdict.expected):
        lines += _value_below(one_line(verdict.why), width, True)
    return lines


def _actual_value(state: GradesState, pairing: CallPairing, verdict: ArgumentVerdict) -> str:
    if not verdict.given and verdict.got is None:
        if pairing.call is not None:
            return "not given"
        return ""
    limit = _FOLDED
    if state.more:
        limit = UNFOLDED
    value = compact_json(verdict.got, limit)
    if not verdict.given:
        value += " by default"
    return value


def _expected_value(state: GradesState, pairing: CallPairing, verdict: ArgumentVerdict) -> str:
    assert pairing.expected_call is not None
    # The verdict's expected value is shortened. Only the check has the whole value.
    checks = state.expected[pairing.expected_call].args or {}
    if state.more and verdict.expected.endswith(ELLIPSIS) and verdict.argument in checks:
        return one_line(describe_whole(checks[verdict.argument])[:UNFOLDED])
    return one_line(verdict.expected)


def _value_below(text: str, width: int, whole: bool) -> list[Line]:
    room = width - INDENT - 4
    rows = [cut(text, room)]
    if whole:
        rows = wrap(text, room)
    return [(Span(" " * (INDENT + 2)), Span(row, "muted")) for row in rows]


def _value(text: str, given: bool, max_width: int, *, whole: bool) -> list[Line]:
    if given:
        if whole:
            return wrap_line(json_line(text), max_width)
        return [cut_json(text, max_width)]
    if whole:
        return wrap_line((Span(text, "muted"),), max_width)
    return [(Span(cut(text, max_width), "muted"),)]


def with_earned(line: Line, earned: str, role: Role, width: int) -> Line:
    """Return a line with the score `earned` in its last column."""
    if not earned:
        return cut_line(line, width)
    at = width - EARNED_CELLS + 1
    line = cut_line(line, at - 1)
    return (*line, Span(" " * (at - cells(line))), Span(cut(earned, EARNED_CELLS - 1), role))


def _sign(verdict: ArgumentVerdict) -> tuple[str, Role]:
    if verdict.holds is None:
        return GLYPHS.dot, "muted"
    if verdict.holds and verdict.score < verdict.weight - ROUNDING_SLACK:
        return GLYPHS.warned, "warned"
    return _MARKS[verdict.holds]


def _earned(verdict: ArgumentVerdict, traits: GraderTraits) -> str:
    if not traits.scores_arguments:
        return ""
    if not verdict.listed:
        if not verdict.score:
            return ""
        return figure(verdict.score)
    if verdict.holds is None:
        return "not judged"
    if not verdict.counted:
        return "not counted"
    if traits.arguments_weigh_alike:
        return amount_text(verdict.score / verdict.weight, 1.0)
    return amount_text(verdict.score, verdict.weight)


def amount_text(earned: float, weight: float) -> str:
    """Return the earned score and its maximum as text."""
    return f"{figure(earned)} of {figure(weight)}"


MAX_STEPS = 200
"""The maximum number of steps to show."""

MAX_ISSUES = 20
"""The maximum number of issues shown for a step."""

_WHY_INDENT = 4


def step_label(number: int | None) -> str:
    """Return the label of a step, which begins its line. Return "" if `number` is `None`."""
    if number is None:
        return ""
    return f" step {number}  "


def shown_steps(state: GradesState) -> Sequence[StepGrade]:
    """Return the grades of a chain's steps if the selected grade decides the status, otherwise none."""
    if state.decides(state.selected):
        return state.result.steps
    return ()


def step_lines(state: GradesState, width: int) -> list[Line]:
    steps = shown_steps(state)
    if not steps:
        return []
    lines: list[Line] = [EMPTY, (Span(" Steps, each on its own", "heading"),)]
    for step in steps[:MAX_STEPS]:
        lines += sign_paragraph(*note_of_step(step, len(steps), brief=not state.more), width, 1)
        for issue in step.issues[:MAX_ISSUES]:
            lines += sign_paragraph(*note_of_issue(issue), width, _WHY_INDENT)
        if len(step.issues) > MAX_ISSUES:
            more = f"{GLYPHS.running} {counted(len(step.issues) - MAX_ISSUES, 'more issue')}"
            lines.append((Span(" " * _WHY_INDENT), Span(more, "comment")))
    if len(steps) > MAX_STEPS:
        lines.append((Span(f"   {GLYPHS.running} {counted(len(steps) - MAX_STEPS, 'more step')}", "comment"),))
    return lines


def silent_lines(state: GradesState, step: SilentStep, width: int) -> list[Line]:
    """Return the lines of a step that expects no calls, including the step's share of the score."""
    most = figure(1 / state.selected.numbers["items"])
    effect = Span(f"never reached {GLYPHS.dot} adds {figure(0.0)} of {most}", "failed")
    if step.reached:
        effect = Span(f"right not to call {GLYPHS.dot} adds {most} of {most}", "muted")
    head: Line = (Span(step_label(step.number), "muted"), Span("no call expected", "comment"))
    return [cut_line(head, width), cut_line((Span(" " * _WHY_INDENT), effect), width)]


def silent_steps(state: GradesState) -> list[SilentStep]:
    """Return the steps that expect no call and during which no call was made.

    They count in the score although they have no pairing."""
    if not state.traits.counts_silent_steps or state.selected.score is None:
        return []
    paired = {state.step_of(pairing) for pairing in state.selected.pairings}
    steps = []
    for number, reached in enumerate(state.reached, 1):
        if number not in paired:
            steps.append(SilentStep(number, reached is not None))
    return steps
