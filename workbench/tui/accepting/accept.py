"""Accepting what a model did as the expectation of its case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.authoring.accept import RunToAccept, accept_call, accept_missing, accept_runs
from workbench.authoring.case_list import graded_alike, index_of, read_now
from workbench.authoring.document import CaseOutline
from workbench.authoring.expected_calls import AcceptError
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.proposal import Proposal, accept_steps, proposal_without_secrets
from workbench.checks.patterns import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.grade import CallPairing, GradingError, RunResult
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.suite.splice import SpliceError
from workbench.tui.accepting.dialog import AcceptScreen
from workbench.tui.kit.actions import key_for
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_book.shown.items import CallItem, MissingItem, ResultItem, StepItem

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class RunAccepter:
    """Accepts the displayed run, or one of its calls, into its case."""

    def __init__(self, app: Workbench) -> None:
        self._stage = app
        self._selection = app.selection
        self._secrets = app.program.secrets

    def accept(self, *, whole: bool) -> None:
        """Show what accepting would change, and apply it if confirmed. Accepts the selected call or, with `whole` or
        without a selected call, all calls."""
        suite, run, outline = self._selection.suite, self._selection.run, self._selection.outline
        if suite is None or run is None or outline is None:
            return
        try:
            proposal = proposal_without_secrets(self._proposal(suite, outline, run, whole), self._secrets)
        except AcceptError as error:
            self._stage.announce(f"Nothing was accepted: {error}", "warned", GLYPHS.warned)
            return

        def take(chosen: Proposal | None) -> None:
            if chosen is not None:
                self._take(suite, outline, run, chosen)

        self._stage.show(AcceptScreen(proposal), take)

    def _proposal(self, suite: OpenSuite, outline: CaseOutline, run: RunRecord, whole: bool) -> Proposal:
        result = run.result
        if result is None or run.broke_off:
            raise AcceptError(f"only a finished run can be accepted; {key_for('run.case')} runs the case again")
        if any(place.call is not None for place in result.redacted):
            raise AcceptError(
                f"secrets in its calls are not stored with this run; {key_for('run.case')} runs the case again"
            )
        variant = run.planned.variant
        if variant is not None and (variant.names or any(each.name or each.arguments for each in variant.changes)):
            raise AcceptError(
                "this run is of a variant that renames tools or arguments: accept one of the suite as written"
            )
        read = read_now(suite, outline)
        if read is None:
            raise AcceptError("this case has errors: correct them first")
        _, now, case = read
        unchanged = graded_alike(run.planned, now, case)
        pairings = result.grade.pairings if unchanged and result.grade is not None else pairings_of(now, case, result)
        table = suite.document.table(outline.index)
        item, before = self._stage.main.run_pane.run_list.item_and_before
        call = before if isinstance(item, ResultItem) else item
        if not whole and isinstance(call, CallItem):
            return accept_call(case, table, result.trajectory, pairings, call.index)
        if not whole and isinstance(item, MissingItem):
            if not unchanged:
                raise AcceptError(f"the case has changed since this run; {key_for('run.case')} runs it again")
            return accept_missing(case, item.expected)
        if not whole and isinstance(item, StepItem) and item.step is not None and case.steps:
            return accept_steps(case, table, result.trajectory, pairings, item.step)
        return accept_runs(case, table, [RunToAccept(result.trajectory, pairings)])

    def _take(self, suite: OpenSuite, outline: CaseOutline, run: RunRecord, proposal: Proposal) -> None:
        try:
            index = index_of(suite, outline.key)
            document = suite.document.with_case(index, proposal.applied(suite.document.table(index)))
        except SpliceError as error:
            self._stage.announce(f"Nothing was accepted: {error}", "error", GLYPHS.error)
            return
        if self._selection.open_suites.change(suite, document, proposal.summary, case=outline.key):
            dropped = 0 if proposal.only_drops else proposal.drops
            them = "it" if dropped == 1 else "them"
            and_lost = (
                f", {counted(dropped, 'expectation')} dropped: {key_for('edit.undo')} brings {them} back"
                if dropped
                else ""
            )
            now = f"{_status_now(suite, outline, run)}{self._selection.open_suites.and_moved}"
            self._stage.announce(f"{proposal.summary}{and_lost}; {now}", "passed", GLYPHS.passed)
        else:
            self._stage.announce("The case already says all of that")


def pairings_of(suite: Suite, case: Case, result: RunResult) -> Sequence[CallPairing]:
    """Return how the calls of a run are paired with what the case expects now. Raises AcceptError."""
    if case.steps:
        return ()
    try:
        return grade_critics(case, settings_of(suite, case).grading, result.trajectory).pairings
    except (CheckError, GradingError) as error:
        raise AcceptError(
            f"the case has changed since this run ({error}); {key_for('run.case')} runs it again"
        ) from error


def _status_now(suite: OpenSuite, outline: CaseOutline, run: RunRecord) -> str:
    """Describe the run's status under the changed case."""
    now, result = read_now(suite, outline), run.result
    if now is None or result is None:
        return "the case has errors now"
    if not graded_alike(run.planned, now.suite, now.case):
        return "the run is being regraded"
    if result.status == Status.PASSED:
        return "the run now passes"
    grade = result.grade
    reason = grade.reason if grade is not None else result.error or ""
    why = next((issue.why for issue in (grade.issues if grade is not None else ()) if issue.decides), reason)
    return f"the run is still {result.status}: {why}"
