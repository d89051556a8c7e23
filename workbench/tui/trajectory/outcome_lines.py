"""The end of a run in plain words: status, score and remaining issues."""

from __future__ import annotations

from workbench.grading.grade import RunResult, disagree
from workbench.reports.by_hand import changes_by_hand, unread_text
from workbench.reports.grade_text import issue_text
from workbench.reports.move_kinds import Move, graded_text
from workbench.reports.values import tokens_text
from workbench.reports.visible import one_line
from workbench.suite.numerals import counted
from workbench.trajectory.events import FinishReason
from workbench.tui.lines.glyphs import GLYPHS, STATUS_SIGNS
from workbench.tui.lines.spans import Line, Role, Span, cut_line, wrap
from workbench.tui.lines.words import duration, failed_steps, score
from workbench.tui.run_book.shown.items import OutcomeItem

ENDINGS: dict[FinishReason, str] = {
    "decided": "the case covers the first decision only; its calls were graded but not run",
    "step failed": "the chain ends here: it stops at the first step that fails",
    "rounds exhausted": "no further round was allowed; calls of the last answer were graded but not run",
    "refused": "the model refused to answer",
    "truncated": "the answer was cut off at the model's length limit",
    "sent too much": "the answer was not read to its end: it is longer than any suite needs",
    "stopped": "you stopped this run; it is not graded",
    "timed out": "the run took longer than its time limit",
}
"""Explanations of endings other than an answer."""


def outcome_lines(item: OutcomeItem, width: int, expanded: bool) -> list[Line]:
    """Return the last lines of a run."""
    if item.result is None:
        return [(Span(f" {GLYPHS.running} grading", "running"),)]
    result = item.result
    lines = [cut_line(_verdict(result), width)]
    if item.former is not None and Move(item.former, result).moved:
        lines += _paragraph(f"regraded; was {graded_text(item.former)} when it ran", "muted", width)
    if result.not_regraded is not None:
        lines += _paragraph(result.not_regraded, "warned", width, GLYPHS.warned)
    grade = result.grade
    if result.status == "error":
        lines += _paragraph(result.error or "the run ended without an error message", "error", width)
        lines += _paragraph("Not graded: this is not the model's fault and counts in no score.", "muted", width)
    elif result.status == "skipped":
        lines += _paragraph(result.error or "the suite says so", "muted", width)
    elif result.status == "stopped":
        lines += _paragraph(ENDINGS["stopped"], "muted", width)
    elif item.finish is not None and item.finish.reason in ENDINGS:
        lines += _paragraph(ENDINGS[item.finish.reason], "muted", width)
    if never := [step.step for step in result.steps if step.status is None]:
        steps = f"step {never[0]} was" if len(never) == 1 else f"steps {never[0]} to {never[-1]} were"
        lines += _paragraph(f"{steps} never reached", "muted", width, GLYPHS.skipped)
    if changes := changes_by_hand(result.trajectory):
        said = f"a person changed {counted(changes, 'thing')}"
        said = f"graded by what the model wrote itself; {said}" if grade is not None else said
        lines += _paragraph(said, "accent", width, GLYPHS.by_hand)
    if unread := unread_text(result.trajectory):
        lines += _paragraph(unread, "warned", width, GLYPHS.by_hand)
    if grade is not None and any(issue.kind == "failed step" for issue in grade.issues):
        lines += _paragraph(failed_steps(result.steps), "failed", width, GLYPHS.failed)
    for issue in item.issues:
        role: Role = "failed" if issue.decides else "warned"
        sign = GLYPHS.failed if issue.decides else GLYPHS.warned
        lines += _paragraph(issue_text(issue), role, width, sign)
    if grade is not None and grade.reason and (expanded or (result.status != "passed" and not grade.issues)):
        lines += _paragraph(grade.reason, "muted", width)
    if facts := _facts(result):
        lines += _paragraph(facts, "muted", width)
    return lines


def _verdict(result: RunResult) -> Line:
    sign, role = STATUS_SIGNS[result.status]
    grade = result.grade
    line: Line = (Span(f" {sign} {result.status}", role),)
    if grade is None:
        return line
    if grade.score is not None:
        line = (*line, Span(f"  {score(grade.score)}", "strong"))
    named = grade.grader if grade.verdict != "not applicable" else f"not graded: {grade.reason}"
    line = (*line, Span(f"  {named}", "muted"))
    if disagree(result.grades):
        line = (*line, Span(f"  {GLYPHS.disagree} graders disagree: g", "warned"))
    return line


def _facts(result: RunResult) -> str:
    trajectory = result.trajectory
    if not trajectory.rounds:
        return ""
    parts = [counted(len(trajectory.rounds), "round"), counted(len(trajectory.calls), "call")]
    parts.append(f"model {duration(trajectory.model_latency_ms)}")
    if trajectory.held_ms:
        parts.append(f"held {duration(trajectory.held_ms)}")
    if trajectory.usage is not None:
        parts.append(tokens_text(trajectory.usage))
    return f" {GLYPHS.dot} ".join(parts)


def _paragraph(text: str, role: Role, width: int, sign: str = " ") -> list[Line]:
    first, *others = wrap(one_line(text), width - 3)
    return [(Span(f" {sign} {first}", role),), *((Span(f"   {row}", role),) for row in others)]
