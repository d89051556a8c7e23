"""Lines about the steps of a chain: the grade of each, and steps without a call."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.grading.grade import StepGrade
from workbench.grading.status import Status
from workbench.numerals import counted, figure, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cut_line, signed, wrap
from workbench.show.views.grades import issue_text
from workbench.show.visible import one_line
from workbench.tui.grades.state import GradesState, SilentStep

MAX_STEPS = 200
"""The number of steps shown."""

MAX_ISSUES = 20
"""The number of issues shown for one step."""

_WHY_INDENT = 4


def step_label(number: int | None) -> str:
    """Return the beginning of a line about a step, empty if there is none."""
    return f" step {number}  " if number is not None else ""


def shown_steps(state: GradesState) -> Sequence[StepGrade]:
    """Return the steps of a chain as judged by the deciding grader, none for other graders."""
    return state.result.steps if state.decides(state.selected) else ()


def step_lines(state: GradesState, width: int) -> list[Line]:
    """Return the lines of these steps: score, reason and issues."""
    steps = shown_steps(state)
    if not steps:
        return []
    lines: list[Line] = [EMPTY, (Span(" Steps, each on its own", "heading"),)]
    for step in steps[:MAX_STEPS]:
        sign, role = step.status.mark if step.status is not None else (GLYPHS.skipped, "muted")
        figures = "" if step.score is None else f"  {score_text(step.score, '')}"
        text = f"step {step.step}  {step.status or 'not reached'}{figures}"
        lines += signed(sign, text, role, width, 1)
        if step.why and (step.status != Status.PASSED or state.more):
            rows = wrap(one_line(step.why), max(width - _WHY_INDENT, 10))
            lines += [(Span(" " * _WHY_INDENT), Span(row, "muted")) for row in rows]
        for issue in step.issues[:MAX_ISSUES]:
            lines += signed(GLYPHS.warned, issue_text(issue), "warned", width, _WHY_INDENT)
        if len(step.issues) > MAX_ISSUES:
            more = f"{GLYPHS.running} {counted(len(step.issues) - MAX_ISSUES, 'more issue')}"
            lines.append((Span(" " * _WHY_INDENT), Span(more, "comment")))
    if len(steps) > MAX_STEPS:
        lines.append((Span(f"   {GLYPHS.running} {counted(len(steps) - MAX_STEPS, 'more step')}", "comment"),))
    return lines


def silent_lines(state: GradesState, step: SilentStep, width: int) -> list[Line]:
    """Return the lines of a step without a call, with its share of the score."""
    most = 1 / state.selected.numbers["items"]
    role: Role = "muted" if step.reached else "failed"
    share, outcome = (most, "right not to call") if step.reached else (0.0, "never reached")
    worth = f"{outcome} {GLYPHS.dot} adds {figure(share)} of {figure(most)}"
    head: Line = (Span(step_label(step.number), "muted"), Span("no call expected", "comment"))
    return [cut_line(head, width), cut_line((Span(" " * _WHY_INDENT), Span(worth, role)), width)]


def silent_steps(state: GradesState) -> list[SilentStep]:
    """Return the steps that count in the score but have no pairing: no call was expected and none was made."""
    if not state.traits.counts_silent_steps or state.selected.score is None:
        return []
    paired = {state.step_of(pairing) for pairing in state.selected.pairings}
    return [
        SilentStep(number, reached is not None)
        for number, reached in enumerate(state.reached, 1)
        if number not in paired
    ]
