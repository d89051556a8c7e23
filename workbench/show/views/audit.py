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
    """Yield the lines of one suite's audit."""
    # Two calls of one line can have the same fault.
    yield from dict.fromkeys(_finding_line(file, finding, paint) for finding in findings)
    name = one_line(file.suite.name) if file.suite is not None else file.path.name
    for number, text in enumerate(coverage_texts(coverage)):
        yield paint(shortened(f"  {text}", LISTED_MAX), "muted") if number else f"{name}: {text}"


def coverage_texts(coverage: Coverage) -> Iterator[str]:
    """Yield how much of the tools the cases cover, then what of each kind they do not; nothing without tools."""
    if coverage.tools.total:
        yield f"{', '.join(f'{share.covered} of {share.total} {what}' for what, share in coverage.shares)} covered"
        for what, share in coverage.shares:
            if share.missing:
                yield one_line(f"no case covers these {what}: {'; '.join(share.missing)}")


def finding_text(finding: AuditFinding) -> str:
    """Return what is wrong and what to do about it."""
    return one_line(f"{finding.message} ({finding.hint})" if finding.hint else finding.message)


def _finding_line(file: SuiteFile, finding: AuditFinding, paint: Paint) -> str:
    case = f" {one_line(finding.case)}:" if finding.case is not None else ""
    kind = paint(finding.kind, "warned" if finding.weight == "warning" else "muted")
    return f"{one_line(str(file.path))}:{file.positions.line(finding.place)}: {kind}:{case} {finding_text(finding)}"
