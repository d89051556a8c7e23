"""Annotations of GitHub at the lines of cases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.views.grades import cut, issue_lines
from workbench.show.views.runs_report import RunsReport, ShownCase
from workbench.show.visible import one_line
from workbench.show.workflow_commands import ANNOTATIONS_MAX, command
from workbench.suite.files import from_repository

_ISSUES_MAX = 5
_MESSAGE_MAX = 1_000


def annotation_lines(report: RunsReport) -> Iterator[str]:
    """Yield an error at the line of each case that did not pass, up to nine, and one that counts the others."""
    cases = report.quality.cases
    bad = (case for case in cases if case.status in (Status.FAILED, Status.ERROR))
    for case in islice(bad, ANNOTATIONS_MAX):
        yield _annotation(report.shown_case(case), report)
    if (more := cases.number(Status.FAILED, Status.ERROR) - ANNOTATIONS_MAX) > 0:
        what = f"and {counted(more, 'other case')} did not pass: the summary of the job has all of them"
        yield command("error", what, title="Workbench")


def _annotation(shown: ShownCase, report: RunsReport) -> str:
    result = shown.result
    run = next((run for run in result.runs if run.status == result.status), result.runs[0])
    several = f", {result.good} of {len(result.graded)} runs passed" if len(result.runs) > 1 else ""
    title = f"{one_line(run.case_name)} [{one_line(run.model)}] {result.status}{several}"
    since = report.against.sentence_of(run) if report.against is not None else None
    lines = issue_lines(run)
    if len(lines) > _ISSUES_MAX:
        lines = [*lines[:_ISSUES_MAX], f"and {counted(len(lines) - _ISSUES_MAX, 'other issue')}"]
    file = report.secrets.redact(from_repository(run.suite))
    lines = lines if since is None else [report.secrets.redact(since), *lines]
    message = cut("\n".join(lines), _MESSAGE_MAX)
    return command("error", message, title=cut(title, _MESSAGE_MAX), file=file, line=shown.line)
