"""The lines of the screen of the history: a row for each batch, and everything about the selected one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.analysis.over_time import rate_of
from workbench.grading.status import Status
from workbench.history.records import BatchPart, BatchRow, SuiteRef
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.signs import sparkline
from workbench.show.spans import (
    ELLIPSIS,
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    cells,
    cut_line,
    cut_middle,
    heading,
    padded,
    paragraph,
    spread,
    wrap_line,
)
from workbench.show.views.batch import made_with, times_text
from workbench.show.views.batch_list import called, kind_text, missing_text, pass_rate_text
from workbench.show.visible import model_label, one_line
from workbench.show.when import local_time
from workbench.tui.history.batches import HistoryList
from workbench.tui.kit.actions import unless_read_only


def list_message(state: HistoryList, file: str | None) -> Message:
    """Return the message of an empty list."""
    if file is None:
        return (
            ("This session keeps no history.", "strong"),
            ("", "text"),
            ("It was started with --no-history: without it, every batch is stored as it runs.", "text"),
        )
    if state.problem is not None:
        problem = one_line(state.problem)
        return ((problem[:1].upper() + problem[1:], "error"), ("", "text"), ("F5 reloads it.", "muted"))
    if not state.is_read:
        return ((f"Reading the history {ELLIPSIS}", "muted"),)
    if state.filter:
        return (("No batch fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))
    if state.batches:
        return (("There are only forks of single runs here.", "strong"), ("", "text"), (". shows them.", "muted"))
    ways = (
        unless_read_only("r runs a case, R a suite or folder, 'workbench run' as well") or "'workbench run' makes one"
    )
    return (
        ("There is no batch yet.", "strong"),
        ("", "text"),
        (f"Every batch is stored as it runs: {ways}.", "text"),
        ("", "text"),
        (f"The history is {one_line(file)}; a folder .workbench in a project keeps the project's own.", "muted"),
    )


def detail_lines(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    """Return everything about one batch."""
    return [line for part in _detail(state, batch, width) for line in part]


def _detail(state: HistoryList, batch: BatchRow, width: int) -> Iterator[list[Line]]:
    yield _head(state, batch, width)
    if batch.damage is not None:
        return
    yield _suites_and_models(state, batch, width)
    yield _gradings(state, batch, width)
    yield _made_with(batch, width)


def _head(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    if batch.damage is not None:
        text = f"This batch is damaged: {batch.damage}.{unless_read_only(' Delete removes it.')}"
        return [(Span(f" {called(batch)}", "strong"),), *paragraph(text, width, "error")]
    parts = state.parts(batch)
    good, graded = rate_of(parts)
    passed = (
        f"{pass_rate_text(parts)} passed: {good:,} of {counted(graded, 'graded run')}"
        if graded
        else "No run was graded"
    )
    by = [span for text, role in _grading_notes(state, batch) for span in (Span(", "), Span(text, role))]
    lines: list[Line] = [
        spread((Span(f" {called(batch)}", "strong"),), (Span(f"{times_text(batch)} ", "muted"),), width),
        *wrap_line((Span(f" {passed}"), *by), width, hang=1),
    ]
    outside = [status for status in Status if status.final and not status.graded]
    apart = [(sum(part.counts[status] for part in parts), status.counted) for status in outside]
    if text := ", ".join(f"{count:,} {words}" for count, words in apart if count):
        lines += paragraph(f"Also {text}.", width, "muted")
    resume = unless_read_only("c runs exactly these") if batch.kind == "runs" else ""
    if missing := missing_text(batch, going=state.is_going(batch), ways_on=[resume]):
        lines += paragraph(_sentence(missing), width, "running" if state.is_going(batch) else "warned")
    if kind := kind_text(batch):
        lines += paragraph(_sentence(kind), width, "muted")
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _grading_notes(state: HistoryList, batch: BatchRow) -> Iterator[tuple[str, Role]]:
    """Yield which grades the counts are based on, if there are several."""
    shown = state.grading(batch)
    if shown is not None:
        yield f"as regraded {local_time(shown.graded_at)} (grading {shown.number})", "accent"
    elif batch.number in state.regraded:
        yield "as graded when it ran; there are later grades", "muted"


def _suites_and_models(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    by_suite: dict[SuiteRef, list[BatchPart]] = {}
    for part in state.parts(batch):
        by_suite.setdefault(part.suite, []).append(part)
    label_cells = max(cells((Span(model_label(model)),)) for model in batch.models) if batch.models else 0
    lines: list[Line] = []
    trends = False
    for suite, parts in by_suite.items():
        lines += [EMPTY, _suite_head(suite, width)]
        for part in parts:
            trend = state.trend(batch, part)
            trends = trends or len(trend) > 1
            lines.append(_part_line(part, trend, label_cells, width))
    if trends:
        then = ", as they were graded when they ran" if state.regraded else ""
        lines += paragraph(
            f"Bars are pass rates of whole batches up to this one, the oldest first{then}; a batch of some cases "
            "only, or with missing runs or errors, is left out.",
            width,
            "muted",
        )
    return lines


def _suite_head(suite: SuiteRef, width: int) -> Line:
    return cut_line((Span(f" {one_line(suite.name)}", "heading"), Span(f"  {one_line(suite.path)}", "muted")), width)


def _part_line(part: BatchPart, trend: Sequence[float], label_cells: int, width: int) -> Line:
    signs: list[Span] = []
    for status in Status:
        if part.counts[status]:
            signs.append(Span(f" {status.sign}{part.counts[status]:,}", status.role))
    some = f"  {counted(part.cases, 'case')} of {part.suite.cases:,}" if not part.whole else ""
    figures: Line = (Span(f"  {pass_rate_text((part,)):>6}", "strong"), *signs, Span(some, "muted"))
    line: Line = (Span(f" {sparkline(trend)} ", "accent"),) if len(trend) > 1 else EMPTY
    label_cells = min(label_cells, max(width - cells(figures) - cells(line) - 3, 8))
    return spread(
        (Span(f"   {padded(cut_middle(model_label(part.model), label_cells), label_cells)}"), *figures), line, width
    )


def _gradings(state: HistoryList, batch: BatchRow, width: int) -> list[Line]:
    if batch.number not in state.regraded:
        return []
    lines: list[Line] = [EMPTY, (Span(" Regraded", "heading"),)]
    shown = state.grading(batch)
    known = state.gradings(batch)
    if not known:
        return [*lines, (Span(f"   {counted(state.regraded[batch.number], 'time')}, being read {ELLIPSIS}", "muted"),)]
    rows = [("when it ran", local_time(batch.started_at), batch.parts, shown is None)]
    rows += [
        (f"grading {grading.number}", local_time(grading.graded_at), parts, grading is shown)
        for grading, parts in known
    ]
    for name, at, parts, chosen in rows:
        good, graded = rate_of(parts)
        mark = f" {GLYPHS.folded} " if chosen else "   "
        text = f"{name:<12} {at}  {pass_rate_text(parts):>6}  {good:,}/{graded:,}"
        lines.append(cut_line((Span(mark, "accent"), Span(text, "strong" if chosen else "text")), width))
    return [*lines, *paragraph("o shows the other grades, above and in what Enter opens.", width, "muted")]


def _made_with(batch: BatchRow, width: int) -> list[Line]:
    lines: list[Line] = [EMPTY, heading("Made with")]
    for text in made_with(batch):
        lines += wrap_line((Span(f"   {text}"),), width, hang=5)
    return lines
