"""What the run pane shows of runs before this session."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from workbench.numerals import age_text, duration_text, moment_text, score_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Message
from workbench.show.visible import model_label, one_line
from workbench.tui.tree.rows import Row

if TYPE_CHECKING:
    from workbench.analysis.comparison import Cell
    from workbench.analysis.over_time import LastResult


def is_edited_since(row: Row, last: LastResult) -> bool:
    """Return whether a case was edited since its last result, on disk or here."""
    if last.edited or row.open is None or row.case is None or row.open.is_new:
        return last.edited
    return row.open.is_changed(row.case.index)


def last_result_message(row: Row, last: LastResult, now: datetime) -> Message:
    """Return the last result of a case: on each model, with the reason why it did not pass."""
    old = age_text(last.began_ms, now)
    when = old if old == "now" else moment_text(last.began_ms) if "-" in old else f"{old} ago"
    edited: Message = (("The case was edited since.", "warned"),) if is_edited_since(row, last) else ()
    return (
        (f"Last run: {when}, batch #{last.runs[-1].batch}", "strong"),
        *edited,
        ("", "text"),
        *(part for cell in last.cells for part in _cell(cell)),
        ("", "text"),
        (f"Enter  opens {'it' if len(last.runs) == 1 else 'the worst of its runs'}", "text"),
        ("=  shows its grades", "text"),
    )


def _cell(cell: Cell) -> Message:
    sign, role = cell.status.mark
    number = f" {score_text(cell.score, '')}" if cell.score is not None else ""
    took = f" {GLYPHS.dot} {duration_text(cell.latency_ms)}" if cell.latency_ms is not None else ""
    head = (f"{sign} {cell.status}{number} {GLYPHS.dot} {model_label(cell.model)}{took}", role)
    return (head, (one_line(cell.reason), "muted")) if cell.reason else (head,)
