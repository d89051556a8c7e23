"""What the panes show for the row under the tree's cursor: which excerpt, which messages, which title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.tui.state.runs import CaseKey
from workbench.tui.state.source import Excerpt, Message, case_excerpt, file_excerpt
from workbench.tui.state.spans import Role
from workbench.tui.state.status import models_label
from workbench.tui.state.tree import Row, TreeState
from workbench.tui.state.words import many

Pane = Literal["suites", "case", "run"]

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


def case_picture(tree: TreeState) -> CasePicture:
    """The case pane for the selected row."""
    row = tree.selected
    if row is None:
        return CasePicture("", None, (("Nothing is selected.", "muted"),))
    if row.case is not None and row.file is not None:
        return CasePicture(row.case.name, case_excerpt(row.file, row.case.id))
    if row.file is None:
        return CasePicture(row.label, None, _folder_message(tree.cases_below(row)))
    return CasePicture(row.file.path.name, file_excerpt(row.file), line=row.problem.line if row.problem else None)


def run_message(tree: TreeState, models: tuple[str, ...]) -> Message:
    """What the run pane says while there is no run to show."""
    row = tree.selected
    if row is None:
        return ()
    if row.case is not None:
        if row.case.skip is not None:
            return (("The suite skips this case:", "muted"), (one_line(row.case.skip), "text"))
        suite = row.file.suite if row.file is not None else None
        using = models_label(models or row.case.models or (suite.models if suite is not None else ()))
        return (
            ("Not run yet.", "strong"),
            ("", "text"),
            (f"r  runs this case with {using}", "text"),
            ("R  runs the whole suite", "text"),
            ("m  chooses models", "text"),
        )
    if row.file is not None and row.file.suite is None:
        return (
            (f"{one_line(row.file.path.name)} cannot run: {many(len(row.file.errors), 'error')}.", "error"),
            ("", "text"),
            ("e  opens it in your editor, at the first one", "text"),
            ("F5 reads it again", "text"),
        )
    below = tree.cases_below(row)
    cases = sum(len(case_ids) for _, case_ids in below)
    if not cases:
        return (("There is no case here yet. e opens the file in your editor.", "muted"),)
    return (
        (f"{many(cases, 'case')} here.", "strong"),
        ("", "text"),
        ("R  runs all of them", "text"),
        ("Put the cursor on a case to see its run.", "muted"),
    )


def _folder_message(below: Sequence[tuple[SuiteFile, tuple[str, ...]]]) -> Message:
    lines: list[tuple[str, Role]] = [(f"{many(len(below), 'suite')} to run", "strong"), ("", "text")]
    lines += [(f"{one_line(file.path.name)}  {many(len(case_ids), 'case')}", "text") for file, case_ids in below]
    return tuple(lines)
