"""The audit screen: cases with too few checks, expectations that no run can meet, and uncovered tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from workbench.analysis.audit.audit import Audit, audit_suite, findings_without_warning
from workbench.analysis.audit.contradictions import AuditFinding
from workbench.dataclasses import dataclass
from workbench.numerals import counted, counted_of
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Role, Span, cut_line, plain, title_line, wrap
from workbench.show.views.audit import coverage_texts
from workbench.show.visible import one_line
from workbench.suite.problems import place_text
from workbench.suite.suite_file import SuiteFile
from workbench.tools.listings import StoredListings
from workbench.tui.kit.actions import Situation, action
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.line_search import SearchedScreen
from workbench.tui.kit.line_view import LineView
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.kit.strips import Bar

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


Target = tuple[Path, str | None]
"""The place in a suite to open from a row: the path of the suite, and the id of a case (`None`: the settings)."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One line of the audit, and the place in a suite that is shown when the line is opened."""

    line: Line
    target: Target


@dataclass(frozen=True, slots=True)
class AuditedSuite:
    file: SuiteFile
    audit: Audit


def audit_rows(audited: Sequence[AuditedSuite], width: int) -> list[AuditRow]:
    """Return the rows of all audited suites, at most `width` cells wide. Suites without findings have rows too."""
    rows: list[AuditRow] = []
    for each in audited:
        if rows:
            rows.append(AuditRow(EMPTY, rows[-1].target))
        rows += _suite_rows(each, width)
    return rows


def finding_count(audited: Sequence[AuditedSuite]) -> int:
    return sum(len(each.audit.findings) for each in audited)


def audit_text(audited: Sequence[AuditedSuite]) -> str:
    """Return the whole audit as text, for copying."""
    return "\n".join(plain(row.line).rstrip() for row in audit_rows(audited, 120))


def _suite_rows(each: AuditedSuite, width: int) -> Iterator[AuditRow]:
    path, suite = each.file.path, each.file.suite
    home: Target = (path, None)
    name, names = path.stem, {}
    if suite is not None:
        name, names = suite.name, {case.id: case.name for case in suite.cases}
    found = counted(len(each.audit.findings), "finding") if each.audit.findings else "nothing found"
    yield AuditRow(cut_line((Span(f" {one_line(name)} ", "strong"), Span(f" {found}", "muted")), width), home)
    for finding in each.audit.findings:
        yield from _finding_rows(finding, path, names, width)
    yield from _coverage_rows(each, home, width)


def _finding_rows(finding: AuditFinding, path: Path, names: Mapping[str, str], width: int) -> Iterator[AuditRow]:
    target: Target = (path, finding.case)
    role: Role = "warned" if finding.weight == "warning" else "muted"
    about = one_line(names[finding.case]) if finding.case is not None else place_text(finding.place)
    head: Line = (Span(f"   {GLYPHS.audit} ", role), Span(about), Span(f"  {finding.kind}", role))
    yield AuditRow(cut_line(head, width), target)
    for text in wrap(one_line(finding.message), max(width - 7, 1)):
        yield AuditRow((Span(f"      {text}"),), target)
    if finding.hint:
        for text in wrap(one_line(finding.hint), max(width - 9, 1)):
            yield AuditRow((Span(f"        {text}", "muted"),), target)


def _coverage_rows(each: AuditedSuite, home: Target, width: int) -> Iterator[AuditRow]:
    for number, text in enumerate(coverage_texts(each.audit.coverage)):
        indent = 6 if number else 3
        for row in wrap(text, max(width - indent - 1, 1)):
            yield AuditRow((Span(" " * indent + row, "muted"),), home)


def _found(situation: Situation) -> str | None:
    if situation.has_text:
        return None
    return "nothing has been audited yet"


class AuditList(LineView):
    """The list of an audit's rows."""

    class Opened(Message):
        """Posted when the selected row is clicked."""

    def __init__(self, widget_id: str) -> None:
        super().__init__(widget_id)
        self.audited: list[AuditedSuite] = []
        self._rows: list[AuditRow] = []
        self._laid_out: tuple[int, int] = (0, 0)

    @property
    def rows(self) -> Sequence[AuditRow]:
        """The rows of all audited suites at the current width."""
        # Suites are only ever added, so the rows stay valid while neither the number of suites nor the width changes.
        now = (len(self.audited), self.text_width)
        if now != self._laid_out:
            self._laid_out = now
            self._rows = audit_rows(self.audited, self.text_width)
        return self._rows

    @property
    def has_cursor(self) -> bool:
        return bool(self.rows)

    def line_count(self) -> int:
        return len(self.rows)

    def line_at(self, index: int) -> Line:
        return self.rows[index].line

    def chosen(self, index: int) -> None:
        self.post_message(self.Opened())


class AuditScreen(SearchedScreen[Target | None]):
    """The screen of the audit of some suites. Returns the place in a suite that the user chose."""

    # A thread audits one suite after another, and the screen shows each audit as it ends. Tools come from stored
    # listings. No server is started, and no model is asked.

    NAME = "audit"
    TITLE_IN_TEXT = "the audit"
    ACTION_OVERRIDES = (ActionOverride("back", keys="escape left"),)
    AUTO_FOCUS = "#audit-list"

    def __init__(
        self,
        app: Workbench,
        files: Sequence[SuiteFile],
        place: str,
        begin_at: Target | None,
        listings: StoredListings,
    ) -> None:
        super().__init__(app)
        self._files = [file for file in files if file.suite is not None]
        self._place = place
        self._begin_at = begin_at
        self._listings = listings

    def compose(self) -> ComposeResult:
        yield Bar("audit-title")
        yield AuditList("audit-list")
        yield KeyBar("audit-keys")

    def on_mount(self) -> None:
        self._show_bars()
        self.run_worker(self._audit(), group="audit")

    async def _audit(self) -> None:
        found = self._list
        for file in self._files:
            # Auditing a suite with many cases takes a while, and keys must work meanwhile.
            found.audited.append(await asyncio.to_thread(_audited, file, self._listings))
            self._go_to_beginning()
            found.repaint()
            self._show_bars()

    def _go_to_beginning(self) -> None:
        for index, row in enumerate(self._list.rows):
            if row.target == self._begin_at:
                # The cursor is moved only once, not again when a later audit ends.
                self._begin_at = None
                self._list.move_cursor(index)
                return

    @property
    def is_done(self) -> bool:
        return len(self._list.audited) == len(self._files)

    @property
    def _list(self) -> AuditList:
        return self.query_one("#audit-list", AuditList)

    def _show_bars(self) -> None:
        audited = self._list.audited
        left: Line = (Span(" Audit ", "badge"), Span(f" {one_line(self._place)}"))
        found = finding_count(audited)
        right: Line = (Span(f"{counted(found, 'finding')} ", "warned" if found else "passed"),)
        if not self.is_done:
            right = (Span(f"{counted_of(len(audited), len(self._files), 'suite')} … ", "muted"), *right)
        self.query_one("#audit-title", Bar).set_line(lambda width: title_line(left, (right,), width))
        super()._show_bars()

    @property
    def situation(self) -> Situation:
        return Situation(has_text=bool(self._list.audited))

    @on(AuditList.Opened)
    def _opened(self) -> None:
        self.action_do("audit.open")

    @action("enter right", "Go to the case", label="go to case", needs=_found)
    def do_open(self) -> None:
        if self._list.rows:
            self.dismiss(self._list.rows[self._list.cursor].target)

    @action("y", "Copy everything as text", label="copy", needs=_found)
    def do_copy(self) -> None:
        self.workbench.copy(audit_text(self._list.audited), "the audit", self.announce)


def _audited(file: SuiteFile, listings: StoredListings) -> AuditedSuite:
    assert file.suite is not None
    audit = audit_suite(file.suite, listings.of(file.suite, file.path))
    return AuditedSuite(file, replace(audit, findings=findings_without_warning(file, audit.findings)))


def open_audit(app: Workbench) -> None:
    """Open the audit of the selected suite or folder. When the user chooses a finding, select its case."""
    selection = app.selection
    suites, place = selection.suites_below()
    begin_at = None
    if selection.suite is not None and selection.outline is not None:
        begin_at = selection.suite.path, selection.outline.id

    def go(target: Target | None) -> None:
        if target is None:
            selection.notify_all()
            return
        path, case_id = target
        suite, key = selection.open_suites.at(path), None
        if suite is not None:
            key = next((case.key for case in suite.run_cases if case.id == case_id), None)
        selection.select(path, key)

    files = [suite.file for suite in suites]
    app.show(AuditScreen(app, files, place, begin_at, app.main.known_tools.listings), go)
