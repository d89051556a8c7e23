"""The results that published benchmarks would report for a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from workbench.analysis.published_reports import published_reports
from workbench.grading.grade import RunResult
from workbench.limits import MAX_DOCUMENT_RUNS
from workbench.numerals import counted
from workbench.show.doc import line_of
from workbench.show.spans import Line
from workbench.show.visible import one_line


def published_lines(
    results: Sequence[RunResult], suite_names: Mapping[str, str], *, with_details: bool
) -> Iterator[Line]:
    """Yield the benchmark's result for each suite and model. With `with_details`, add its full report."""
    if len(results) > MAX_DOCUMENT_RUNS:
        why = f"the reports of published systems are left out above {counted(MAX_DOCUMENT_RUNS, 'run')}"
        yield line_of(f"  {why}", "muted")
    several_models = len({result.model for result in results}) > 1
    for report in published_reports(results):
        # A suite that is no longer readable is named after its file.
        suite = suite_names.get(report.suite, Path(report.suite).stem)
        model = ""
        if several_models and report.model is not None:
            model = f" with {report.model}"
        text = f"{suite}{model} as {report.system} reports it: {report.summary.headline}"
        yield line_of(f"  {one_line(text)}", "muted")
        if with_details:
            for detail in report.summary.details:
                yield line_of(f"    {one_line(detail)}", "muted")
