"""The lines of the suite tree: sign, name, and the result on the right."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich.cells import cell_len

from workbench.grading.status import Status, worst_of
from workbench.numerals import age_text, counted, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Message, Role, Span, cells, cut_line, cut_middle, spread
from workbench.show.visible import one_line
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.summaries import NEVER_RUN, CaseSummary, CaseTally, StepSummary, worst_graded
from workbench.tui.tree.filter import advice
from workbench.tui.tree.state import Row, TreeState
from workbench.tui.tree.stored_results import is_edited_since

if TYPE_CHECKING:
    from workbench.analysis.over_time import LastResult

INDENT = 2

NAME_SHARE = 0.6
"""The minimum share of the row, after its sign, for a long name."""

_BLANK = Span(" ")
_UNSAVED: Line = (_BLANK, Span(GLYPHS.unsaved, "running"))
_WAITING: tuple[Span, Line] = (Span(GLYPHS.running, "muted"), (Span("waiting", "muted"),))
_PROBLEM_MARKS: dict[bool, tuple[str, Role]] = {True: (GLYPHS.error, "error"), False: (GLYPHS.warned, "warned")}
"""The sign and role of a problem, by whether it is an error."""


def tree_line(tree: TreeState, row: Row, book: RunBook, width: int) -> Line:
    """Return the line of one row of the tree, at most `width` cells wide."""
    match row.key.kind:
        case "case":
            return _case_line(tree, row, book, width)
        case "step":
            return _step_line(row, book, width)
        case "problem":
            sign, role = _PROBLEM_MARKS[bool(row.problem and row.problem.severity == "error")]
            return spread((_indent(row), Span(f"{sign} {one_line(row.label)}", role)), EMPTY, width)
        case "hint":
            return spread((_indent(row), Span(one_line(row.label), "muted")), EMPTY, width)
        case _:
            return _branch_line(tree, row, book, width)


def fold_cell(row: Row) -> int:
    """Return the column of the sign that folds a row."""
    # The row of a case begins with the sign of its status and a blank.
    return 1 + INDENT * row.depth + (2 if row.key.kind == "case" else 0)


def _indent(row: Row) -> Span:
    return Span(" " * (1 + INDENT * row.depth))


def _fold(tree: TreeState, row: Row) -> str:
    return GLYPHS.folded if tree.is_folded(row) else GLYPHS.open


def _case_fold(tree: TreeState, row: Row) -> str:
    """Return a blank and the fold sign of a row that can be folded, "" for any other row."""
    if tree.is_foldable(row):
        return f" {_fold(tree, row)}"
    return ""


def _branch_line(tree: TreeState, row: Row, book: RunBook, width: int) -> Line:
    fold = Span(f"{_fold(tree, row)} ", "muted")
    name, marks = one_line(row.label), EMPTY
    if row.open is not None and row.open.dirty:
        marks = _UNSAVED
    if row.file is not None and row.file.suite is None:
        problems = Span(counted(len(row.file.problems), "problem"), "error")
        return _marked((_indent(row), fold, Span(name, "error")), marks, (problems,), width)
    if row.file is not None and row.file.warnings:
        marks = (*marks, Span(f" {GLYPHS.warned}", "warned"))
    return _marked((_indent(row), fold, Span(name, "strong")), marks, _tally(tree, row, book), width)


def _case_line(tree: TreeState, row: Row, book: RunBook, width: int) -> Line:
    if row.has_rows:
        return _line_of_rows(tree, row, book, width)
    case = (row.key.path, row.key.part)
    last = tree.remembered.shown(case, book)
    if last is not None and row.case is not None and not row.is_broken:
        return _remembered_line(tree, row, last, book.now(), width)
    summary = book.summary(case)
    sign, result = _case(row, summary)
    if summary.stage == "done" and _is_request_changed(row, book):
        result = (Span(f"{GLYPHS.by_hand} ", "warned"), *result)
    left = (_indent(row), sign, Span(_case_fold(tree, row), "muted"), Span(f" {one_line(row.label)}"))
    return _marked(left, _marks(tree, row, summary), result, width)


def _is_request_changed(row: Row, book: RunBook) -> bool:
    """Return whether the messages to the model in a row's case changed since its last run.

    Such a case needs a new run. After a change of expectations alone, the run is regraded."""
    if row.case is None or row.file is None or row.file.suite is None:
        return False
    now = row.file.case_of(row.case.index, row.case.id)
    for run in book.runs_of((row.key.path, row.key.part)):
        planned, _ = run.original or (run.planned, None)
        then = planned.case
        if not run.is_fork and then is not now and (then.user, then.messages) != (now.user, now.messages):
            return True
    return False


def _line_of_rows(tree: TreeState, row: Row, book: RunBook, width: int) -> Line:
    summaries = []
    for suite, keys in tree.cases_below(row):
        summaries += [tree.remembered.summary((suite.path, key), book) for key in keys]
    under_way = next((each for each in summaries if each.stage in ("running", "waiting")), None)
    worst = worst_of(each.status for each in summaries if each.status is not None)
    sign, right = Span(GLYPHS.never, "muted"), _tally(tree, row, book)
    if under_way is not None:
        sign, right = _case(row, under_way)
    elif row.is_broken:
        sign, right = Span(GLYPHS.error, "error"), (Span("problem", "error"),)
    elif worst is not None:
        mark, role = worst.mark
        sign = Span(mark, role)
    left = (_indent(row), sign, Span(_case_fold(tree, row), "muted"), Span(f" {one_line(row.label)}"))
    return _marked(left, _marks(tree, row, NEVER_RUN), right, width)


def _step_line(row: Row, book: RunBook, width: int) -> Line:
    number, _, tool = one_line(row.label).partition(" ")
    sign, result = _step(row, book)
    left = (_indent(row), sign, Span(f" {number} ", "muted"), Span(tool, _tool_role(row)))
    return _marked(left, EMPTY, result, width)


def _marks(tree: TreeState, row: Row, summary: CaseSummary) -> Line:
    marks: list[Span] = []
    if row.is_changed:
        marks.append(Span(GLYPHS.unsaved, "running"))
    if tree.audits.is_marked(row):
        marks.append(Span(GLYPHS.audit, "warned"))
    if summary.disagree and summary.stage == "done":
        marks.append(Span(GLYPHS.disagree, "warned"))
    if not marks:
        return EMPTY
    return (_BLANK, *marks)


def _marked(left: Line, marks: Line, right: Line, width: int, *shorter: Line, name_share: float = NAME_SHARE) -> Line:
    """Join the parts of a row: `left`, `marks`, and at the right end the result `right`.

    The last part of `left` is the name. A long name is cut in the middle, but keeps `name_share` of the row. If `right`
    does not fit, the first of `shorter` that fits is shown, or no result."""
    *before, name = left
    own = width - cells(tuple(before))
    needed = min(cell_len(name.text), int(own * name_share))
    for shown in (right, *shorter, EMPTY):
        room = width - cells(marks) - cells(shown) - bool(shown)
        if room - cells(tuple(before)) >= needed:
            break
    name = Span(cut_middle(name.text, room - cells(tuple(before))), name.role)
    return spread((*cut_line((*before, name), room), *marks), shown, width)


def _tally(tree: TreeState, row: Row, book: RunBook) -> Line:
    """Return the number of passed and of graded cases below a row, as `3/5`, and the number of errors.

    If there are neither, return the number of cases of a folded row."""
    below = tree.cases_below(row)
    total = CaseTally()
    for suite, keys in below:
        total = total.plus(tree.remembered.tally(suite.path, keys, book))
    good, graded, errors = total
    shown: list[Span] = []
    if graded:
        shown.append(Span(f"{good}/{graded}", "muted"))
    if graded and errors:
        shown.append(_BLANK)
    if errors:
        shown.append(Span(f"{errors}{GLYPHS.error}", "error"))
    if not shown and tree.is_folded(row):
        shown.append(Span(str(sum(len(keys) for _, keys in below)), "muted"))
    return tuple(shown)


def _tool_role(row: Row) -> Role:
    if row.case is not None and row.step is not None and row.case.steps[row.step - 1]:
        return "tool"
    return "muted"


def _step(row: Row, book: RunBook) -> tuple[Span, Line]:
    assert row.case is not None
    assert row.step is not None
    summary = book.step((row.key.path, row.case.key), row.step)
    # If the run ended before a step, the step has no summary.
    if summary is None:
        return _BLANK, EMPTY
    if summary.stage == "running":
        return _running(summary)
    if summary.stage == "waiting":
        return _WAITING
    if summary.stage != "over":
        return Span(GLYPHS.never, "muted"), (Span("done", "muted"),)
    if summary.status is None:
        return Span(GLYPHS.skipped, "muted"), (Span("not reached", "muted"),)
    sign, role = summary.status.mark
    return Span(sign, role), _result(summary.status, summary.score, role)


def _case(row: Row, summary: CaseSummary) -> tuple[Span, Line]:
    if summary.stage == "running":
        return _running(summary)
    if summary.stage == "waiting":
        return _WAITING
    if row.is_broken:
        return Span(GLYPHS.error, "error"), (Span("problem", "error"),)
    if summary.status is None:
        skipped = row.case is not None and row.case.skip is not None
        return Span(GLYPHS.skipped if skipped else GLYPHS.never, "muted"), EMPTY
    shown = summary.graded or summary.status
    sign, role = shown.mark
    result = _result(shown, summary.score, role)
    if summary.user_errors is not None:
        good, graded, errors = summary.user_errors
        passes = (Span(f"{good}/{graded} ", role),) if graded else EMPTY
        result = (*passes, Span(f"{errors} {GLYPHS.user_error}", "warned"))
    if summary.status == Status.ERROR and summary.graded is not None:
        # On other models, the case was graded. This matters more than the error, so the error is only a sign.
        result = (Span(f"{GLYPHS.error} ", "error"), *result)
    return Span(sign, role), result


def _remembered_line(tree: TreeState, row: Row, last: LastResult, now: datetime, width: int) -> Line:
    """Return the row of a case with its last result from the history, dimmed, and the age of the result.

    A case that was edited since then is marked by a word, or by a sign if there is no room for the word."""
    graded = worst_graded(last.statuses)
    sign = (graded or last.status).sign
    name = Span(f" {one_line(row.label)}")
    left: Line = (_indent(row), Span(f"{sign}{_case_fold(tree, row)}", "muted"), name)
    result: str = last.status
    if graded is not None and last.score is not None:
        result = score_text(last.score, "")
    if last.status == Status.ERROR and graded is not None:
        result = f"{GLYPHS.error} {result}"
    dated = f"{result} {age_text(last.began_ms, now)}"
    # The first of these texts that leaves room for the name is shown.
    texts = [dated, result]
    if is_edited_since(row, last):
        texts = [f"edited {GLYPHS.dot} {dated}", f"{GLYPHS.by_hand} {dated}", result]
    first, *shorter = ((Span(text, "muted"),) for text in texts)
    # The sign already shows the status, so the name is never cut in favour of an old result.
    return _marked(left, _marks(tree, row, NEVER_RUN), first, width, *shorter, name_share=1)


def _running(summary: CaseSummary | StepSummary) -> tuple[Span, Line]:
    if summary.asks:
        return Span(GLYPHS.asks, "warned"), (Span("asks", "warned"),)
    if summary.is_held:
        return Span(GLYPHS.held, "warned"), (Span("held", "warned"),)
    return Span(GLYPHS.running, "running"), (Span("running", "running"),)


def _result(status: Status, value: float | None, role: Role) -> Line:
    if not status.graded or value is None:
        return (Span(status, role),)
    return (Span(score_text(value, ""), role),)


def tree_message(filtered: str) -> Message:
    """Return the message of an empty tree. `filtered` is the filter."""
    if filtered:
        lines: list[tuple[str, Role]] = [("No case fits the filter.", "strong"), ("", "text")]
        if text := advice(filtered):
            lines += [(text, "warned"), ("", "text")]
        return (*lines, ("Esc shows everything again.", "muted"))
    lines = [("No suites here.", "strong")]
    if begins := unless_read_only("Enter  begins: a new suite, one from a server, or the samples"):
        lines += [("", "text"), (begins, "text")]
    return (*lines, ("", "text"), ("A suite is a TOML file whose first line is format = 1.", "muted"))
