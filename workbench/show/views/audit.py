"""The findings of an audit as lines of text, each with its place, followed by the coverage of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.analysis.audit.audit import Coverage
from workbench.analysis.audit.unmeetable import AuditFinding
from workbench.show.text import Paint
from workbench.show.visible import one_line, shortened
from workbench.suite.suite_file import SuiteFile

LISTED_MAX = 400
"""Characters of a list of names without coverage."""


def audit_lines(file: SuiteFile, findings: Iterable[AuditFinding], coverage: Coverage, paint: Paint) -> Iterator[str]:
    """Yields the lines of one suite's audit."""
    # Two calls of one line can have the same fault.
    yield from dict.fromkeys(_finding_line(file, finding, paint) for finding in findings)
    if coverage.tools.total:
        name = one_line(file.suite.name) if file.suite is not None else file.path.name
        shares = ", ".join(f"{share.covered} of {share.total} {what}" for what, share in coverage.shares)
        yield f"{name}: {shares} covered"
    for what, share in coverage.shares:
        if share.missing:
            yield paint(
                shortened(f"  no case covers these {what}: {one_line('; '.join(share.missing))}", LISTED_MAX), "muted"
            )


def _finding_line(file: SuiteFile, finding: AuditFinding, paint: Paint) -> str:
    line = file.positions.line(finding.place)
    case = f" {one_line(finding.case)}:" if finding.case is not None else ""
    hint = f" ({one_line(finding.hint)})" if finding.hint else ""
    kind = paint(finding.kind, "warned" if finding.weight == "warning" else "muted")
    return f"{one_line(str(file.path))}:{line}: {kind}:{case} {one_line(finding.message)}{hint}"
