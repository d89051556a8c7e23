"""How a row of the suite tree reads: sign, name, and at the right what came out of it."""

from __future__ import annotations

from workbench.grading.grade import Status
from workbench.reports.visible import one_line
from workbench.tui.glyphs import GLYPHS
from workbench.tui.state.outcome import STATUS_SIGNS
from workbench.tui.state.runs import CaseSummary, RunBook
from workbench.tui.state.spans import EMPTY, Line, Role, Span, spread
from workbench.tui.state.tree import Row, TreeState
from workbench.tui.state.words import many, score

INDENT = 2


def tree_line(tree: TreeState, row: Row, book: RunBook, width: int) -> Line:
    """One row, exactly as wide as it needs to be and at most `width` cells."""
    indent = Span(" " * (1 + INDENT * row.depth))
    name = one_line(row.label)
    match row.key.kind:
        case "case":
            sign, result = _case(row, book.summary((row.key.path, row.key.part)))
            return spread((indent, sign, Span(f" {name}")), result, width)
        case "problem":
            error = row.problem is not None and row.problem.severity == "error"
            role: Role = "error" if error else "warned"
            return spread((indent, Span(f"{GLYPHS.error if error else GLYPHS.warned} {name}", role)), EMPTY, width)
        case "hint":
            return spread((indent, Span(name, "muted")), EMPTY, width)
        case "suite" if row.file is not None and row.file.suite is None:
            fold = GLYPHS.folded if tree.is_folded(row) else GLYPHS.open
            found = (Span(many(len(row.file.problems), "problem"), "error"),)
            return spread((indent, Span(f"{fold} ", "muted"), Span(name, "error")), found, width)
        case _:
            fold = GLYPHS.folded if tree.is_folded(row) else GLYPHS.open
            warned = row.file is not None and bool(row.file.warnings)
            head: Line = (indent, Span(f"{fold} ", "muted"), Span(name, "strong"))
            if warned:
                head = (*head, Span(f" {GLYPHS.warned}", "warned"))
            return spread(head, _tally(tree, row, book), width)


def _tally(tree: TreeState, row: Row, book: RunBook) -> Line:
    below = tree.cases_below(row)
    good, graded = book.tally((file.path, case_id) for file, case_ids in below for case_id in case_ids)
    if graded:
        return (Span(f"{good}/{graded}", "muted"),)
    return (Span(str(sum(len(case_ids) for _, case_ids in below)), "muted"),) if tree.is_folded(row) else EMPTY


def _case(row: Row, summary: CaseSummary) -> tuple[Span, Line]:
    if summary.held:
        return Span(GLYPHS.asks, "warned"), (Span("asks", "warned"),)
    if summary.stage == "running":
        return Span(GLYPHS.running, "running"), (Span("running", "running"),)
    if summary.stage == "waiting":
        return Span(GLYPHS.running, "muted"), (Span("waiting", "muted"),)
    if summary.status is None:
        skipped = row.case is not None and row.case.skip is not None
        return Span(GLYPHS.skipped if skipped else GLYPHS.never, "muted"), EMPTY
    sign, role = STATUS_SIGNS[summary.status]
    return Span(sign, role), _result(summary.status, summary.score, role)


def _result(status: Status, value: float | None, role: Role) -> Line:
    if status in ("error", "stopped", "skipped") or value is None:
        return (Span(status, role),)
    return (Span(score(value), role),)
