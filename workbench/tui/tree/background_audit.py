"""Audits visible cases in a thread, after the cursor has rested for a second."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.timer import Timer

from workbench.tui.tree.audit_marks import AuditedCase
from workbench.tui.tree.view import SuiteTree

if TYPE_CHECKING:
    from workbench.analysis.audit.contradictions import AuditFinding
    from workbench.tools.listings import StoredListings


REST_S = 1.0
"""The rest of the cursor, in seconds, before an audit starts. Keys come first."""

AT_ONCE = 20
"""The number of cases to audit before the tree is drawn again."""


class Auditor:
    """Audits the cases of visible rows, each case once, and stores the findings in `TreeState.audits`."""

    def __init__(self, tree: SuiteTree, listings: StoredListings) -> None:
        self._tree = tree
        self._listings = listings
        self._rest_timer: Timer | None = None
        self._working = False

    def audit_soon(self) -> None:
        """Schedule an audit of the visible rows, because the rows or their cases changed."""
        if self._rest_timer is not None:
            self._rest_timer.stop()
        self._rest_timer = self._tree.set_timer(REST_S, self._start)

    def forget(self) -> None:
        """Clear findings, because the known tools changed."""
        self._tree.state.audits.forget()
        self.audit_soon()

    def _start(self) -> None:
        self._rest_timer = None
        # An audit in progress also includes rows that become visible before it ends.
        if not self._working and self._in_sight():
            self._tree.run_worker(self._audit(), group="audit")

    def _in_sight(self) -> list[AuditedCase]:
        tree = self._tree
        rows = tree.state.rows[tree.top : tree.top + max(tree.size.height, 1)]
        return tree.state.audits.unaudited(rows)

    async def _audit(self) -> None:
        """Audit until all visible cases are done, including cases that become visible meanwhile."""
        self._working = True
        try:
            while asked := self._in_sight()[:AT_ONCE]:
                found = await asyncio.to_thread(audited, asked, self._listings)
                for each, findings in zip(asked, found, strict=True):
                    self._tree.state.audits.set_findings(each, findings)
                self._tree.repaint()
        finally:
            self._working = False


def audited(cases: Sequence[AuditedCase], listings: StoredListings) -> list[tuple[AuditFinding, ...]]:
    """Return the findings of each case.

    Takes about a millisecond per case."""
    # Lazy imports: they run in this thread, so loading the audit does not delay a key.
    from workbench.analysis.audit.audit import audit_case
    from workbench.analysis.audit.contradictions import ToolTable

    tables: dict[Path, ToolTable] = {}
    found = []
    for each in cases:
        path = each.key[0]
        if path not in tables:
            tables[path] = ToolTable.of(each.suite, listings.of(each.suite, path))
        found.append(tuple(audit_case(each.suite, each.index, tables[path])))
    return found
