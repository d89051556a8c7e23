"""The changes between the recorded grades and new ones, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ConfigDict

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.show.json.base import Finite, ReportModel
from workbench.show.json.report import ReportDocument
from workbench.show.json.writing import Records, Redactor, document_pieces
from workbench.show.signs import FORK
from workbench.show.text import Paint
from workbench.show.views.grade_move_kinds import Move, graded_text, moves_text
from workbench.show.visible import one_line


@dataclass(frozen=True, slots=True)
class Regraded:
    """A recording's file with its recorded result, if any, and the new one."""

    recording: str
    before: RunResult | None
    after: RunResult

    @property
    def not_regraded(self) -> str | None:
        """Why the run keeps the recorded verdict, if it does."""
        return self.after.not_regraded

    @property
    def move(self) -> Move:
        """The change from the recorded grade to the new one."""
        return Move(self.before, self.after)

    @property
    def moved(self) -> bool:
        """Whether status or score differ."""
        return self.move.moved


def move_lines(regraded: Iterable[Regraded], paint: Paint) -> Iterator[str]:
    """Yields a line for each recording whose status or score changed, and how many moved from where to where; or one
    line that none did. Nothing where nothing was graded before."""
    regraded = list(regraded)
    for each in regraded:
        if each.not_regraded is not None:
            yield f"{one_line(each.recording)} {one_line(each.not_regraded)}"
    moved = [each for each in regraded if each.moved]
    for each in moved:
        after = paint(graded_text(each.after), each.after.status.role)
        fork = f" ({FORK})" if each.after.trajectory.fork is not None else ""
        yield f"{one_line(each.recording)}{fork}: {graded_text(each.before)} → {after}"
    if regraded:
        yield moves_text(each.move for each in moved) or "no grade differs from the recorded one"


class VerdictReport(ReportModel):
    """Status and score of a run."""

    status: Status
    score: Finite | None


class RegradedReport(ReportModel):
    """A recording with its original and its new grade."""

    recording: str
    before: VerdictReport | None
    after: VerdictReport
    moved: bool
    not_regraded: str | None
    """Why the run keeps the recorded verdict: a value that a check needs is not in the recording, because it is
    secret."""


class RegradeReport(ReportDocument):
    """The report of `workbench grade`: that of a batch, and the recording of each of its runs."""

    model_config = ConfigDict(title="RegradeReport")

    regraded: tuple[RegradedReport, ...]


def regrade_pieces(
    document: ReportDocument, records: Mapping[str, Records[Any]], regraded: Iterable[Regraded], redactor: Redactor
) -> Iterator[str]:
    """Yields the report of the runs combined with their recordings, as JSON text. `records` are those of the document,
    which is without them."""
    whole = RegradeReport.model_validate({**dict(document), "regraded": ()})
    return document_pieces(whole, {**records, "regraded": Records(RegradedReport, regraded)}, redactor)
