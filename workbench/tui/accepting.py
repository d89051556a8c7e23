"""Accepting what a model did as what is expected: from the run that is shown to a change of its case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.checks.errors import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.errors import GradingError
from workbench.grading.grade import CallPairing
from workbench.grading.run import grade_run
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.suite.settings import settings_of
from workbench.suite.splice import SpliceError
from workbench.tui.glyphs import GLYPHS
from workbench.tui.screens.accept import AcceptScreen
from workbench.tui.state.accept import AcceptError, Proposal, accept_call, accept_missing, accept_run
from workbench.tui.state.document import CaseOutline
from workbench.tui.state.items import CallItem, MissingItem, ResultItem
from workbench.tui.state.open_suite import OpenSuite
from workbench.tui.state.runs import BROKEN_OFF, RunRecord
from workbench.tui.state.structure import index_of
from workbench.tui.state.words import many

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench


def accept(app: Workbench, screen: MainScreen, *, whole: bool) -> None:
    """Show what accepting the run shown would change, and change it when that is agreed to: the call under the cursor;
    with `whole`, or where there is none, all calls."""
    suite, run, row = screen.selected_suite, screen.run_shown, screen.suites.selected
    if suite is None or run is None or row is None or row.case is None:
        return
    outline = row.case
    try:
        proposal = _proposal(screen, suite, outline, run, whole)
    except AcceptError as error:
        screen.announce(f"Nothing was accepted: {error}", "warned", GLYPHS.warned)
        return

    def take(chosen: Proposal | None) -> None:
        if chosen is not None:
            _take(screen, suite, outline, run, chosen)

    app.push_screen(AcceptScreen(proposal), take)


def _proposal(screen: MainScreen, suite: OpenSuite, outline: CaseOutline, run: RunRecord, whole: bool) -> Proposal:
    result = run.result
    if result is None or result.status in BROKEN_OFF:
        raise AcceptError("only a run that came to its end can be accepted; r runs the case again")
    read = _read(suite, outline)
    if read is None:
        raise AcceptError("this case has errors: correct them first")
    file, case = read
    unchanged = run.is_of(suite, outline)
    pairings = result.grade.pairings if unchanged and result.grade is not None else _pairings(file, case, run)
    table = suite.document.table(outline.index)
    item, before = screen.run_pane.run_list.item_and_before
    call = before if isinstance(item, ResultItem) else item
    if not whole and isinstance(call, CallItem):
        return accept_call(case, table, result.trajectory, pairings, call.index)
    if not whole and isinstance(item, MissingItem):
        if not unchanged:
            raise AcceptError("the case has changed since this run; r runs it again")
        return accept_missing(case, item.expected)
    return accept_run(case, table, result.trajectory, pairings)


def _take(screen: MainScreen, suite: OpenSuite, outline: CaseOutline, run: RunRecord, proposal: Proposal) -> None:
    try:
        index = index_of(suite, outline.key)
        document = suite.document.with_case(index, proposal.applied(suite.document.table(index)))
    except SpliceError as error:
        screen.announce(f"Nothing was accepted: {error}", "error", GLYPHS.error)
        return
    if screen.change(suite, document, proposal.said, case=outline.key):
        dropped = proposal.drops if proposal.dropped is None else 0
        them = "it" if dropped == 1 else "them"
        and_lost = f", {many(dropped, 'expectation')} dropped: Ctrl+Z brings {them} back" if dropped else ""
        screen.announce(f"{proposal.said}{and_lost}; {_status_now(suite, outline, run)}", "passed", GLYPHS.passed)
    else:
        screen.announce("The case says all of that already")


def _read(suite: OpenSuite, outline: CaseOutline) -> tuple[SuiteFile, Case] | None:
    """The case as it is edited now, in a suite that can run; `None` when it has errors."""
    file = suite.runnable((outline.key,))
    if file is None or file.suite is None:
        return None
    case = next((case for case in file.suite.cases if case.id == outline.id), None)
    return (file, case) if case is not None else None


def _pairings(file: SuiteFile, case: Case, run: RunRecord) -> Sequence[CallPairing]:
    assert file.suite is not None and run.result is not None
    if case.steps:
        return ()
    try:
        return grade_critics(case, settings_of(file.suite, case).grading, run.result.trajectory).pairings
    except (CheckError, GradingError) as error:
        raise AcceptError(f"the case has changed since this run ({error}); r runs it again") from error


def _status_now(suite: OpenSuite, outline: CaseOutline, run: RunRecord) -> str:
    """What the run is worth under the case as it is now, in words."""
    read = _read(suite, outline)
    if read is None or read[0].suite is None or run.result is None:
        return "the case has errors now"
    try:
        grades, status = grade_run(read[0].suite, read[1], run.result.trajectory)
    except (CheckError, GradingError):
        return "r runs it again"
    if status == "passed":
        return "the run passes with it"
    why = next((issue.why for issue in grades[0].issues if issue.decides), grades[0].reason)
    return f"the run still comes out {status}: {why}"
