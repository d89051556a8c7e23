"""The verdicts of the system that made imported runs beside those of their cases, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import Field

from workbench.grading.agreement import Agreement
from workbench.reports.json_base import ReportModel
from workbench.reports.visible import one_line

_ROWS_MAX = 50


class DifferenceReport(ReportModel):
    """Something of which the source's verdict is another one."""

    about: str
    value: float = Field(description="the source's score, 0..1")
    passed_here: bool


class AgreementReport(ReportModel):
    """The verdicts of the system that made the runs beside those of their cases, by one of its scores."""

    name: str
    agree: int = Field(description="how many verdicts are the same")
    of: int = Field(description="how many have a verdict on both sides")
    ungraded: int = Field(description="how many have none here")
    differ: tuple[DifferenceReport, ...]


def agreement_lines(agreements: Iterable[Agreement]) -> Iterator[str]:
    """Yield a line for each score of a source, and one for each verdict that differs."""
    for each in agreements:
        name = one_line(each.name)
        ungraded = f", {each.ungraded:,} not graded here" if each.ungraded else ""
        yield f"{name}: {each.agree:,} of {each.of:,} verdicts agree{ungraded}"
        for differing in each.differ[:_ROWS_MAX]:
            here = "passed" if differing.passed_here else "failed"
            there = "failed" if differing.passed_here else "passed"
            yield f"  {one_line(differing.about)}: {name} {differing.value:g}, {there} there, {here} here"
        if len(each.differ) > _ROWS_MAX:
            yield f"  … and {len(each.differ) - _ROWS_MAX:,} more"
