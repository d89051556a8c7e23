"""An issue as one line for a person."""

from __future__ import annotations

from workbench.grading.grade import Issue
from workbench.reports.visible import one_line


def issue_text(issue: Issue) -> str:
    """`kind: subject, expected …, got …: why`, safe to show; parts that an issue lacks are left out."""
    subject = issue.tool or ""
    if issue.call is not None and subject:
        subject = f"call {issue.call + 1} {subject}"
    if issue.argument is not None:
        subject = f"{subject}.{issue.argument}" if subject else issue.argument
    facts = [subject] if subject else []
    if issue.expected is not None:
        facts.append(f"expected {issue.expected}")
    if issue.got is not None:
        facts.append(f"got {issue.got}")
    place = ", ".join(facts)
    return one_line(f"{issue.kind}: {place}: {issue.why}" if place else f"{issue.kind}: {issue.why}")
