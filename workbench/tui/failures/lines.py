"""The lines of the screen of failures: causes and runs, advice, and the confusion table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from rich.cells import cell_len

from workbench.analysis.failures import ADVICE, CauseGroup, Confusion, FailedRun, Symptom
from workbench.numerals import counted, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import (
    ELLIPSIS,
    EMPTY,
    Line,
    Message,
    Role,
    Span,
    cells,
    cut,
    cut_line,
    cut_middle,
    heading,
    padded,
    paragraph,
    spread,
    wrap,
    wrap_line,
)
from workbench.show.views.failures import NO_CALL, NOT_EXPECTED, often
from workbench.show.visible import one_line
from workbench.tui.failures.state import FailureList, FailureRow

WIDEST_NAME = 32
"""The maximum width of a tool's name in the table."""

_GAP = 2


class ConfusionTable:
    """Expected tools as rows, called tools as columns."""

    def __init__(self, confusion: Confusion) -> None:
        self._counts = confusion.counts
        self._rows, self._columns = confusion.rows, confusion.columns
        self._names = [_name(row, NOT_EXPECTED) for row in self._rows]
        self._heads = [_name(column, NO_CALL) for column in self._columns]

    def last_first(self, width: int) -> int:
        """Return the first column to show so that the last one is visible, 0 if all fit."""
        room = width - self._side(width) - 1
        first = len(self._heads)
        while first > 0 and (room := room - cell_len(self._heads[first - 1]) - _GAP) >= 0:
            first -= 1
        return min(first, max(len(self._heads) - 1, 0))

    def lines(self, width: int, first: int) -> list[Line]:
        """Return the table from column `first` on, with as many columns as fit and at least one."""
        side, columns, heads = self._side(width), self._columns, self._heads
        shown = self._shown(width - side - 1, first)
        widest = max(width - side - 1 - _GAP, 1)
        lines: list[Line] = []
        if len(shown) < len(columns):
            numbers = f"column {first + 1}" if len(shown) == 1 else f"columns {first + 1} to {shown.stop}"
            scroll = f"{GLYPHS.result} {GLYPHS.call} scroll"
            lines.append((Span(cut(f" {numbers} of {len(columns)} {GLYPHS.dot} {scroll}", width), "muted"),))
        head = [Span(f" {padded('expected', side)}", "muted")]
        head += [Span(f"  {cut_middle(heads[at], widest)}", "heading" if columns[at] else "warned") for at in shown]
        lines.append(tuple(head))
        for row, name in zip(self._rows, self._names, strict=True):
            spans = [Span(f" {padded(cut_middle(name, side), side)}", "tool" if row else "warned")]
            for at in shown:
                count = self._counts.get((row, columns[at]), 0)
                role: Role = "muted" if not count else "passed" if row == columns[at] else "failed" if row else "warned"
                text = f"{count:,}" if count else GLYPHS.dot
                spans.append(Span(f"  {text:>{min(cell_len(heads[at]), widest)}}", role))
            lines.append(tuple(spans))
        return lines

    def _shown(self, room: int, first: int) -> range:
        stop = first
        while stop < len(self._heads) and (room := room - cell_len(self._heads[stop]) - _GAP) >= 0:
            stop += 1
        return range(first, min(max(stop, first + 1), len(self._heads)))

    def _side(self, width: int) -> int:
        """Return the width of the first column."""
        return min(max(map(cell_len, (*self._names, "expected"))), max(width // 2 - _GAP, 8))


def _name(tool: str | None, otherwise: str) -> str:
    return cut_middle(one_line(tool), WIDEST_NAME) if tool is not None else otherwise


MAX_EXAMPLES = 5
"""The number of different examples shown with a cause's advice. The list has all runs."""

MAX_EXAMPLES_FROM = 200
"""Runs that are searched for examples on every cursor movement."""

MAX_RUNS_OF_EXAMPLE = 6
"""Runs that are named if the same went wrong in several."""

MIN_NAME_CELLS = 8
"""The minimum of a case's name in the list, however long the model's name is."""

MAX_SUBJECTS = 20

_NOTHING_FITS: Message = (("No failed run fits the filter.", "strong"), ("", "text"), ("Esc shows all again.", "muted"))


def row_line(state: FailureList, row: FailureRow, width: int) -> Line:
    """Return one row of the list."""
    if row.group is None:
        return cut_line((Span("Expected and called", "strong"), Span("  all graded runs", "muted")), width)
    if row.run is None:
        total = len(row.group.runs)
        fold = GLYPHS.folded if state.is_folded(row.group.cause) else GLYPHS.open
        count = f"{total:,}" if row.shown == total else f"{row.shown:,} of {total:,}"
        return spread((Span(f"{fold} "), Span(row.group.cause, "strong")), (Span(count, "failed"),), width)
    run, main = row.run, row.run.main == row.group.cause
    role: Role = "text" if main else "muted"  # dimmed, since its main cause is a different one
    name, rest = _title(state, run), Span(_which(state, run), role)
    also: Line = EMPTY if main else (Span(f"  {run.main}", "muted"),)
    if cells((Span(f"    {name}"), rest, *also)) > width:
        also = EMPTY
    # The case's name is cut first, because model and repeat identify the run.
    room = max(width - 4 - cells((rest, *also)), MIN_NAME_CELLS)
    return spread((Span("    "), Span(cut_middle(name, room), role), rest), also, width)


def list_message(state: FailureList) -> Message:
    """Return the message of an empty list."""
    return _NOTHING_FITS if state.filter else ()


def detail_lines(state: FailureList, row: FailureRow, table: ConfusionTable, first: int, width: int) -> Sequence[Line]:
    """Return everything about the cause or run of a row, and the confusion table from column `first` on."""
    over = f"  over all {counted(state.failures.graded, 'graded run')}"
    if row.run is not None:
        lines = list(_run_lines(state, row.run, width))
    elif row.group is not None:
        lines = list(_cause_lines(state, row.group, width))
    else:
        over = ""
        graded = f"Over {counted(state.failures.graded, 'graded run')}, those that passed too. A tool called in another"
        lines = paragraph(
            f"{graded} one's place stands in its column. Cases that say nothing about calls are left out.", width
        )
    title = cut_line((*heading("Expected and called"), Span(over, "muted")), width)
    return [*lines, EMPTY, title, *table.lines(width, first)]


def _cause_lines(state: FailureList, group: CauseGroup, width: int) -> Iterator[Line]:
    yield from wrap_line((Span(f" {group.cause}", "failed"), Span(f"  {often(group.numbers)}", "muted")), width, hang=3)
    yield from paragraph(ADVICE[group.cause].meaning, width, "muted")
    yield EMPTY
    yield from _advice(group.advice, width)
    if group.subjects:
        yield EMPTY
        yield heading("Tools and parameters")
        names = [(one_line(str(subject)), f"{count:,}") for subject, count in group.subjects[:MAX_SUBJECTS]]
        needed = max(cell_len(name) + len(count) for name, count in names) + 5
        for name, count in names:
            yield spread((Span("   "), Span(name, "tool")), (Span(count),), min(needed, width))
        if (more := len(group.subjects) - MAX_SUBJECTS) > 0:
            yield (Span(f"   and {more:,} more", "muted"),)
    yield EMPTY
    yield heading("Examples")
    for title, symptoms in _examples(state, group):
        yield from wrap_line((Span("   "), Span(title, "strong")), width, hang=3)
        for symptom in symptoms:
            yield from _symptom(symptom, width)


def _examples(state: FailureList, group: CauseGroup) -> Iterator[tuple[str, Sequence[Symptom]]]:
    """Yield the symptoms of some runs. Runs of a case with equal symptoms are combined."""
    alike: dict[tuple[str, tuple[Symptom, ...]], list[str]] = {}
    for run in group.runs[:MAX_EXAMPLES_FROM]:
        symptoms = tuple(run.symptoms_of(group.cause))
        alike.setdefault((_title(state, run), symptoms), []).append(_which(state, run).strip())
    for (title, symptoms), which in islice(alike.items(), MAX_EXAMPLES):
        shown = [run or "#1" for run in which[:MAX_RUNS_OF_EXAMPLE]] if len(which) > 1 else which
        more = f", {ELLIPSIS}" if len(which) > MAX_RUNS_OF_EXAMPLE else ""
        yield f"{title}  {', '.join(shown)}{more}".rstrip(), symptoms


def _advice(text: str, width: int) -> Iterator[Line]:
    yield heading("What to do")
    yield from paragraph(f"{text[:1].upper()}{text[1:]}.", width)


def _run_lines(state: FailureList, run: FailedRun, width: int) -> Iterator[Line]:
    result = run.result
    graded = f"  {result.grade.grader} {score_text(result.score, '')}" if result.grade is not None else ""
    title = Span(_title(state, run) + _which(state, run), "strong")
    yield from wrap_line((Span(f" {GLYPHS.failed} ", "failed"), title, Span(graded, "muted")), width, hang=3)
    for cause in run.causes:
        yield EMPTY
        also = "  the main cause" if cause == run.main and len(run.causes) > 1 else ""
        yield cut_line((Span(f" {cause}", "failed"), Span(also, "muted")), width)
        for symptom in run.symptoms_of(cause):
            yield from _symptom(symptom, width)
    yield EMPTY
    yield from _advice(run.advice, width)


def _symptom(symptom: Symptom, width: int) -> Iterator[Line]:
    facts: list[tuple[str, str, Role]] = []
    if symptom.subject is not None:
        facts.append(("", str(symptom.subject), "tool"))
    if symptom.remark:
        facts.append(("", symptom.remark, "text"))
    facts += [
        (f"{word} ", text, "muted")
        for word, text in (("expected", symptom.expected), ("got     ", symptom.got))
        if text is not None
    ]
    for word, text, role in facts:
        first, *rest = wrap(one_line(text), max(width - 5 - len(word), 10))
        yield (Span(f"     {word}", "muted"), Span(first, role))
        for row in rest:
            yield (Span(" " * (5 + len(word))), Span(row, role))


def _title(state: FailureList, run: FailedRun) -> str:
    """Return the case, with its suite if there are several."""
    result = run.result
    suite = state.suite_names.get(result.suite, Path(result.suite).stem)
    return one_line(f"{suite} › {result.case_name}" if state.several_suites else result.case_name)


def _which(state: FailureList, run: FailedRun) -> str:
    """Return the model, if there are several, and the repeat of a run."""
    model = f"  {one_line(run.result.model)}" if state.several_models else ""
    return f"{model} #{run.result.repeat + 1}" if run.result.repeat else model
