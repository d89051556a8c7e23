"""The status line: counts, spending and progress of runs. Also the timer that updates the line each second."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from textual.timer import Timer

from workbench.grading.status import Status
from workbench.numerals import (
    count_text,
    counted,
    duration_text,
    elapsed_text,
    estimate_time_text,
    short_count,
    with_user_cost,
)
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cells, cut_middle, spread
from workbench.show.views.progress import known_cost_text, starting_text, waiting_text
from workbench.show.visible import model_label, one_line

if TYPE_CHECKING:
    from workbench.tui.run_book.book import Progress, RunBook
    from workbench.tui.run_book.record import Spend
    from workbench.tui.run_book.summaries import Counts


class RunTicker:
    """Calls `moved` every second while servers start or runs are active, unless all runs wait for the user."""

    def __init__(
        self, book: RunBook, start: Callable[[float, Callable[[], None]], Timer], moved: Callable[[], None]
    ) -> None:
        self._book = book
        self._start = start
        self._moved = moved
        self._timer: Timer | None = None

    def follow(self) -> None:
        """Start or stop the timer after the state of runs changed."""
        book = self._book
        counts = book.counts()
        waits = 0 < counts.running == counts.held + counts.asking
        ticks = bool(book.starting) or (book.progress().is_active and not waits)
        if ticks and self._timer is None:
            self._timer = self._start(1.0, self._moved)
        elif not ticks and self._timer is not None:
            self._timer.stop()
            self._timer = None


BAR_CELLS, SHORT_BAR_CELLS = 12, 6
NARROW_CELLS = 100
"""The width in cells below which the bar is short."""

BAR_AFTER_S = 1.0
"""The time in seconds before a batch has a progress bar."""


def models_label(models: tuple[str, ...], width: int = 40) -> str:
    """Return the names of models.

    If they are wider than `width` cells, return the first name and the number of the others."""
    if not models:
        return ""
    text = f" {GLYPHS.dot} ".join(map(model_label, models))
    if len(text) <= width:
        return text
    return f"{model_label(models[0])} and {len(models) - 1} more"


def status_line(
    place: str, models: str, cases: int, counts: Counts, spend: Spend, progress: Progress, width: int
) -> Line:
    """Return the status line. If there is little room, the least important parts are omitted."""
    left: Line = (Span(f" {one_line(place)}", "strong"), Span("  "), Span(models, "accent"))
    bar = SHORT_BAR_CELLS
    if width >= NARROW_CELLS:
        bar = BAR_CELLS
    for needed, words in _SHORTENINGS:
        parts = _parts(cases, counts, spend, progress, bar, words=words)
        fitting = tuple(chain.from_iterable(spans for rank, spans in parts if rank <= needed))
        kept = left[:1]
        if needed >= _MODELS:
            kept = left
        if cells(kept) + cells(fitting) + 2 <= width:
            break
    room = width - cells(left[:2]) - cells(fitting) - 1
    if cells(left[2:]) > room >= _MIN_MODELS_CELLS:
        left = (*left[:2], Span(cut_middle(models, room), "accent"))
    return spread(left, fitting, width)


_MIN_MODELS_CELLS = 8
"""The minimum width for names of models that are cut in the middle. With less, they are cut at the end."""

_COUNTS, _LEFT, _TIME, _BAR, _TIME_LEFT, _MODELS, _TOKENS, _COST = range(8)
"""The rank of each part. The part with the highest rank is omitted first."""

_SHORTENINGS = (
    (_COST, True),
    (_TOKENS, True),
    (_MODELS, True),
    (_TIME_LEFT, True),
    (_TIME_LEFT, False),
    (_BAR, True),
    (_BAR, False),
    (_TIME, False),
    (_LEFT, False),
    (_COUNTS, False),
)
"""The highest rank to keep and whether signs have words, from the longest line to the shortest."""


def _count_spans(counts: Counts, *, words: bool) -> Line:
    spans: list[Span] = []
    for status in Status:
        count, sign = counts.ended.get(status), status.sign
        if status.role == "muted":
            # Without a word, a dimmed sign would be unclear.
            sign = status.counted
        elif words and status is Status.ERROR:
            sign += f" {status.word}"
        if count:
            spans.append(Span(f"{count} {sign}  ", status.role))
    asks = "ask"
    if counts.asking == 1:
        asks = "asks"
    active: tuple[tuple[int, str, str, Role], ...] = (
        (counts.running - counts.held, GLYPHS.running, "running", "running"),
        (counts.held, GLYPHS.held, "held", "warned"),
        (counts.asking, GLYPHS.asks, asks, "warned"),
    )
    for count, sign, word, role in active:
        if count:
            text = f"{count} {sign}  "
            if words:
                text = f"{count} {sign} {word}  "
            spans.append(Span(text, role))
    return tuple(spans)


def _parts(
    cases: int, counts: Counts, spend: Spend, progress: Progress, bar: int, *, words: bool
) -> list[tuple[int, Line]]:
    parts: list[tuple[int, Line]] = []
    if progress.is_active and progress.elapsed_s >= BAR_AFTER_S and progress.total:
        parts.append((_BAR, progress_bar(progress, bar)))
    spans = _count_spans(counts, words=words)
    if not spans and not progress.is_active:
        if cases:
            return [(_COUNTS, (Span(f"{counted(cases, 'case')} ", "muted"),))]
        return []
    parts.append((_COUNTS, spans))
    if progress.is_active:
        left, time_left = _remaining_text(progress)
        parts += [(_LEFT, left), (_TIME_LEFT, time_left)]
        if left:
            parts.append((_LEFT, _GAP))
        parts.append((_TIME, _starting(progress)))
    if spend.tokens:
        parts.append((_TOKENS, (Span(f"{short_count(spend.tokens)} tok  ", "muted"),)))
    if cost := _cost(spend):
        parts.append((_COST, (Span(f"{cost}  ", "muted"),)))
    # If there are only recordings, there is no batch, and no time is shown.
    if progress.total:
        took = duration_text(progress.elapsed_s * 1000)
        if progress.is_active:
            took = elapsed_text(progress.elapsed_s)
        parts.append((_TIME, (Span(f"{took} ", "muted"),)))
    return parts


def progress_bar(progress: Progress, width: int = BAR_CELLS) -> Line:
    """Return the progress of batches as a bar of `width` cells with numbers."""
    filled = 0
    if progress.total:
        filled = width * progress.done // progress.total
    bar = (Span(GLYPHS.bar * filled, "accent"), Span(GLYPHS.rest * (width - filled), "border"))
    return (*bar, Span(f" {count_text(progress.done)}/{count_text(progress.total)}  ", "muted"))


def progress_ends(progress: Progress, detail: Line = EMPTY) -> tuple[Line, ...]:
    """Return alternative texts for the right end of a title, longest first. The last is empty.

    Each shows the progress of batches, followed by `detail` if there is room. Without batches, it shows only
    `detail`."""
    if not progress.is_active:
        return (detail, EMPTY)
    statuses: list[Span] = []
    for status in Status:
        if count := progress.statuses.get(status):
            statuses.append(Span(f"{count_text(count)} {status.sign}  ", status.role))
    short_running, running = EMPTY, _starting(progress)
    if progress.running:
        sign = Span(f"{count_text(progress.running)} {GLYPHS.running}", "running")
        short_running = (sign, *_GAP)
        running = (sign, Span(f" running{waiting_text(progress.waiting)}  ", "running"), *running)
    left, time_left = _remaining_text(progress)
    bar, numbers = progress_bar(progress)[:2], progress_bar(progress)[2:]
    short_bar = progress_bar(progress, SHORT_BAR_CELLS)[:2]
    took = (Span(f"{elapsed_text(progress.elapsed_s)}  ", "muted"),)
    facts = (*numbers, *statuses, *running, *left)
    few_words = (*numbers, *statuses, *short_running, *left)
    # Parts are omitted in this order: `detail`, the time taken, the long bar and some words, the time left, the bar.
    return (
        (*bar, *facts, *time_left, *_GAP, *took, *detail),
        (*bar, *facts, *time_left, *_GAP, *took),
        (*bar, *facts, *time_left, *_GAP),
        (*short_bar, *few_words, *time_left, *_GAP),
        (*short_bar, *few_words, *_GAP),
        (*few_words, *_GAP),
        (*numbers, *statuses),
        numbers,
        EMPTY,
    )


_GAP: Line = (Span("  "),)


def _starting(progress: Progress) -> Line:
    if not progress.starting:
        return EMPTY
    return (Span(f"{starting_text(progress.starting)}  ", "running"),)


def _remaining_text(progress: Progress) -> tuple[Line, Line]:
    left = progress.total - progress.done
    if not left:
        return EMPTY, EMPTY
    text = (Span(f"{count_text(left)} left", "muted"),)
    if progress.left_s is None:
        return text, EMPTY
    return text, (Span(f", about {estimate_time_text(progress.left_s)}", "muted"),)


def _cost(spend: Spend) -> str:
    """Return the known cost, with a note if other runs have an unknown cost. Return "" if there is no cost."""
    known = ""
    if spend.cost_usd:
        known = known_cost_text(spend.cost_usd, has_unknown=spend.unknown)
    elif spend.unknown:
        known = "cost unknown"
    return with_user_cost(known, spend.user_usd)
