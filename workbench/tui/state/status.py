"""The status line: where we are, with which models, and how the runs stand."""

from __future__ import annotations

from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.runs import Counts, Progress
from workbench.tui.state.spans import EMPTY, Line, Role, Span, cells, spread
from workbench.tui.state.words import clock, duration, many

BAR_CELLS = 12
BAR_AFTER_S = 1.0
"""A progress bar is shown for batches that take longer than this."""


def model_label(model: str) -> str:
    """A model's name; the offline one is never shown without saying what it is."""
    return "offline (baseline)" if model == "offline" else one_line(model)


def models_label(models: tuple[str, ...], width: int = 40) -> str:
    """Several models in at most about `width` cells."""
    if not models:
        return ""
    text = f" {GLYPHS.dot} ".join(model_label(model) for model in models)
    return text if len(text) <= width else f"{model_label(models[0])} and {len(models) - 1} more"


def status_line(place: str, models: str, cases: int, counts: Counts, progress: Progress, width: int) -> Line:
    """The whole line; what is least needed goes first when it is narrow."""
    left: Line = (Span(f" {one_line(place)}", "strong"), Span("  "), Span(models, "accent"))
    right = _right(cases, counts, progress)
    for shorter in (right, _right(cases, counts, progress, bar=False)):
        if cells(left) + cells(shorter) + 2 <= width:
            return spread(left, shorter, width)
    if cells(left[:1]) + cells(right) + 2 > width:
        right = _right(cases, counts, progress, bar=False)
    return spread(left, right, width)


def _right(cases: int, counts: Counts, progress: Progress, *, bar: bool = True) -> Line:
    spans: list[Span] = []
    if bar and progress.under_way and progress.elapsed_s >= BAR_AFTER_S and progress.total:
        filled = BAR_CELLS * progress.done // progress.total
        spans.append(Span(GLYPHS.bar * filled, "accent"))
        spans.append(Span(GLYPHS.rest * (BAR_CELLS - filled), "border"))
        spans.append(Span(f" {progress.done}/{progress.total}  ", "muted"))
    shown: tuple[tuple[int, str, str, Role], ...] = (
        (counts.passed, GLYPHS.passed, "", "passed"),
        (counts.warned, GLYPHS.warned, "", "warned"),
        (counts.failed, GLYPHS.failed, "", "failed"),
        (counts.error, GLYPHS.error, " error" if counts.error == 1 else " errors", "error"),
        (counts.skipped, "", "skipped", "muted"),
        (counts.stopped, "", "stopped", "muted"),
        (counts.running + counts.waiting, GLYPHS.running, " running", "running"),
        (counts.held, GLYPHS.asks, " asks" if counts.held == 1 else " ask", "warned"),
    )
    spans += [Span(f"{count} {sign}{word}  ", role) for count, sign, word, role in shown if count]
    if not any(count for count, _, _, _ in shown):
        return (Span(f"{many(cases, 'case')} ", "muted"),) if cases else EMPTY
    if not progress.total:
        return tuple(spans)  # recordings, which nothing was waited for
    took = clock(progress.elapsed_s) if progress.under_way else duration(progress.elapsed_s * 1000)
    spans.append(Span(f"{took} ", "muted"))
    return tuple(spans)
