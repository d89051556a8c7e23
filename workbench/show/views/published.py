"""The reports of the published systems on a batch, in the text report and in the JSON one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue

from workbench.analysis.published.summary import published_reports
from workbench.grading.grade import RunResult
from workbench.limits import MAX_DOCUMENT_RUNS
from workbench.show.json.base import ReportModel, SuitePath
from workbench.show.text import Paint
from workbench.show.visible import one_line
from workbench.suite.model import Case


class PublishedSummary(ReportModel):
    """A suite as reported by the published system behind its deciding grader."""

    suite: SuitePath
    model: str | None = Field(description="null for the system's comparison of several models")
    grader: str
    system: str
    numbers: dict[str, JsonValue] = Field(description="with the names and roundings of the system")


def published_summaries(
    results: Sequence[RunResult], cases: Mapping[str, Case] | None = None
) -> tuple[PublishedSummary, ...]:
    """Returns the numbers for the JSON report. `cases` are those of the runs, by run."""
    return tuple(
        PublishedSummary(
            suite=report.suite,
            model=report.model,
            grader=report.grader,
            system=report.system,
            numbers=dict(report.summary.numbers),
        )
        for report in published_reports(results, cases or {})
    )


def published_lines(
    results: Sequence[RunResult], suite_names: Mapping[str, str], paint: Paint, *, with_details: bool
) -> Iterator[str]:
    """Yields a quiet line for each suite and model, and the system's full report with `with_details`."""
    if len(results) > MAX_DOCUMENT_RUNS:
        yield paint(f"  the reports of published systems are left out above {MAX_DOCUMENT_RUNS:,} runs", "muted")
    several_models = len({result.model for result in results}) > 1
    for report in published_reports(results):
        suite = suite_names.get(report.suite, Path(report.suite).stem)
        model = f" with {report.model}" if several_models and report.model is not None else ""
        text = f"{suite}{model} as {report.system} reports it: {report.summary.headline}"
        yield paint(f"  {one_line(text)}", "muted")
        if with_details:
            yield from (paint(f"    {one_line(detail)}", "muted") for detail in report.summary.details)
