"""Make the calls of a run the expectations of its case. The user sees the change and confirms it first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from workbench.authoring.accept import RunToAccept, accept_call, accept_missing, accept_runs
from workbench.authoring.case_list import current_case, has_same_grading, index_of
from workbench.authoring.document import CaseOutline
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.proposal import AcceptedArgument, AcceptError, Proposal, accept_steps, proposal_without_secrets
from workbench.checks.patterns import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.grade import CallPairing, GradingError, RunResult
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Line, Span, cut, cut_line, padded
from workbench.show.views.run_items import CallItem, MissingItem, ResultItem, StepItem
from workbench.show.visible import compact_json, one_line, widest_cells
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.suite.suite_text import SpliceError
from workbench.tui.kit.actions import key_for
from workbench.tui.kit.dialogs import Dialog, keys_line
from workbench.tui.kit.line_view import LineView
from workbench.tui.run_book.record import RunRecord
from workbench.tui.terminal.theme import Ground

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class RunAccepter:
    """Turns the displayed run, or one of its calls, into expectations of the case."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._secrets = app.program.secrets

    def accept(self, *, whole: bool) -> None:
        """Show the change of the case, and apply it if the user confirms.

        With `whole`, or if no call is selected, accept all calls of the run. Otherwise accept the selected call."""
        suite, run, outline = self._selection.suite, self._selection.run, self._selection.outline
        if suite is None or run is None or outline is None:
            return
        try:
            proposal = proposal_without_secrets(self._proposal(suite, outline, run, whole), self._secrets)
        except AcceptError as error:
            self._app.announce(f"Nothing was accepted: {error}", "warned", GLYPHS.warned)
            return

        def on_answer(chosen: Proposal | None) -> None:
            if chosen is not None:
                self._apply(suite, outline, run, chosen)

        self._app.show(AcceptScreen(proposal), on_answer)

    def _proposal(self, suite: OpenSuite, outline: CaseOutline, run: RunRecord, whole: bool) -> Proposal:
        result = run.result
        if result is None or run.broke_off:
            raise AcceptError(f"only a finished run can be accepted; {key_for('run.case')} runs the case again")
        # A redacted argument differs from the model's argument and must not become an expectation.
        if result.has_redacted_calls:
            raise AcceptError(
                "this run is stored without the secrets in its calls and cannot be accepted; "
                f"{key_for('run.case')} runs the case again"
            )
        variant = run.planned.variant
        # If a variant renames tools or arguments, the calls of its runs do not match the suite.
        if variant is not None and (variant.names or any(each.name or each.arguments for each in variant.changes)):
            raise AcceptError(
                "this run is of a variant that renames tools or arguments: accept a run of the suite as written"
            )
        read = current_case(suite, outline)
        if read is None:
            raise AcceptError("this case has errors: correct them first")
        _, now, case = read
        unchanged = has_same_grading(run.planned, now, case)
        if unchanged and result.grade is not None:
            pairings: Sequence[CallPairing] = result.grade.pairings
        else:
            pairings = pairings_of(now, case, result)
        table = suite.document.table(outline.index)
        item, before = self._app.main.run_pane.run_list.item_and_before
        # If the cursor is on a result, accept its call, which is the item before it.
        call = before if isinstance(item, ResultItem) else item
        if not whole and isinstance(call, CallItem):
            if call.index is None:
                raise AcceptError(
                    f"the provider executes {call.tool!r}: write the tool as [[provider_tools]] to expect its calls"
                )
            return accept_call(case, table, result.trajectory, pairings, call.index)
        if not whole and isinstance(item, MissingItem):
            if not unchanged:
                # A missing item has the index of an expected call. After a change of the case, the index may belong to
                # another call.
                raise AcceptError(f"the case has changed since this run; {key_for('run.case')} runs it again")
            return accept_missing(case, item.expected)
        if not whole and isinstance(item, StepItem) and item.step is not None and case.steps:
            return accept_steps(case, table, result.trajectory, pairings, item.step)
        return accept_runs(case, table, [RunToAccept(result.trajectory, pairings, result.cost_usd)])

    def _apply(self, suite: OpenSuite, outline: CaseOutline, run: RunRecord, proposal: Proposal) -> None:
        try:
            index = index_of(suite, outline.key)
            document = suite.document.with_case(index, proposal.applied(suite.document.table(index)))
        except SpliceError as error:
            self._app.announce(f"Nothing was accepted: {error}", "error", GLYPHS.error)
            return
        if self._selection.open_suites.change(suite, document, proposal.summary, case=outline.key):
            text = proposal.summary
            if proposal.dropped_count and not proposal.only_removes:
                them = "them"
                if proposal.dropped_count == 1:
                    them = "it"
                lost = counted(proposal.dropped_count, "expectation")
                text += f", {lost} dropped: {key_for('edit.undo')} brings {them} back"
            now = f"{_status_now(suite, outline, run)}{self._selection.open_suites.moved_grades_text}"
            self._app.announce(f"{text}; {now}", "passed", GLYPHS.passed)
        else:
            self._app.announce("The case already says all of that")


def pairings_of(suite: Suite, case: Case, result: RunResult) -> Sequence[CallPairing]:
    """Return the pairings of a run's calls with the current expectations of its case.

    Raises:
        AcceptError: The run cannot be graded by the current case."""
    if case.steps:
        return ()
    try:
        return grade_critics(case, settings_of(suite, case).grading, result.trajectory).pairings
    except (CheckError, GradingError) as error:
        raise AcceptError(
            f"the case has changed since this run ({error}); {key_for('run.case')} runs it again"
        ) from error


def _status_now(suite: OpenSuite, outline: CaseOutline, run: RunRecord) -> str:
    """Regrade a run by its changed case. Return a clause about the new status, such as `the run now passes`."""
    now, result = current_case(suite, outline), run.result
    if now is None or result is None:
        return "the case has errors now"
    if not has_same_grading(run.planned, now.suite, now.case):
        # Expensive checks run in the background, so the new status is not known yet.
        return "the run is being regraded"
    if result.status == Status.PASSED:
        return "the run now passes"
    return f"the run is still {result.status}: {_why(result)}"


def _why(result: RunResult) -> str:
    grade = result.grade
    if grade is None:
        return result.error or ""
    for issue in grade.issues:
        if issue.decides:
            return issue.reason
    return grade.reason


MAX_NAME_CELLS = 18
"""The maximum width of the column of argument names."""

_KIND_CELLS = 11
"""The width of the column with the kinds of checks."""

_FRAME_ROWS = 4
"""The rows of border, title and keys."""


class AcceptScreen(Dialog[Proposal]):
    """A dialog that shows the proposed expectations. The user can choose other checks, and confirms or cancels."""

    DEFAULT_CSS = "AcceptScreen > Vertical { width: 100; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,space", "other(1)", show=False),
        Binding("left", "other(-1)", show=False),
        Binding("enter", "accept", show=False),
    ]

    def __init__(self, proposal: Proposal) -> None:
        keys = [("Enter", "accept"), ("Esc", "cancel")]
        if any(call.arguments for call in proposal.calls):
            keys.insert(1, ("←→", "other check"))
        super().__init__(keys_line(*keys))
        self._proposal = proposal

    @property
    def heading(self) -> str:
        if self._proposal.only_removes:
            return "Accept that it was not called?"
        if self._proposal.whole:
            return "Accept the run as the expectation?"
        return "Accept this call as expected?"

    def body(self) -> ComposeResult:
        yield AcceptLines(self._proposal, "accepted")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#accepted"))

    def _make_room(self, height: int) -> None:
        self.query_one("#accepted").styles.max_height = max(height - _FRAME_ROWS, 1)

    def action_other(self, step: int) -> None:
        self.query_one("#accepted", AcceptLines).other_check(step)

    def action_accept(self) -> None:
        self.dismiss(self.query_one("#accepted", AcceptLines).proposal)


class AcceptLines(LineView):
    """The list of a proposal's calls with their arguments, followed by the expectations to remove."""

    GROUND: ClassVar[Ground] = "panel"

    def __init__(self, proposal: Proposal, widget_id: str | None = None) -> None:
        super().__init__(widget_id)
        self.proposal = proposal
        self._rows: list[tuple[int, int | None]] = []
        """The call and the argument of each row (`None`: the row of the call itself). Dropped arguments come last."""
        for number, call in enumerate(proposal.calls):
            self._rows.append((number, None))
            for at in range(len(call.argument_names)):
                self._rows.append((number, at))
        # The cursor begins on the first argument with a choice of checks.
        self.cursor = next((row for row in range(len(self._rows)) if self._argument_at(row)), 0)

    @property
    def has_cursor(self) -> bool:
        return bool(self._rows)

    def line_count(self) -> int:
        return len(self._rows) + len(self._removed_lines)

    @property
    def _removed_lines(self) -> list[Line]:
        lines: list[Line] = []
        if self.proposal.whole and not self.proposal.calls:
            lines.append((Span(" The model called nothing, and nothing will be expected."),))
        sign, end = Span(f"  {GLYPHS.missing} ", "muted"), Span("  no longer expected", "muted")
        for tool in self.proposal.dropped_tools:
            lines.append((sign, Span(one_line(tool), "tool"), end))
        return lines

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        return self.line_count()

    def line_at(self, index: int) -> Line:
        return cut_line(self._line(index), self.text_width)

    def other_check(self, step: int) -> None:
        """Replace the check of the argument at the cursor by the next (1) or previous (-1) possible check."""
        if (argument := self._argument_at(self.cursor)) is not None:
            self.proposal = self.proposal.with_other_check(*argument, step)
            self.repaint()

    def _argument_at(self, row: int) -> tuple[int, int] | None:
        """Return the indices of a row's call and argument. Return `None` if the row has no choice of checks."""
        if row >= len(self._rows):
            return None
        number, at = self._rows[row]
        if at is None or at >= len(self.proposal.calls[number].arguments):
            return None
        return (number, at)

    def chosen(self, index: int) -> None:
        self.other_check(1)

    def _line(self, index: int) -> Line:
        if index >= len(self._rows):
            return self._removed_lines[index - len(self._rows)]
        number, at = self._rows[index]
        call = self.proposal.calls[number]
        if at is not None:
            widest = min(widest_cells(call.argument_names), MAX_NAME_CELLS)
            if at < len(call.arguments):
                return self._argument_line(call.arguments[at], widest)
            name, was = call.dropped[at - len(call.arguments)]
            shown = f"    {GLYPHS.missing} {padded(one_line(name), widest)}  no longer expected: {one_line(was)}"
            return (Span(shown, "muted"),)
        head = f" {number + 1:>2} "
        if call.step is not None:
            head = f" step {call.step} "
        line: Line = (Span(head, "muted"), Span(one_line(call.tool), "tool"))
        if not call.arguments:
            return (*line, Span("  without arguments", "muted"))
        if self.proposal.has_any_order(call):
            return (*line, Span("  in any order within its answer", "muted"))
        return line

    def _argument_line(self, argument: AcceptedArgument, widest: int) -> Line:
        choice = argument.choice
        name = padded(one_line(argument.name), widest)
        line: Line = (Span("      "), Span(f"{name}  ", "key"), Span(f"{choice.kind:<{_KIND_CELLS}}  ", "accent"))
        if choice.written is not None:
            shown = one_line(choice.text)
            if not argument.given:
                return (*line, Span(shown), Span("  not given, which is allowed", "muted"))
            return (*line, Span(shown))
        given = compact_json(argument.value, self.text_width) if argument.given else "not given"
        return (*line, Span(cut(given, self.text_width), "muted"))
