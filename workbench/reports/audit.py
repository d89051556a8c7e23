"""What an audit found as lines of text: each finding with its place, then what of the tools is covered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from workbench.analysis.audit.coverage import Coverage, Share
from workbench.analysis.audit.finding import AuditFinding
from workbench.reports.paint import Paint
from workbench.reports.visible import one_line, shortened
from workbench.suite.loading import SuiteFile
from workbench.suite.places import written

LISTED_MAX = 400
"""Characters of a list of names that nothing covers."""


def unsaid(file: SuiteFile, findings: Sequence[AuditFinding]) -> list[AuditFinding]:
    """The findings that no warning of the suite says already, in the order of the file."""
    told = {problem.where for problem in file.warnings}
    found = [finding for finding in findings if written(finding.place) not in told]
    return sorted(found, key=lambda finding: file.positions.line(finding.place))


def audit_lines(file: SuiteFile, findings: Iterable[AuditFinding], coverage: Coverage, paint: Paint) -> Iterator[str]:
    """The lines of one suite's audit."""
    for finding in findings:
        yield _finding_line(file, finding, paint)
    if coverage.tools.total:
        name = one_line(file.suite.name) if file.suite is not None else file.path.name
        yield (
            f"{name}: covered are {_of(coverage.tools, 'tools')}, {_of(coverage.parameters, 'parameters')}"
            f" and {_of(coverage.values, 'enum values')}"
        )
    for what, share in (("tools", coverage.tools), ("parameters", coverage.parameters), ("values", coverage.values)):
        if share.missing:
            yield paint(
                shortened(f"  no case covers these {what}: {one_line('; '.join(share.missing))}", LISTED_MAX), "quiet"
            )


def _finding_line(file: SuiteFile, finding: AuditFinding, paint: Paint) -> str:
    line = file.positions.line(finding.place)
    case = f" {one_line(finding.case)}:" if finding.case is not None else ""
    hint = f" ({one_line(finding.hint)})" if finding.hint else ""
    kind = paint(finding.kind, "warn" if finding.weight == "warning" else "quiet")
    return f"{one_line(str(file.path))}:{line}: {kind}:{case} {one_line(finding.message)}{hint}"


def _of(share: Share, what: str) -> str:
    return f"{share.covered} of {share.total} {what}"
