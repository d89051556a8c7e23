"""How a run ended, in plain words: status, score, what is left to say."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.grading.grade import RunResult, Status, StepGrade, disagree
from workbench.reports.by_hand import changes_by_hand, unread_text
from workbench.reports.issues import issue_text
from workbench.reports.move_kinds import Move, graded_text
from workbench.reports.values import tokens_text
from workbench.reports.visible import one_line
from workbench.trajectory.events import FinishReason
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.items import OutcomeItem
from workbench.tui.state.spans import Line, Role, Span, cut_line, wrap
from workbench.tui.state.words import duration, many, score

STATUS_SIGNS: dict[Status, tuple[str, Role]] = {
    "passed": (GLYPHS.passed, "passed"),
    "warned": (GLYPHS.warned, "warned"),
    "failed": (GLYPHS.failed, "failed"),
    "error": (GLYPHS.error, "error"),
    "skipped": (GLYPHS.skipped, "muted"),
    "stopped": (GLYPHS.stopped, "muted"),
}
"""Sign and meaning of each status."""

ENDINGS: dict[FinishReason, str] = {
    "decided": "the case looks at the first decision only; its calls were graded but not run",
    "step failed": "the chain ends here: it stops at the first step that fails",
    "rounds exhausted": "no further round was allowed; calls of the last answer were graded but not run",
    "refused": "the model refused to answer",
    "truncated": "the answer was cut off at the model's length limit",
    "sent too much": "the answer was not read to its end: it holds more than any suite can mean",
    "stopped": "you stopped this run; it is not graded",
    "timed out": "the run took longer than its time limit",
}
"""Endings other than an answer, for a person."""


MOST_NAMED = 8
"""Failed steps that are named; of more it is said how many there are."""


def outcome_lines(item: OutcomeItem, width: int, expanded: bool) -> list[Line]:
    """The last lines of a run."""
    if item.result is None:
        return [(Span(f" {GLYPHS.running} grading", "running"),)]
    result = item.result
    lines = [cut_line(_verdict(result), width)]
    if item.former is not None and Move(item.former, result).moved:
        lines += _paragraph(f"graded anew; was {graded_text(item.former)} when it ran", "muted", width)
    if result.not_regraded is not None:
        lines += _paragraph(result.not_regraded, "warned", width, GLYPHS.warned)
    grade = result.grade
    if result.status == "error":
        lines += _paragraph(result.error or "the run broke off without a word", "error", width)
        lines += _paragraph("Not graded: this is no fault of the model, and counts in no score.", "muted", width)
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
        said = f"a person changed {many(changes, 'thing')}"
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


def failed_steps(steps: Sequence[StepGrade]) -> str:
    """Which steps of a chain failed, and so the chain; each of them says elsewhere why."""
    failed = [str(step.step) for step in steps if step.status == "failed"]
    if len(failed) == 1:
        return f"step {failed[0]} failed, and with it the chain"
    which = f"steps {', '.join(failed[:-1])} and {failed[-1]}"
    return f"{which if len(failed) <= MOST_NAMED else many(len(failed), 'step')} failed, and with them the chain"


def _verdict(result: RunResult) -> Line:
    sign, role = STATUS_SIGNS[result.status]
    grade = result.grade
    line: Line = (Span(f" {sign} {result.status}", role),)
    if grade is None:
        return line
    if grade.score is not None:
        line = (*line, Span(f"  {score(grade.score)}", "strong"))
    named = grade.grader if grade.verdict != "not applicable" else f"{grade.grader} does not apply"
    line = (*line, Span(f"  {named}", "muted"))
    if disagree(result.grades):
        line = (*line, Span(f"  {GLYPHS.disagree} graders disagree: g", "warned"))
    return line


def _facts(result: RunResult) -> str:
    trajectory = result.trajectory
    if not trajectory.rounds:
        return ""
    parts = [many(len(trajectory.rounds), "round"), many(len(trajectory.calls), "call")]
    parts.append(f"model {duration(trajectory.model_latency_ms)}")
    if trajectory.held_ms:
        parts.append(f"held {duration(trajectory.held_ms)}")
    if trajectory.usage is not None:
        parts.append(tokens_text(trajectory.usage))
    return f" {GLYPHS.dot} ".join(parts)


def _paragraph(text: str, role: Role, width: int, sign: str = " ") -> list[Line]:
    first, *others = wrap(one_line(text), width - 3)
    return [(Span(f" {sign} {first}", role),), *((Span(f"   {row}", role),) for row in others)]


def why_not_graded(result: RunResult) -> str:
    """Why a run that is over has no grades, as the end of a sentence."""
    why = one_line(result.error or "")
    if result.status == "skipped":
        return f"this case is skipped, so there is nothing to grade{f': {why}' if why else ''}"
    if result.status == "stopped":
        return "you stopped this run, so it is not graded"
    finish = result.trajectory.finish
    if finish is None or finish.reason in ("error", "timed out"):
        return f"this run broke off, so it is not graded: {why}"
    return f"this run came to its end, but could not be graded: {why}"
