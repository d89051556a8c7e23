"""The content of the panes for the selected row: which panes fit, and messages."""

from __future__ import annotations

from workbench.config.read_only import is_read_only
from workbench.numerals import counted
from workbench.show.spans import Message
from workbench.show.visible import one_line
from workbench.suite.files import resolved
from workbench.suite.settings import models_of
from workbench.tui.kit.actions import Pane, unless_read_only
from workbench.tui.run_book.book import RunBook
from workbench.tui.runs.status_line import models_label
from workbench.tui.tree.remembered_lines import last_result_message
from workbench.tui.tree.selection import can_run
from workbench.tui.tree.state import TreeState

WIDE_CELLS = 120
NARROW_CELLS = 80


def panes_shown(width: int, focused: Pane, right: Pane, zoomed: bool) -> tuple[Pane, ...]:
    """Return the panes that fit, always with the focused one: three from 120 cells, two from 80 (the tree, and `right`
    while the tree has the focus), otherwise the focused one."""
    if zoomed or width < NARROW_CELLS:
        return (focused,)
    if width < WIDE_CELLS:
        return ("suites", right if focused == "suites" else focused)
    return ("suites", "case", "run")


def _edits() -> Message:
    return () if is_read_only() else (("", "text"), ("e  edits it", "text"))


def run_message(tree: TreeState, models: tuple[str, ...], book: RunBook) -> Message:
    """Return the message of the run pane without a run."""
    row = tree.selected
    if row is None:
        return ()
    if row.case is not None:
        if row.case.skip is not None:
            return (("The suite skips this case:", "muted"), (one_line(row.case.skip), "text"))
        if row.open is not None and not can_run(row.open, row.case.key):
            return (("This case cannot run yet: it, or its suite, has errors.", "error"), *_edits())
        suite = row.file.suite if row.file is not None else None
        case = suite.cases[row.case.index] if suite is not None else None
        using = models_label(models or (models_of(suite, case) if suite is not None else ()))
        last = tree.remembered.shown((row.key.path, row.case.key), book)
        return (
            *((("Not run yet.", "strong"),) if last is None else last_result_message(row, last, book.now())),
            *(
                (
                    ("", "text"),
                    (f"r  runs this case with {using}", "text"),
                    ("R  runs the whole suite", "text"),
                    ("m  chooses models", "text"),
                )
                if not is_read_only()
                else ()
            ),
        )
    if row.open is not None and row.open.file.suite is None:
        cannot = f"{one_line(row.open.path.name)} cannot run: {counted(len(row.open.file.errors), 'error')}."
        return ((cannot, "error"), *(_edits() if row.open.why_not_editable is None else ()))
    below = tree.cases_below(row)
    cases = sum(len(case_ids) for _, case_ids in below)
    if not cases:
        empty: Message = ((f"There is no case here yet.{unless_read_only(' n makes one.')}", "muted"),)
        if row.open is None or not row.open.is_new:
            return empty
        return (*empty, ("", "text"), (f"Ctrl+S  saves this suite as {one_line(str(resolved(row.open.path)))}", "text"))
    from workbench.tui.tree.suite_summary import last_runs, summary_message

    found = last_runs(tree, row, book)
    return (
        *(
            summary_message(tree, found, book)
            if found.runs
            else ((f"{counted(cases, 'case')}, not run yet.", "strong"),)
        ),
        ("", "text"),
        *((("R  runs all of them", "text"),) if not is_read_only() else ()),
        ("Put the cursor on a case to see its run.", "muted"),
    )
