"""Audit findings of cases, cached until the case or the settings of its suite change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.suite.model import Case, Suite
from workbench.tui.tree.rows import Row

if TYPE_CHECKING:
    from workbench.analysis.audit.contradictions import AuditFinding


@dataclass(frozen=True, slots=True)
class AuditedCase:
    """A case to audit, in its current state."""

    key: CaseKey
    suite: Suite
    index: int

    @property
    def case(self) -> Case:
        return self.suite.cases[self.index]


@dataclass(frozen=True, slots=True)
class _Audited:
    of: tuple[object, ...]
    findings: tuple[AuditFinding, ...]


class AuditMarks:
    """The audit findings of each case. The findings of a case are ignored once it was edited."""

    def __init__(self) -> None:
        self._audited: dict[CaseKey, _Audited] = {}

    def unaudited(self, rows: Iterable[Row]) -> list[AuditedCase]:
        """Return the cases of some rows that were not audited in their current state, each case once."""
        found: dict[CaseKey, AuditedCase] = {}
        for row in rows:
            if row.open is None or row.case is None:
                continue
            asked = _to_audit(row.open, row.case)
            if asked is not None and self._known(asked) is None:
                found[asked.key] = asked
        return list(found.values())

    def set_findings(self, case: AuditedCase, findings: Iterable[AuditFinding]) -> None:
        self._audited[case.key] = _Audited(_identity(case), tuple(findings))

    def forget(self) -> None:
        """Clear all findings, because tools changed."""
        self._audited.clear()

    def is_marked(self, row: Row) -> bool:
        """Return whether the audit of a row's case found something that is nearly always a mistake."""
        if row.open is None or row.case is None or not self._audited:
            return False
        asked = _to_audit(row.open, row.case)
        if asked is None:
            return False
        return any(finding.weight == "warning" for finding in self._known(asked) or ())

    def _known(self, case: AuditedCase) -> tuple[AuditFinding, ...] | None:
        audited = self._audited.get(case.key)
        if audited is None:
            return None
        # Editing a suite keeps the objects of its unchanged parts, so comparing by identity finds the changed parts.
        if any(before is not now for before, now in zip(audited.of, _identity(case), strict=True)):
            return None
        return audited.findings


def _to_audit(suite: OpenSuite, case: CaseOutline) -> AuditedCase | None:
    read = suite.file.suite
    if read is None or not 0 <= case.index < len(suite.cases):
        return None
    # Of a case with data rows, the first row is audited.
    number = suite.file.number_of(case.index, case.id)
    return AuditedCase((suite.path, read.cases[number].id), read, number)


def _identity(case: AuditedCase) -> tuple[object, ...]:
    """Return the objects on which the audit of a case depends.

    An edit of another case leaves these objects as they are."""
    suite = case.suite
    return case.case, suite.grading, suite.limits, suite.tools, suite.servers
