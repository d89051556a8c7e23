"""What moved between a recorded grade and the grade of today, for reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ConfigDict

from workbench.grading.grade import RunResult, Status
from workbench.reports.json_report import ReportDocument
from workbench.reports.move_kinds import Move, graded_text, moves_said
from workbench.reports.paint import Paint
from workbench.reports.report_model import Finite, ReportModel
from workbench.reports.signs import FORK
from workbench.reports.visible import one_line


@dataclass(frozen=True, slots=True)
class Regraded:
    """A recording's file with what was recorded, if anything, and what it comes to now."""

    recording: str
    before: RunResult | None
    after: RunResult

    @property
    def not_regraded(self) -> str | None:
        """Why the run keeps the recorded verdict, if it does."""
        return self.after.not_regraded

    @property
    def move(self) -> Move:
        """From the recorded grade to that of now."""
        return Move(self.before, self.after)

    @property
    def moved(self) -> bool:
        """Whether status or score are other ones."""
        return self.move.moved


def move_lines(regraded: Iterable[Regraded], paint: Paint) -> Iterator[str]:
    """A line for each recording whose status or score is another one now, and how many moved from where to where; or
    one that says that there is none."""
    regraded = list(regraded)
    for each in regraded:
        if each.not_regraded is not None:
            yield f"{one_line(each.recording)} {one_line(each.not_regraded)}"
    moved = [each for each in regraded if each.moved]
    for each in moved:
        after = paint(graded_text(each.after), each.after.status)
        fork = f" ({FORK})" if each.after.trajectory.fork is not None else ""
        yield f"{one_line(each.recording)}{fork}: {graded_text(each.before)} → {after}"
    yield moves_said(each.move for each in moved) or "no grade differs from the recorded one"


class VerdictReport(ReportModel):
    """Status and score of a run."""

    status: Status
    score: Finite | None


class RegradedReport(ReportModel):
    """A recording, what it was graded when it was made, and what it comes to now."""

    recording: str
    before: VerdictReport | None
    after: VerdictReport
    moved: bool
    not_regraded: str | None
    """Why the run keeps the recorded verdict: what a check looks at is not in the recording, since it is secret."""


class RegradeReport(ReportDocument):
    """The report of `workbench grade`: that of a batch, and for each of its runs the recording."""

    model_config = ConfigDict(title="RegradeReport")

    regraded: tuple[RegradedReport, ...]


def regrade_report(report: ReportDocument, regraded: Iterable[Regraded]) -> RegradeReport:
    """Put the report of the runs and their recordings together."""
    return RegradeReport.model_validate(
        {**dict(report), "regraded": tuple(RegradedReport.model_validate(each) for each in regraded)}
    )
