"""The reports of the published systems on a batch as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from workbench.analysis.published_reports import published_reports
from workbench.grading.grade import RunResult
from workbench.limits import MAX_DOCUMENT_RUNS
from workbench.show.text import Paint
from workbench.show.visible import one_line


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
