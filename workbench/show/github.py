"""GitHub Actions annotations at the lines of cases in suite files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.views.grades import cut, issue_lines
from workbench.show.views.runs_report import RunsReport, ShownCase
from workbench.show.visible import one_line
from workbench.show.workflow_commands import ANNOTATIONS_MAX, command
from workbench.suite.files import relative_to_repository

_ISSUES_MAX = 5
_MESSAGE_MAX = 1_000


def annotation_lines(report: RunsReport) -> Iterator[str]:
    """Yield up to nine error annotations of cases that did not pass, then one annotation that counts the others."""
    redact = report.secrets.redact
    for broken in report.broken:
        message = cut(redact("\n".join(broken.problems)), _MESSAGE_MAX)
        file = redact(relative_to_repository(broken.suite))
        yield command("error", message, title="a suite with errors was not run", file=file, line=broken.line)
    cases = report.quality.cases
    # GitHub shows the first ten errors of a step and silently drops the others. The tenth error therefore gives their
    # number.
    bad = (case for case in cases if case.status in (Status.FAILED, Status.ERROR))
    for case in islice(bad, ANNOTATIONS_MAX):
        yield _annotation(report.shown_case(case), report)
    if (more := cases.number(Status.FAILED, Status.ERROR) - ANNOTATIONS_MAX) > 0:
        rest = f"and {counted(more, 'other case')} did not pass: the summary of the job has all of them"
        yield command("error", rest, title="Workbench")


def _annotation(case: ShownCase, report: RunsReport) -> str:
    result, redact = case.result, report.secrets.redact
    run = result.decisive_run
    title = f"{one_line(run.case_name)} [{one_line(run.model)}] {result.status}"
    if len(result.runs) > 1:
        title += f", {result.good} of {len(result.graded)} runs passed"
    lines: list[str] = []
    if report.against is not None and (since := report.against.sentence_of(run)) is not None:
        lines.append(redact(since))
    issues = issue_lines(run)
    lines += issues[:_ISSUES_MAX]
    if len(issues) > _ISSUES_MAX:
        lines.append(f"and {counted(len(issues) - _ISSUES_MAX, 'other issue')}")
    message = cut("\n".join(lines), _MESSAGE_MAX)
    file = redact(relative_to_repository(run.suite))
    return command("error", message, title=cut(title, _MESSAGE_MAX), file=file, line=case.line)
