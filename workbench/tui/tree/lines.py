"""The lines of the suite tree: sign, name, and the result on the right."""

from __future__ import annotations

from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from rich.cells import cell_len

from workbench.grading.status import Status
from workbench.numerals import age_text, counted, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Message, Role, Span, cells, cut_line, cut_middle, spread
from workbench.show.visible import one_line
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.summaries import NEVER_RUN, CaseSummary, CaseTally, StepSummary, worst_graded
from workbench.tui.tree.filter import advice
from workbench.tui.tree.remembered import is_edited_since
from workbench.tui.tree.state import Row, TreeState

if TYPE_CHECKING:
    from workbench.analysis.over_time import LastResult

INDENT = 2

NAME_SHARE = 0.6
"""What a long name keeps of the row behind its sign, whatever else there is to show."""

_BLANK = Span(" ")
_UNSAVED: Line = (_BLANK, Span(GLYPHS.unsaved, "running"))


def tree_line(tree: TreeState, row: Row, book: RunBook, width: int) -> Line:
    """Return one row, at most `width` cells wide."""
    indent = Span(" " * (1 + INDENT * row.depth))
    name = one_line(row.label)
    match row.key.kind:
        case "case":
            summary = book.summary((row.key.path, row.key.part))
            last = tree.remembered.shown((row.key.path, row.key.part), book)
            if last is not None and row.case is not None and not _is_broken(row):
                return _remembered_line(tree, row, last, book.now(), width)
            sign, result = _case(row, summary)
            fold = f" {_fold(tree, row)}" if tree.is_foldable(row) else ""
            marks = _marks(tree, row, summary)
            return _marked((indent, sign, Span(fold, "muted"), Span(f" {name}")), marks, result, width)
        case "step":
            number, _, tool = name.partition(" ")
            sign, result = _step(row, book)
            left = (indent, sign, Span(f" {number} ", "muted"), Span(tool, _tool_role(row)))
            return _marked(left, EMPTY, result, width)
        case "problem":
            error = row.problem is not None and row.problem.severity == "error"
            role: Role = "error" if error else "warned"
            return spread((indent, Span(f"{GLYPHS.error if error else GLYPHS.warned} {name}", role)), EMPTY, width)
        case "hint":
            return spread((indent, Span(name, "muted")), EMPTY, width)
        case _:
            broken = row.file is not None and row.file.suite is None
            head: Line = (indent, Span(f"{_fold(tree, row)} ", "muted"), Span(name, "error" if broken else "strong"))
            marks = _UNSAVED if row.open is not None and row.open.dirty else EMPTY
            if broken and row.file is not None:
                result = (Span(counted(len(row.file.problems), "problem"), "error"),)
                return _marked(head, marks, result, width)
            if row.file is not None and row.file.warnings:
                marks = (*marks, Span(f" {GLYPHS.warned}", "warned"))
            return _marked(head, marks, _tally(tree, row, book), width)


def fold_cell(row: Row) -> int:
    """Return the cell with the sign that folds a row."""
    return 1 + INDENT * row.depth + (2 if row.key.kind == "case" else 0)


def _fold(tree: TreeState, row: Row) -> str:
    return GLYPHS.folded if tree.is_folded(row) else GLYPHS.open


def _marks(tree: TreeState, row: Row, summary: CaseSummary) -> Line:
    """Return the marks of a case: unsaved, audit findings, disagreeing graders."""
    changed = row.open is not None and row.case is not None and row.open.is_changed(row.case.index)
    marks = [
        *([Span(GLYPHS.unsaved, "running")] if changed else []),
        *([Span(GLYPHS.audit, "warned")] if tree.audits.is_marked(row) else []),
        *([Span(GLYPHS.disagree, "warned")] if summary.disagree and summary.stage == "done" else []),
    ]
    return (_BLANK, *marks) if marks else EMPTY


def _marked(left: Line, marks: Line, right: Line, width: int, *shorter: Line) -> Line:
    """Put marks after a name, which is the last part of `left`.

    A long name is cut in its middle, but keeps most of the row: what is on the `right` gives way to something
    `shorter`, and to nothing at last."""
    *before, name = left
    own = width - cells(tuple(before))
    needed = min(cell_len(name.text), int(own * NAME_SHARE))
    rights = (right, *shorter, EMPTY)
    right = next((each for each in rights if own - cells(marks) - cells(each) - bool(each) >= needed), EMPTY)
    room = width - cells(marks) - cells(right) - bool(right)
    name = Span(cut_middle(name.text, room - cells(tuple(before))), name.role)
    return spread((*cut_line((*before, name), room), *marks), right, width)


def _tally(tree: TreeState, row: Row, book: RunBook) -> Line:
    below = tree.cases_below(row)
    tallies = [tree.remembered.tally(suite.path, keys, book) for suite, keys in below]
    good, graded, errors = reduce(CaseTally.plus, tallies, CaseTally())
    if graded or errors:
        shown: Line = (Span(f"{good}/{graded}", "muted"),) if graded else EMPTY
        error: Line = (Span(f"{' ' if graded else ''}{errors}{GLYPHS.error}", "error"),) if errors else EMPTY
        return (*shown, *error)
    return (Span(str(sum(len(keys) for _, keys in below)), "muted"),) if tree.is_folded(row) else EMPTY


def _tool_role(row: Row) -> Role:
    return "tool" if row.case is not None and row.step is not None and row.case.steps[row.step - 1] else "muted"


def _step(row: Row, book: RunBook) -> tuple[Span, Line]:
    """Return a step's sign and score, empty if nothing is known."""
    assert row.case is not None
    assert row.step is not None
    summary = book.step((row.key.path, row.case.key), row.step)
    if summary is None:
        return _BLANK, EMPTY
    if summary.stage == "running":
        return _running(summary)
    if summary.stage != "over":
        sign, word = (GLYPHS.running, "waiting") if summary.stage == "waiting" else (GLYPHS.never, "done")
        return Span(sign, "muted"), (Span(word, "muted"),)
    if summary.status is None:
        return Span(GLYPHS.skipped, "muted"), (Span("not reached", "muted"),)
    sign, role = summary.status.mark
    return Span(sign, role), _result(summary.status, summary.score, role)


def _case(row: Row, summary: CaseSummary) -> tuple[Span, Line]:
    if summary.stage == "running":
        return _running(summary)
    if summary.stage == "waiting":
        return Span(GLYPHS.running, "muted"), (Span("waiting", "muted"),)
    if _is_broken(row):
        return Span(GLYPHS.error, "error"), (Span("problem", "error"),)
    if summary.status is None:
        skipped = row.case is not None and row.case.skip is not None
        return Span(GLYPHS.skipped if skipped else GLYPHS.never, "muted"), EMPTY
    sign, role = (summary.graded or summary.status).mark
    result = _result(summary.graded or summary.status, summary.score, role)
    if summary.status == Status.ERROR and summary.graded is not None:  # on other models
        result = (Span(f"{GLYPHS.error} ", "error"), *result)
    return Span(sign, role), result


def _is_broken(row: Row) -> bool:
    return row.open is not None and row.case is not None and row.case.index in row.open.broken_cases


def _remembered_line(tree: TreeState, row: Row, last: LastResult, now: datetime, width: int) -> Line:
    """Return the row of a case with its last result from the history, dimmed, with its age.

    That the case was edited since is a word where there is room, otherwise a sign."""
    indent = Span(" " * (1 + INDENT * row.depth))
    fold = f" {_fold(tree, row)}" if tree.is_foldable(row) else ""
    graded = worst_graded({cell.status for cell in last.cells})
    left: Line = (
        indent,
        Span(f"{(graded or last.status).sign}{fold}", "muted"),
        Span(f" {one_line(row.label)}"),
    )
    marks = _marks(tree, row, NEVER_RUN)
    text = last.status if graded is None or last.score is None else score_text(last.score, "")
    failing = f"{GLYPHS.error} " if last.status == Status.ERROR and graded is not None else ""
    result, old = f"{failing}{text}", age_text(last.began_ms, now)
    edited = is_edited_since(row, last)
    texts = [f"{GLYPHS.by_hand if edited else ''} {result} {old}".strip(), result]
    first, *shorter = [f"edited {GLYPHS.dot} {result} {old}", *texts] if edited else texts
    return _marked(left, marks, (Span(first, "muted"),), width, *((Span(each, "muted"),) for each in shorter))


def _running(summary: CaseSummary | StepSummary) -> tuple[Span, Line]:
    """Return the sign and text of something that runs or waits for the user."""
    if summary.asks:
        return Span(GLYPHS.asks, "warned"), (Span("asks", "warned"),)
    if summary.held:
        return Span(GLYPHS.held, "warned"), (Span("held", "warned"),)
    return Span(GLYPHS.running, "running"), (Span("running", "running"),)


def _result(status: Status, value: float | None, role: Role) -> Line:
    if not status.graded or value is None:
        return (Span(status, role),)
    return (Span(score_text(value, ""), role),)


def tree_message(filtered: str) -> Message:
    """Return the message of an empty tree.

    `filtered` is the active filter."""
    if filtered:
        advised: Message = ((text, "warned"), ("", "text")) if (text := advice(filtered)) else ()
        return (
            ("Nothing fits the filter.", "strong"),
            ("", "text"),
            *advised,
            ("Esc shows everything again.", "muted"),
        )
    begins = unless_read_only("Enter  begins: a new suite, one from a server, or the samples")
    return (
        ("No suites here.", "strong"),
        *((("", "text"), (begins, "text")) if begins else ()),
        ("", "text"),
        ("A suite is a TOML file whose first line is format = 1.", "muted"),
    )
