"""A run in one line: name, status, time, tokens and cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.numerals import cost_text, duration_text, short_tokens_text, with_user_cost
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Note, Span, cells, cut_line, cut_middle
from workbench.show.views.grades import verdict as status_line
from workbench.show.visible import model_label

if TYPE_CHECKING:
    from workbench.grading.run_summary import RunSummary
    from workbench.tui.run_book.record import RunRecord


def run_name(run: RunRecord, others: Sequence[RunRecord] = ()) -> str:
    """Return the name of a run among `others`.

    The name has the model, the repeat and the word fork, as far as the runs differ. If another run would have the same
    name, the start time is added."""
    alike = [other for other in others if other is not run and other.model == run.model]
    name = model_label(run.model)
    if run.repeat or any(other.repeat != run.repeat for other in alike):
        name += f" #{run.repeat + 1}"
    if run.is_fork:
        name += f"  {GLYPHS.fork} fork"
    if run.started_at and any((other.repeat, other.is_fork) == (run.repeat, run.is_fork) for other in alike):
        name += f"  {start_time(run)}"
    return name


def start_time(run: RunRecord) -> str:
    """Return the local start time of a run, "" if it has not begun."""
    if not run.started_at:
        return ""
    return f"{datetime.fromisoformat(run.started_at).astimezone():%Y-%m-%d %H:%M:%S}"


def verdict(run: RunRecord) -> Line:
    """Return the sign, status and score of a run. For an active run, return its state."""
    figures = run.figures
    if figures is None:
        sign, text, role = unfinished(run)
        return (Span(f"{sign} {text}", role),)
    return status_line(figures.status, figures.score)


def facts(run: RunRecord) -> list[str]:
    """Return the time, tokens and cost of a finished run, as far as known, most important first."""
    figures = run.figures
    if figures is None or not figures.asked:
        return []
    parts: list[str] = []
    if took := limited_time(figures):
        parts.append(took)
    if figures.input_tokens is not None and figures.output_tokens is not None:
        parts.append(short_tokens_text(figures.input_tokens, figures.output_tokens))
    cost = cost_text(figures.cost_usd) if figures.cost_usd else ""
    user_usd = run.result.user_cost_usd if run.result is not None else 0.0
    if shown := with_user_cost(cost, user_usd):
        parts.append(shown)
    return parts


def model_time(figures: RunSummary) -> str:
    """Return the time of the model's answers, "" if unknown or if the model never answered."""
    if figures.asked and figures.latency_ms:
        return duration_text(figures.latency_ms)
    return ""


def limited_time(figures: RunSummary) -> str:
    """Return the time that counts towards the case's latency limit, "" if unknown or if the model never answered."""
    if figures.asked and figures.limited_ms:
        return duration_text(figures.limited_ms)
    return ""


def headline(name: str, run: RunRecord, width: int) -> Line:
    """Return a run's name, its status, and as many `facts` as fit. A long name is cut."""
    ends: list[Line] = [verdict(run)]
    for fact in facts(run):
        ends.append((*ends[-1], Span(f" {GLYPHS.dot} {fact}", "muted")))
    end = next((end for end in reversed(ends) if cells(end) + len(name) + 2 <= width), ends[0])
    shown = cut_middle(name, max(width - cells(end) - 2, width // 4))
    return cut_line((Span(shown, "strong"), Span("  "), *end), width)


def unfinished(run: RunRecord) -> Note:
    """Return the state of an active run as a sign and a text."""
    if run.is_asking:
        return Note(GLYPHS.asks, "asks whether a call may be executed", "warned")
    if run.is_held:
        return Note(GLYPHS.held, "held", "warned")
    return Note(GLYPHS.running, run.displayed_stage, "running")
