"""The end of a run in words: its status, the notes below, and its figures."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.grading.grade import Grade, RunResult
from workbench.grading.status import NOT_APPLICABLE, Status, graders_disagree
from workbench.limits import CUT_OFF_REMEDY
from workbench.numerals import counted, duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Note, Span
from workbench.show.views.grade_moves import Move, graded_text
from workbench.show.views.grades import failed_steps, note_of_issue, note_of_metric, verdict, why_passed
from workbench.show.views.run_items import OutcomeItem
from workbench.show.views.trajectory import changes_by_hand, unread_text
from workbench.show.views.user_turns import GAVE_UP
from workbench.show.views.values import usage_text
from workbench.show.visible import one_line
from workbench.trajectory.events import FinishReason, ServerOutput

ENDINGS: dict[FinishReason, str] = {
    "decided": "the case covers the first decision only; its calls were graded but not run",
    "step failed": "the chain ends here: it stops at the first step that fails",
    "rounds exhausted": "no further round was allowed; calls of the last answer were graded but not run",
    "user gave up": GAVE_UP,
    "stopped by rule": "the `stop` of the user holds",
    "turns exhausted": "the user had no turn left (max_turns)",
    "user error": "the simulated user spoilt this run",
    "refused": "the model refused to answer",
    "truncated": f"the answer was cut off at the token limit: {CUT_OFF_REMEDY}",
    "sent too much": "the answer was not read to its end: it is longer than any suite needs",
    "stopped": "you stopped this run; it is not graded",
    "timed out": "the run took longer than its time limit",
}
"""Explanations of how a run ended, for every end but an answer."""


def outcome_line(result: RunResult, ways_to_grades: str) -> Line:
    """Return a line about the end of a run, such as `✗ failed 0.50  critics  ≠ graders disagree`."""
    grade, status = result.grade, result.status
    if grade is None:
        why = ""
        if status == Status.NOT_GRADED:
            why = f": {one_line(result.error or '')}"
        return (*verdict(status, None), Span(why, status.role))
    named = grade.grader
    if grade.verdict == NOT_APPLICABLE:
        named = "no score"
    line = (*verdict(status, grade.score), Span(f"  {one_line(named)}", "muted"))
    if not graders_disagree(result.grades):
        return line
    return (*line, Span(f"  {GLYPHS.disagree} graders disagree{ways_to_grades}", "warned"))


def outcome_notes(item: OutcomeItem, result: RunResult, *, in_full: bool) -> Iterator[Note | ServerOutput]:
    """Yield the notes below the status of a run."""
    grade, finish, status = result.grade, item.finish, result.status
    if why := why_passed(result):
        yield Note(" ", why)
    if item.former is not None and Move(item.former, result).moved:
        yield Note(" ", f"regraded; was {graded_text(item.former)} when it ran")
    if result.not_regraded is not None:
        yield Note(GLYPHS.warned, result.not_regraded, "warned")
    if status == Status.ERROR:
        yield Note(" ", result.error or "the run ended without an error message", "error")
        if finish is not None and finish.server_output is not None:
            yield finish.server_output
        yield Note(" ", "Not graded: this is not the model's fault and counts in no score.")
    elif status == Status.SKIPPED:
        yield Note(" ", result.error or "the suite says so")
    elif status == Status.STOPPED:
        yield Note(" ", ENDINGS["stopped"])
    elif finish is not None and finish.reason in ENDINGS:
        yield Note(" ", ENDINGS[finish.reason])
    # A chain stops at one step, so all later steps were never reached.
    never = []
    for step in result.steps:
        if step.status is None:
            never.append(step.step)
    if never:
        steps = f"steps {never[0]} to {never[-1]} were"
        if len(never) == 1:
            steps = f"step {never[0]} was"
        yield Note(GLYPHS.skipped, f"{steps} never reached")
    if changes := changes_by_hand(result.trajectory):
        changed = f"a person changed {counted(changes, 'thing')}"
        if grade is not None:
            changed = f"graded by what the model wrote itself; {changed}"
        yield Note(GLYPHS.by_hand, changed, "accent")
    if unread := unread_text(result.trajectory):
        yield Note(GLYPHS.by_hand, unread, "warned")
    if grade is not None and any(issue.kind == "failed step" for issue in grade.issues):
        yield Note(GLYPHS.failed, failed_steps(result.steps), "failed")
    if item.requirements:
        yield Note(" ", f"final: {len(item.met)} of {item.requirements} hold", "strong")
        for text in item.met:
            yield Note(GLYPHS.passed, one_line(text), "passed")
    yield from map(note_of_issue, item.issues)
    if in_full or status != Status.PASSED:
        yield from map(note_of_metric, result.metrics)
    if grade is not None and grade.reason and (in_full or _needs_reason(grade, status)):
        yield Note(" ", grade.reason)
    if facts := _facts(result):
        yield Note(" ", facts)


def _needs_reason(grade: Grade, status: Status) -> bool:
    """Return whether to show the grade's reason, because status and issues do not explain the result."""
    return grade.verdict == NOT_APPLICABLE or (status != Status.PASSED and not grade.issues)


def _facts(result: RunResult) -> str:
    trajectory = result.trajectory
    if not trajectory.rounds:
        return ""
    parts = [counted(len(trajectory.rounds), "round"), counted(len(trajectory.calls), "call")]
    if trajectory.user_turns:
        turns = [turn for turn in trajectory.user_turns if turn.said is not None]
        parts.insert(0, counted(len(turns), "turn"))
    if trajectory.model_latency_ms:
        parts.append(f"model {duration_text(trajectory.model_latency_ms)}")
    if trajectory.user_requests:
        asked = counted(trajectory.user_requests, "request")
        parts.append(f"user {duration_text(trajectory.user_latency_ms)}, {asked}")
    # If all the time was the model's, the time of the whole loop would repeat the model's latency.
    if result.limited_ms not in (0, trajectory.model_latency_ms):
        parts.append(f"whole loop {duration_text(result.limited_ms)}")
    if trajectory.held_ms:
        parts.append(f"held {duration_text(trajectory.held_ms)}")
    if trajectory.usage is not None:
        parts.append(usage_text(trajectory.usage))
    return f" {GLYPHS.dot} ".join(parts)
