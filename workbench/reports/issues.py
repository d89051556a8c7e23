"""An issue as one line for a person."""

from __future__ import annotations

from workbench.grading.grade import Issue
from workbench.reports.visible import one_line


def issue_text(issue: Issue) -> str:
    """`kind: where: expected …, got … (why)`, safe to show; parts that an issue lacks are left out."""
    parts = [issue.kind, *filter(None, [issue_place(issue), issue_facts(issue)])]
    decides = "; this alone fails the case" if issue.decides else ""
    return one_line(f"{': '.join(parts)} ({issue.why}{decides})")


def issue_note(issue: Issue) -> str:
    """As `issue_text`, for where the call and the argument are seen anyway."""
    parts = [issue.kind, *filter(None, [issue_facts(issue)])]
    return one_line(f"{': '.join(parts)} ({issue.why})")


def issue_place(issue: Issue) -> str:
    """The call (counted from 1), the tool and the argument that an issue is about; empty for the whole run."""
    subject = ".".join(part for part in (issue.tool, issue.argument) if part)
    return f"call {issue.call + 1} {subject}" if issue.call is not None else subject


def issue_facts(issue: Issue) -> str:
    """What was expected and what came."""
    facts = (("expected", issue.expected), ("got", issue.got))
    return ", ".join(f"{word} {what}" for word, what in facts if what is not None)
