"""What the panes show for the row under the tree's cursor: which excerpt, which messages, which title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.reports.visible import one_line
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.run_record import CaseKey, RunRecord
from workbench.tui.state.runnable import can_run
from workbench.tui.state.source import Excerpt, Message, case_excerpt, file_excerpt
from workbench.tui.state.spans import Role
from workbench.tui.state.status import models_label
from workbench.tui.state.tree import Row, TreeState
from workbench.tui.state.words import many

Pane = Literal["suites", "case", "run"]

_EDIT = "e  edits it"

WIDE_CELLS = 120
NARROW_CELLS = 80


@dataclass(frozen=True)
class CasePicture:
    """What the case pane shows: an excerpt or, without one, a message; `line` is where to begin."""

    title: str
    excerpt: Excerpt | None
    message: Message = ()
    line: int | None = None


def panes_shown(width: int, focused: Pane, right: Pane, zoomed: bool) -> tuple[Pane, ...]:
    """Which panes have room: three from 120 cells, two from 80 (the tree and `right`), the focused one below that."""
    if zoomed or width < NARROW_CELLS:
        return (focused,)
    if width < WIDE_CELLS:
        return ("suites", right)
    return ("suites", "case", "run")


def case_of(row: Row | None) -> CaseKey | None:
    """The case under the cursor."""
    if row is None or row.case is None:
        return None
    return row.key.path, row.case.id


def case_title(row: Row | None) -> str:
    """What the case pane is about."""
    if row is None:
        return ""
    if row.case is not None:
        return row.case.name
    return row.open.path.name if row.open is not None else row.label


def case_picture(tree: TreeState) -> CasePicture:
    """The case pane for the selected row."""
    row = tree.selected
    if row is None:
        return CasePicture("", None, (("Nothing is selected.", "muted"),))
    if row.case is not None and row.open is not None:
        return CasePicture(row.case.name, case_excerpt(row.open, row.case.index))
    if row.open is None:
        return CasePicture(row.label, None, _folder_message(tree.cases_below(row)))
    return CasePicture(row.open.path.name, file_excerpt(row.open), line=row.problem.line if row.problem else None)


def waiting_message(run: RunRecord, held: Sequence[RunRecord]) -> Message:
    """What the run pane says of a run in which nothing has happened yet, given those that are held."""
    before = sum(other.model == run.model for other in held)
    if run.stage != "waiting" or not before:
        return (("Waiting for its turn.", "muted"),)
    runs = "a run on this model that is held" if before == 1 else f"{before} runs on this model that are held"
    return ((f"Waiting for its turn behind {runs}; H goes there.", "warned"),)


def run_message(tree: TreeState, models: tuple[str, ...]) -> Message:
    """What the run pane says while there is no run to show."""
    row = tree.selected
    if row is None:
        return ()
    if row.case is not None:
        if row.case.skip is not None:
            return (("The suite skips this case:", "muted"), (one_line(row.case.skip), "text"))
        if row.open is not None and not can_run(row.open, row.case.key):
            return (("This case cannot run yet: it, or its suite, has errors.", "error"), ("", "text"), (_EDIT, "text"))
        suite = row.file.suite if row.file is not None else None
        case = suite.cases[row.case.index] if suite is not None else None
        using = models_label(models or (case and case.models) or (suite.models if suite is not None else ()))
        return (
            ("Not run yet.", "strong"),
            ("", "text"),
            (f"r  runs this case with {using}", "text"),
            ("R  runs the whole suite", "text"),
            ("m  chooses models", "text"),
        )
    if row.open is not None and row.open.file.suite is None:
        cannot = f"{one_line(row.open.path.name)} cannot run: {many(len(row.open.file.errors), 'error')}."
        way_out: Message = (("", "text"), (_EDIT, "text")) if row.open.why_not_editable is None else ()
        return ((cannot, "error"), *way_out)
    below = tree.cases_below(row)
    cases = sum(len(case_ids) for _, case_ids in below)
    if not cases:
        return (("There is no case here yet. n makes one.", "muted"),)
    return (
        (f"{many(cases, 'case')} here.", "strong"),
        ("", "text"),
        ("R  runs all of them", "text"),
        ("Put the cursor on a case to see its run.", "muted"),
    )


def _folder_message(below: Sequence[tuple[OpenSuite, tuple[str, ...]]]) -> Message:
    lines: list[tuple[str, Role]] = [(f"{many(len(below), 'suite')} to run", "strong"), ("", "text")]
    lines += [(f"{one_line(suite.path.name)}  {many(len(keys), 'case')}", "text") for suite, keys in below]
    return tuple(lines)
