"""A run in one line, and the lines of its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from workbench.grading.grade import RunResult, disagree
from workbench.grading.run_summary import RunSummary
from workbench.grading.status import NOT_APPLICABLE, Status, passed_if
from workbench.numerals import cost_text, counted, duration_text, score_text, short_tokens_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Role, Span, cells, cut_line, cut_middle, signed
from workbench.show.views.by_hand import changes_by_hand, unread_text
from workbench.show.views.grade_move_kinds import Move, graded_text
from workbench.show.views.grades import failed_steps, issue_text, metric_text, why_passed
from workbench.show.views.server_output import server_output_lines
from workbench.show.views.values import usage_text
from workbench.show.visible import model_label
from workbench.trajectory.events import FinishReason
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.shown.items import OutcomeItem


def run_name(run: RunRecord, others: Sequence[RunRecord] = ()) -> str:
    """Return the name of a run: the model, the repeat if there are several, whether it is a fork, and the time if
    nothing else tells it from `others`."""
    alike = [other for other in others if other is not run and other.model == run.model]
    numbered = run.repeat or any(other.repeat != run.repeat for other in alike)
    name = f"{model_label(run.model)}{f' #{run.repeat + 1}' if numbered else ''}"
    if run.is_fork:
        name += f"  {GLYPHS.fork} fork"
    if run.started_at and any((other.repeat, other.is_fork) == (run.repeat, run.is_fork) for other in alike):
        name += f"  {began(run)}"
    return name


def began(run: RunRecord) -> str:
    """Return when a run began, in local time. Empty if it has not begun."""
    return f"{datetime.fromisoformat(run.started_at).astimezone():%Y-%m-%d %H:%M:%S}" if run.started_at else ""


def verdict(run: RunRecord) -> Line:
    """Return the status and score of a run, or its progress, after a sign."""
    figures = run.figures
    if figures is None:
        sign, text, role = _going(run)
        return (Span(f"{sign} {text}", role),)
    sign, role = figures.status.mark
    value = score_text(figures.score, "")
    return (Span(f"{sign} {figures.status}", role), *((Span(f" {value}", "strong"),) if value else ()))


def facts(run: RunRecord) -> list[str]:
    """Return the usage of a finished run, the most important part first: its time, tokens in and out, cost."""
    figures = run.figures
    if figures is None or not figures.asked:
        return []
    parts = [took] if (took := limited_time(figures)) else []
    if figures.input_tokens is not None and figures.output_tokens is not None:
        parts.append(short_tokens_text(figures.input_tokens, figures.output_tokens))
    if figures.cost_usd:
        parts.append(cost_text(figures.cost_usd))
    return parts


def model_time(figures: RunSummary) -> str:
    """Return how long the model took to answer, empty if it never did, or nobody knows."""
    return duration_text(figures.latency_ms) if figures.asked and figures.latency_ms else ""


def limited_time(figures: RunSummary) -> str:
    """Return the time that the case's latency limit measures, empty if it is unknown or the model never answered."""
    return duration_text(figures.limited_ms) if figures.asked and figures.limited_ms else ""


def headline(name: str, run: RunRecord, width: int) -> Line:
    """Return a run's name, status and as many facts as fit. A name that is too long is cut."""
    ends: list[Line] = [verdict(run)]
    for fact in facts(run):
        ends.append((*ends[-1], Span(f" {GLYPHS.dot} {fact}", "muted")))
    end = next((end for end in reversed(ends) if cells(end) + len(name) + 2 <= width), ends[0])
    shown = cut_middle(name, max(width - cells(end) - 2, width // 4))
    return cut_line((Span(shown, "strong"), Span("  "), *end), width)


def _going(run: RunRecord) -> tuple[str, str, Role]:
    if run.asks:
        return GLYPHS.asks, "asks whether a call may be executed", "warned"
    if run.held:
        return GLYPHS.held, "held", "warned"
    return GLYPHS.running, run.standing, "running"


ENDINGS: dict[FinishReason, str] = {
    "decided": "the case covers the first decision only; its calls were graded but not run",
    "step failed": "the chain ends here: it stops at the first step that fails",
    "rounds exhausted": "no further round was allowed; calls of the last answer were graded but not run",
    "refused": "the model refused to answer",
    "truncated": "the answer was cut off at the token limit: raise `max_tokens` of the model",
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
    if why := why_passed(result):
        lines += signed(" ", why, "muted", width, 1)
    if item.former is not None and Move(item.former, result).moved:
        lines += signed(" ", f"regraded; was {graded_text(item.former)} when it ran", "muted", width, 1)
    if result.not_regraded is not None:
        lines += signed(GLYPHS.warned, result.not_regraded, "warned", width, 1)
    grade = result.grade
    if result.status == Status.ERROR:
        lines += signed(" ", result.error or "the run ended without an error message", "error", width, 1)
        if item.finish is not None and item.finish.server_output is not None:
            lines += server_output_lines(item.finish.server_output, width, 3)
        lines += signed(" ", "Not graded: this is not the model's fault and counts in no score.", "muted", width, 1)
    elif result.status == Status.SKIPPED:
        lines += signed(" ", result.error or "the suite says so", "muted", width, 1)
    elif result.status == Status.STOPPED:
        lines += signed(" ", ENDINGS["stopped"], "muted", width, 1)
    elif item.finish is not None and item.finish.reason in ENDINGS:
        lines += signed(" ", ENDINGS[item.finish.reason], "muted", width, 1)
    if never := [step.step for step in result.steps if step.status is None]:
        steps = f"step {never[0]} was" if len(never) == 1 else f"steps {never[0]} to {never[-1]} were"
        lines += signed(GLYPHS.skipped, f"{steps} never reached", "muted", width, 1)
    if changes := changes_by_hand(result.trajectory):
        text = f"a person changed {counted(changes, 'thing')}"
        text = f"graded by what the model wrote itself; {text}" if grade is not None else text
        lines += signed(GLYPHS.by_hand, text, "accent", width, 1)
    if unread := unread_text(result.trajectory):
        lines += signed(GLYPHS.by_hand, unread, "warned", width, 1)
    if grade is not None and any(issue.kind == "failed step" for issue in grade.issues):
        lines += signed(GLYPHS.failed, failed_steps(result.steps), "failed", width, 1)
    for issue in item.issues:
        role: Role = "failed" if issue.decides else "warned"
        sign = GLYPHS.failed if issue.decides else GLYPHS.warned
        lines += signed(sign, issue_text(issue), role, width, 1)
    for metric in result.metrics if expanded or result.status != Status.PASSED else ():
        sign, role = passed_if(metric.holds).mark
        lines += signed(sign, metric_text(metric), role, width, 1)
    if grade is not None and grade.reason and (expanded or (result.status != Status.PASSED and not grade.issues)):
        lines += signed(" ", grade.reason, "muted", width, 1)
    if facts := _facts(result):
        lines += signed(" ", facts, "muted", width, 1)
    return lines


def _verdict(result: RunResult) -> Line:
    sign, role = result.status.mark
    grade = result.grade
    line: Line = (Span(f" {sign} {result.status}", role),)
    if grade is None:
        return (*line, Span(f": {result.error}", role)) if result.status == Status.NOT_GRADED else line
    if grade.score is not None:
        line = (*line, Span(f"  {score_text(grade.score, '')}", "strong"))
    named = grade.grader if grade.verdict != NOT_APPLICABLE else f"not graded: {grade.reason}"
    line = (*line, Span(f"  {named}", "muted"))
    if disagree(result.grades):
        line = (*line, Span(f"  {GLYPHS.disagree} graders disagree: =", "warned"))
    return line


def _facts(result: RunResult) -> str:
    trajectory = result.trajectory
    if not trajectory.rounds:
        return ""
    parts = [counted(len(trajectory.rounds), "round"), counted(len(trajectory.calls), "call")]
    if trajectory.model_latency_ms:
        parts.append(f"model {duration_text(trajectory.model_latency_ms)}")
    if result.limited_ms not in (0, trajectory.model_latency_ms):
        parts.append(f"whole loop {duration_text(result.limited_ms)}")
    if trajectory.held_ms:
        parts.append(f"held {duration_text(trajectory.held_ms)}")
    if trajectory.usage is not None:
        parts.append(usage_text(trajectory.usage))
    return f" {GLYPHS.dot} ".join(parts)
