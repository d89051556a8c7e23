"""Results as the text of an error: what did not pass, and why."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.analysis.aggregates import aggregates_of
from workbench.analysis.failures import failures_of
from workbench.analysis.quality import quality_of
from workbench.api.suites import LoadedSuite
from workbench.batches.redacting import shown_result
from workbench.config.secrets import Secrets
from workbench.grading.grade import RunResult
from workbench.reports.failures import failure_lines
from workbench.reports.paint import Paint
from workbench.reports.text import text_report
from workbench.suite.model import Case

WIDTH = 120


def details_of(
    results: Sequence[RunResult], cases: Sequence[Case], suites: Sequence[LoadedSuite], secrets: Secrets
) -> str:
    """The runs that did not pass, with each issue and the causes, as `workbench run --quiet` shows them. `cases` holds
    the case of each result. Secrets are left out."""
    shown = [shown_result(result, secrets) for result in results]
    by_path = {str(suite.path): suite.definition for suite in suites}
    gates = {path: suite.gate for path, suite in by_path.items()}
    quality = quality_of(shown, gates, aggregates=aggregates_of(shown, by_path))
    paint = Paint(enabled=False)
    names = {path: suite.name for path, suite in by_path.items()}
    failures = failures_of(zip(shown, map(secrets.redacted, cases), strict=True))
    lines = [
        *text_report(shown, quality, suite_names=names, width=WIDTH, paint=paint, amount="little"),
        *failure_lines(failures, paint),
    ]
    return secrets.redact("\n".join(lines))
