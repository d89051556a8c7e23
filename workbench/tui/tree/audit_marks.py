"""What audits found in the cases that were looked at, kept for as long as a case and its suite's settings stay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.authoring.case_now import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.model import Case, Suite
from workbench.tui.tree.rows import Row

if TYPE_CHECKING:
    from workbench.analysis.audit.finding import AuditFinding


@dataclass(frozen=True, slots=True)
class ToAudit:
    """A case to be looked at, as it is now."""

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


class AuditBook:
    """Findings by case. A case that was edited is one that was not looked at yet."""

    def __init__(self) -> None:
        self._audited: dict[CaseKey, _Audited] = {}

    def wanting(self, rows: Iterable[Row]) -> list[ToAudit]:
        """The cases among some rows that were not looked at as they are now, each once."""
        found: dict[CaseKey, ToAudit] = {}
        for row in rows:
            asked = _to_audit(row.open, row.case.index) if row.open is not None and row.case is not None else None
            if asked is not None and self._known(asked) is None:
                found[asked.key] = asked
        return list(found.values())

    def take(self, asked: ToAudit, findings: Iterable[AuditFinding]) -> None:
        """Keep what was found."""
        self._audited[asked.key] = _Audited(_identity(asked), tuple(findings))

    def forget(self) -> None:
        """Tools are others now: everything is to be looked at anew."""
        self._audited.clear()

    def is_marked(self, row: Row) -> bool:
        """Whether something of a case's row is nearly always a mistake, as far as is known."""
        if row.open is None or row.case is None or not self._audited:
            return False
        asked = _to_audit(row.open, row.case.index)
        known = self._known(asked) if asked is not None else None
        return known is not None and any(finding.weight == "warning" for finding in known)

    def _known(self, asked: ToAudit) -> tuple[AuditFinding, ...] | None:
        audited = self._audited.get(asked.key)
        if audited is None or any(a is not b for a, b in zip(audited.of, _identity(asked), strict=True)):
            return None
        return audited.findings


def _to_audit(suite: OpenSuite, index: int) -> ToAudit | None:
    read = suite.file.suite
    if read is None or not 0 <= index < len(read.cases):
        return None
    return ToAudit((suite.path, read.cases[index].id), read, index)


def _identity(asked: ToAudit) -> tuple[object, ...]:
    """What an audit of a case rests on. Edits of other cases leave all of it as it is."""
    suite = asked.suite
    return asked.case, suite.grading, suite.limits, suite.tools, suite.servers
