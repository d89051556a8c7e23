"""The findings of an audit as lines with places, and the coverage of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.analysis.audit.audit import Coverage
from workbench.analysis.audit.contradictions import AuditFinding
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.visible import after, one_line, shortened
from workbench.suite.suite_file import SuiteFile

LISTED_MAX = 400
"""Longest list of names without coverage, in characters."""


def audit_lines(file: SuiteFile, findings: Iterable[AuditFinding], coverage: Coverage, paint: Paint) -> Iterator[str]:
    """Yield the findings of one suite's audit, then its coverage."""
    # Two calls on one line of the file can have the same finding.
    yield from dict.fromkeys(_finding_line(file, finding, paint) for finding in findings)
    name = file.path.name
    if file.suite is not None:
        name = one_line(file.suite.name)
    summary = next(texts := coverage_texts(coverage), None)
    if summary is not None:
        yield f"{name}: {summary}"
    for text in texts:
        yield paint(shortened(f"  {text}", LISTED_MAX), "muted")


def coverage_texts(coverage: Coverage) -> Iterator[str]:
    """Yield the share of the tools that cases cover, and the parts that no case covers.

    Without tools, yield nothing."""
    if coverage.tools.total:
        shares = ", ".join(f"{share.covered} of {share.total} {noun}" for noun, share in coverage.shares)
        yield f"{shares} covered"
        for noun, share in coverage.shares:
            if share.missing:
                yield one_line(f"no case covers these {noun}: {'; '.join(share.missing)}")


def finding_text(finding: AuditFinding) -> str:
    return one_line(finding.message + after(" (", finding.hint, ")"))


def _finding_line(file: SuiteFile, finding: AuditFinding, paint: Paint) -> str:
    place = f"{one_line(str(file.path))}:{file.line_of(finding.place)}"
    role: Role = "muted"
    if finding.weight == "warning":
        role = "warned"
    kind, case = paint(finding.kind, role), ""
    if finding.case is not None:
        case = f" {one_line(finding.case)}:"
    return f"{place}: {kind}:{case} {finding_text(finding)}"
