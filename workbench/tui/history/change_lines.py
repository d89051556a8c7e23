"""The lines of the screen of changes: a row for each kind and case, and both sides of the selected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.cells import cell_len

from workbench.analysis.batch_diff import CaseChange, ChangeKind
from workbench.analysis.comparison import Cell
from workbench.reports.visible import one_line
from workbench.tui.history.batch_lines import paragraph
from workbench.tui.history.changes import DiffList, DiffRow, change_title
from workbench.tui.lines.glyphs import GLYPHS, STATUS_SIGNS
from workbench.tui.lines.prose import Message
from workbench.tui.lines.spans import EMPTY, Line, Role, Span, cells, cut, cut_line, spread
from workbench.tui.lines.words import duration, model_label, score

_ROLES: Mapping[ChangeKind, Role] = {
    "broke": "failed",
    "fixed": "passed",
    "moved": "warned",
    "new": "accent",
    "gone": "muted",
    "slower": "warned",
    "errored": "error",
}

_MEANINGS: Mapping[ChangeKind, str] = {
    "broke": "Passed or warned before, failed now.",
    "fixed": "Failed before, passed or warned now.",
    "moved": "Neither broken nor fixed, but with another status or score.",
    "new": "Only in the later batch.",
    "gone": "Only in the earlier batch.",
    "slower": "Graded both times, and the model took at least 50 % and 200 ms longer.",
    "errored": "Graded before, in error now: a problem of the infrastructure, not a regression.",
}

LEAST_NAME_CELLS = 12


def row_line(state: DiffList, row: DiffRow, width: int) -> Line:
    """Return one row of the list."""
    if row.change is None:
        fold = GLYPHS.folded if state.is_folded(row.kind) else GLYPHS.open
        total = len(state.diff.of(row.kind))
        count = f"{total:,}" if row.shown == total else f"{row.shown:,} of {total:,}"
        ends: Line = (Span(f"{count} ", _ROLES[row.kind]),)
        return spread((Span(f"{fold} "), Span(row.kind, "strong")), ends, width)
    change = row.change
    right: Line = (*_short(change), Span(" "))
    title = change_title(state, change)
    room = width - 4 - cells(right) - 1
    model = ""
    if state.several_models:
        # The case's name comes first, because it alone identifies the row within a model.
        model = f"  {cut(model_label(change.model), max(room - 2 - cell_len(title), room // 3))}"
    name = cut(title, max(room - cell_len(model), LEAST_NAME_CELLS))
    return spread((Span("    "), Span(name), Span(model, "muted")), right, width)


def _short(change: CaseChange) -> Line:
    """Return both sides of a change in signs and numbers."""
    if change.kind == "slower" and change.before is not None and change.after is not None:
        was, is_now = change.before.latency_ms or 0.0, change.after.latency_ms or 0.0
        return (Span(f"{duration(was)} {GLYPHS.call} ", "muted"), Span(duration(is_now), "warned"))
    sides = [_verdict(cell) for cell in (change.before, change.after) if cell is not None]
    return (*sides[0], Span(f" {GLYPHS.call} ", "muted"), *sides[1]) if len(sides) > 1 else sides[0]


def _verdict(cell: Cell) -> Line:
    sign, role = STATUS_SIGNS[cell.status]
    number = score(cell.score)
    share = f" {cell.good}/{cell.graded}" if cell.graded > 1 else ""
    return (Span(sign, role), Span(f" {number}" if number else ""), Span(share, "muted"))


def list_message(state: DiffList) -> Message:
    """Return the message of an empty list."""
    if state.filter:
        return (("No change fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))
    if state.diff.compared:
        return (("Nothing changed.", "strong"), ("", "text"), ("Every case has the same result as before.", "text"))
    return (
        ("There is nothing to compare.", "strong"),
        ("", "text"),
        ("No case was graded in both batches with the same model, or with the only model of each.", "text"),
    )


def head_lines(state: DiffList, width: int) -> list[Line]:
    """Return the counts, what they exclude, and whether the difference is statistically significant."""
    diff = state.diff
    counts: list[Span] = []
    for kind, role in _ROLES.items():
        if found := diff.of(kind):
            counts += [Span(f"{GLYPHS.dot} " if counts else " ", "muted"), Span(f"{len(found):,} {kind} ", role)]
    before = f"{f'{GLYPHS.dot} ' if counts else ' '}{diff.as_before:,} as before"
    counts.append(Span(before, "muted"))
    return [cut_line(tuple(counts), width), *_said_lines(state, width)]


def _said_lines(state: DiffList, width: int) -> Iterator[Line]:
    for sentence in (*state.notes, *state.tests):
        yield from paragraph(sentence, width, "text")


def detail_lines(state: DiffList, row: DiffRow | None, width: int) -> list[Line]:
    """Return everything about the change, or kind of change, of a row. Without a selected change, also everything about
    the two batches, for which the head may have no room."""
    return list(_detail(state, row, width) if row is not None else _said_lines(state, width))


def _detail(state: DiffList, row: DiffRow, width: int) -> Iterator[Line]:
    yield (Span(f" {row.kind}", _ROLES[row.kind]),)
    change = row.change
    if change is None:
        yield from paragraph(_MEANINGS[row.kind], width, "text")
        yield EMPTY
        yield from _said_lines(state, width)
        return
    yield from paragraph(change_title(state, change), width, "strong")
    if state.diff.across is None:
        yield from paragraph(model_label(change.model), width, "muted")
    if state.suite_changed(change.suite):
        yield from paragraph("Its suite changed between the two batches.", width, "warned")
    models = state.diff.across or (change.model, change.model)
    for name, model, cell in zip(state.names, models, (change.before, change.after), strict=True):
        yield EMPTY
        of_model = f"  {model_label(model)}" if state.diff.across is not None else ""
        yield cut_line((Span(f" {name}", "heading"), Span(of_model, "muted")), width)
        if cell is None:
            yield (Span("   not run", "muted"),)
        else:
            yield from _side_lines(cell, width)


def _side_lines(cell: Cell, width: int) -> Iterator[Line]:
    sign, role = STATUS_SIGNS[cell.status]
    facts = [f"{score(cell.score)}"] if cell.score is not None else []
    if cell.graded > 1:
        facts.append(f"{cell.good} of {cell.graded} good")
        if cell.spread:
            facts.append(f"spread {score(cell.spread)}")
    if cell.latency_ms is not None:
        facts.append(duration(cell.latency_ms))
    said = f"  {f' {GLYPHS.dot} '.join(facts)}" if facts else ""
    yield cut_line((Span(f"   {sign} {cell.status}", role), Span(said)), width)
    if cell.status != "passed":
        reasons = [cell.reason] if cell.reason else [run.reason for run in cell.runs if run.reason]
        for reason in list(dict.fromkeys(filter(None, reasons)))[:3]:
            yield from paragraph(one_line(reason), width, "muted", 5)
