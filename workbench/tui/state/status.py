"""The status line: where we are, with which models, and how the runs stand."""

from __future__ import annotations

from workbench.reports.values import cost_text
from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.runs import Progress
from workbench.tui.state.spans import Line, Role, Span, cells, spread
from workbench.tui.state.spend import Spend
from workbench.tui.state.summaries import Counts
from workbench.tui.state.words import clock, duration, many, model_label, short_count

BAR_CELLS = 12
BAR_AFTER_S = 1.0
"""A progress bar is shown for batches that take longer than this."""


def models_label(models: tuple[str, ...], width: int = 40) -> str:
    """Several models in at most about `width` cells."""
    if not models:
        return ""
    text = f" {GLYPHS.dot} ".join(model_label(model) for model in models)
    return text if len(text) <= width else f"{model_label(models[0])} and {len(models) - 1} more"


def status_line(
    place: str, models: str, cases: int, counts: Counts, spend: Spend, progress: Progress, width: int
) -> Line:
    """The whole line; what is least needed goes first when it is narrow."""
    left: Line = (Span(f" {one_line(place)}", "strong"), Span("  "), Span(models, "accent"))
    parts = _parts(cases, counts, spend, progress)
    for needed in range(_COST, _COUNTS - 1, -1):
        kept = tuple(span for rank, spans in parts if rank <= needed for span in spans)
        if cells(left if needed >= _MODELS else left[:1]) + cells(kept) + 2 <= width:
            break
    return spread(left, kept, width)


_COUNTS, _TIME, _MODELS, _BAR, _TOKENS, _COST = range(6)
"""What a part of the line is worth: the last goes first."""


def _parts(cases: int, counts: Counts, spend: Spend, progress: Progress) -> list[tuple[int, Line]]:
    """What stands on the right, each part with its rank."""
    parts: list[tuple[int, Line]] = []
    if progress.under_way and progress.elapsed_s >= BAR_AFTER_S and progress.total:
        filled = BAR_CELLS * progress.done // progress.total
        bar = (Span(GLYPHS.bar * filled, "accent"), Span(GLYPHS.rest * (BAR_CELLS - filled), "border"))
        parts.append((_BAR, (*bar, Span(f" {progress.done}/{progress.total}  ", "muted"))))
    shown: tuple[tuple[int, str, str, Role], ...] = (
        (counts.passed, GLYPHS.passed, "", "passed"),
        (counts.warned, GLYPHS.warned, "", "warned"),
        (counts.failed, GLYPHS.failed, "", "failed"),
        (counts.error, GLYPHS.error, " error" if counts.error == 1 else " errors", "error"),
        (counts.skipped, "", "skipped", "muted"),
        (counts.stopped, "", "stopped", "muted"),
        (counts.running + counts.waiting - counts.held, GLYPHS.running, " running", "running"),
        (counts.held, GLYPHS.held, " held", "warned"),
        (counts.asking, GLYPHS.asks, " asks" if counts.asking == 1 else " ask", "warned"),
    )
    spans = tuple(Span(f"{count} {sign}{word}  ", role) for count, sign, word, role in shown if count)
    if not spans:
        return [(_COUNTS, (Span(f"{many(cases, 'case')} ", "muted"),))] if cases else []
    parts.append((_COUNTS, spans))
    if spend.tokens:
        parts.append((_TOKENS, (Span(f"{short_count(spend.tokens)} tok  ", "muted"),)))
    if cost := _cost(spend):
        parts.append((_COST, (Span(f"{cost}  ", "muted"),)))
    if progress.total:  # else recordings, which nothing was waited for
        took = clock(progress.elapsed_s) if progress.under_way else duration(progress.elapsed_s * 1000)
        parts.append((_TIME, (Span(f"{took} ", "muted"),)))
    return parts


def _cost(spend: Spend) -> str:
    """What is known of the cost, and that some is not known, if it is not."""
    if not spend.cost_usd:
        return "cost unknown" if spend.unknown else ""
    return cost_text(spend.cost_usd) + (" + ?" if spend.unknown else "")
