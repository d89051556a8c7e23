"""The main screen: suite tree, case and run side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer

from workbench.authoring.case_list import CaseKey
from workbench.authoring.known_tools import KnownTools
from workbench.authoring.workspace import SuitesChanged
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import Role
from workbench.tui.case.pane import CasePane
from workbench.tui.kit.actions import bindings_for, key_for, why_unavailable
from workbench.tui.kit.bars import KeyBar, PaneTitle
from workbench.tui.kit.strips import Bar
from workbench.tui.quick_add.line import RequestField, RequestLine
from workbench.tui.shell.actions import MAIN_ACTIONS, main_action
from workbench.tui.shell.bars import MainBars
from workbench.tui.shell.panes import PanesScreen, Splitter, run_message
from workbench.tui.shell.situation import situation_of
from workbench.tui.trajectory.pane import RunChoice, RunPane
from workbench.tui.trajectory.view import RunList
from workbench.tui.tree.background_audit import Auditor
from workbench.tui.tree.lines import tree_message
from workbench.tui.tree.selection import Selection, SelectionChange
from workbench.tui.tree.view import FilterBox, SuiteTree

if TYPE_CHECKING:
    from workbench.authoring.open_suite import OpenSuite
    from workbench.tui.kit.memory import SavedRequestLine
    from workbench.tui.shell.workbench import Workbench

CURSOR_REST_S = 0.06
"""The rest of the tree's cursor, in seconds, before the other panes follow. A held key moves only the tree."""


class MainScreen(PanesScreen):
    """The main screen: the tree of suites, the selected case, and its run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(a for a in MAIN_ACTIONS if a.scope == "everywhere")
    AUTO_FOCUS = "#suites"

    class FocusReturned(Message):
        """Posted when the focus returns from a dialog or from the filter. A run may then ask its question."""

    class SuiteSelected(Message):
        """Posted when a suite or folder is selected. The run pane then shows a summary of its last runs."""

    def __init__(
        self,
        app: Workbench,
        selection: Selection,
        perform: Callable[[str], object],
        *,
        editor: str | None,
        known_tools: KnownTools,
    ) -> None:
        super().__init__(
            selection,
            SuiteTree(selection.tree, selection.book, "suites"),
            FilterBox(selection, self),
            CasePane(app, selection, known_tools, self, "case-pane"),
            RunPane(app, "run-pane"),
            RequestLine(),
            editor,
        )
        self._app = app
        self.open_suites = selection.open_suites
        self._perform = perform
        self.known_tools = known_tools
        """The known tools of the suites. No server is started to find tools."""
        self._rest_timer: Timer | None = None
        self._is_outdated = False
        """Whether events arrived while the screen was covered and are not drawn yet."""
        self._bars = MainBars(self)
        self.suite_tree.message = (("Looking for suites …", "muted"),)
        self.auditor = Auditor(self.suite_tree, known_tools.listings)
        selection.follow(self._selection_changed)

    def compose(self) -> ComposeResult:
        yield Bar("status")
        with Horizontal(id="panes"):
            with Vertical(id="suites-pane"):
                yield PaneTitle("suites-title")
                yield self.suite_tree
                yield self.filter_box
            yield Splitter(0)
            yield self.case_pane
            yield Splitter(1)
            yield self.run_pane
        yield self.request_line
        yield KeyBar("keys")

    def on_screen_suspend(self) -> None:
        self._bars.offer_no_keys()

    def on_screen_resume(self) -> None:
        if self._is_outdated:
            self._is_outdated = False
            self.suite_tree.repaint()
            self.show_run()
        self.refresh_bars()
        self.post_message(self.FocusReturned())

    def follow(self, change: SuitesChanged) -> None:
        """Show a change of the open suites. Called after the unsaved text was written to its journal."""
        tree, state, moved = self.suite_tree, self.selection.tree, self.open_suites.moved
        if moved:
            state.follow_status(self.book)
        if change.how == "read":
            tree.message = tree_message(state.filter)
        # Moving the cursor scrolls the tree, so the cursor must not move while the user types.
        if change.how == "read" or state.other_rows or tree.cursor != state.cursor:
            tree.move_cursor(state.cursor)
        tree.repaint()
        self.show_selected()
        if moved and change.how != "read":
            self.announce(moved, keep_warning=True)
        if change.first and change.workspace.recorded:
            self.call_after_refresh(self._begin_on_run, only=len(change.workspace.files) == 1)

    def _selection_changed(self, news: SelectionChange) -> None:
        if news == "row":
            self.suite_tree.move_cursor(self.selection.tree.cursor)
            self.show_selected()
        else:
            self.show_run()

    def _begin_on_run(self, *, only: bool) -> None:
        if only:
            self.show_run_pane()
        else:
            self.right = "run"
            self.place_panes()
            self.refresh_bars()

    def show_selected(self) -> None:
        """Show the selected row of the tree in the other panes."""
        self._stop_rest_timer()
        self.auditor.audit_soon()
        if self.adder is not None:
            self.adder.leave_run()
        self.selection.choose_deciding_run()
        step = self.case_pane.show()
        self.show_run()
        if step is not None:
            self.run_pane.run_list.go_to_step(step)

    def show_run(self) -> None:
        """Show the selected run of the case, or a message if there is none."""
        if self.adder is not None and (shown := self.adder.runs_shown) is not None:
            runs, message = shown
            self.run_pane.show(runs, 0, message, self.book.held_runs, self.book.starting, self.selection.models)
            self.refresh_bars()
            return
        run, runs = self.selection.run, self.selection.runs
        message = run_message(self.selection.tree, self.selection.models, self.book)
        row = self.selection.row
        if row is not None and row.case is None:
            self.post_message(self.SuiteSelected())
        chosen = self.selection.chosen_run if run is not None else 0
        self.run_pane.show(runs, chosen, message, self.book.held_runs, self.book.starting, self.selection.models)
        self.refresh_bars()

    @property
    def shows_summary(self) -> bool:
        """Whether the run pane shows a summary of the last runs of a suite or folder."""
        row = self.selection.row
        return row is not None and row.case is None and not self.is_covered

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        """Show changes of these cases' runs. `batches` is whether batches began or ended."""
        if self.is_covered:
            # Drawing here would make Textual redraw the covering screen.
            self._is_outdated = True
            return
        self.suite_tree.repaint()
        run, counts = self.selection.run, self.book.counts()
        # A summary is redrawn once per second. It is also redrawn right before the question of a run covers it.
        is_about_to_be_covered = self.shows_summary and counts.asking > 0
        waits = run is not None and run.stage == "waiting"
        is_of_line = self.adder is not None and self.adder.is_about(cases)
        if batches or self.selection.case in cases or is_of_line or waits or is_about_to_be_covered:
            self.show_run()
        else:
            self._bars.show_status()

    def update_grades(self) -> None:
        """Apply a filter by status again after runs were regraded."""
        if self.selection.tree.follow_status(self.book):
            self.suite_tree.follow_state()

    def follow_history(self) -> None:
        """Show the last results of cases after they were read from the history."""
        if self.is_covered:
            self._is_outdated = True
            return
        self.update_grades()
        self.suite_tree.repaint()
        if self.selection.run is None:
            self.show_run()

    def add_to(self, suite: OpenSuite) -> None:
        """Open quick add, the input line for new cases, for a suite."""
        from workbench.tui.quick_add.adder import QuickAdder

        self.adder = self._app.part(QuickAdder)
        self.adder.open(suite)

    @property
    def saved_request_line(self) -> SavedRequestLine | None:
        """The text and requests of quick add to restore in the next session. `None` if quick add was never opened."""
        if self.adder is None:
            return None
        return self.adder.kept

    @on(RequestField.Changed, "#request")
    def _request_typed(self, event: RequestField.Changed) -> None:
        if self.adder is not None:
            self.adder.typed(event.value)

    @on(RequestField.Turned)
    def _line_turned(self) -> None:
        self.refresh_bars()
        if not self.request_line.typing:
            self.post_message(self.FocusReturned())

    @on(RequestField.Unused)
    def _letter_unused(self, event: RequestField.Unused) -> None:
        if self.adder is not None:
            self.adder.unused(event.key)

    @on(PaneTitle.RightEndClicked)
    def _view_chosen(self, event: PaneTitle.RightEndClicked) -> None:
        if event.pane == "case":
            self.action_do("edit.view")

    def refresh_bars(self) -> None:
        """Update titles, status and keys."""
        self._bars.refresh()

    def show_status(self) -> None:
        """Update counts, models and progress."""
        self._bars.show_status()

    def show_titles(self) -> None:
        self._bars.show_titles()

    def announce(self, text: str, role: Role = "text", sign: str = "", *, keep_warning: bool = False) -> None:
        """Show a notice at the bottom for a few seconds. With `keep_warning`, do not replace a warning."""
        self._bars.announce(text, role, sign, keep_warning=keep_warning)

    def end_notice(self, only: str | None = None) -> None:
        """Remove the notice. With `only`, remove the notice only if it has this text."""
        self._bars.end_notice(only)

    def action_do(self, action_id: str) -> None:
        """Perform an action, or announce why it is unavailable."""
        if action_id == "edit.undo" and self.request_line.typing:
            # The key for undo is bound to `edit.undo` even while the request line has the focus.
            action_id = "quick.undo"
        self._bars.end_notice()
        self._catch_up()
        why = None
        # While a text of a held run is edited, its editor handles some keys, such as the key to save.
        if not self.run_pane.is_for_typed_text(action_id):
            now = situation_of(self)
            # A request of quick add has no case yet. The run pane shows the run of the request in place of the selected
            # case's run, so the refusals are about this run.
            why = now.refusals.get(action_id) or why_unavailable(main_action(action_id)[1], now)
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self._perform(action_id)

    @on(SuiteTree.Moved)
    def _tree_moved(self) -> None:
        self._stop_rest_timer()
        self._rest_timer = self.set_timer(CURSOR_REST_S, self.show_selected)

    @on(SuiteTree.Blocked)
    def _tree_blocked(self) -> None:
        self.announce(f"Folded: {key_for('tree.unfold')} unfolds it", "muted", keep_warning=True)

    @on(FilterBox.Ended)
    def _filter_ended(self) -> None:
        self.post_message(self.FocusReturned())

    @on(SuiteTree.Opened)
    def _tree_opened(self) -> None:
        self.action_do("tree.open")

    @on(RunChoice.Chosen)
    def _run_chosen(self, event: RunChoice.Chosen) -> None:
        self.selection.choose_run(event.index)

    @on(RunPane.Turned)
    def _run_typing(self) -> None:
        self.refresh_bars()

    @on(RunPane.Kept)
    def _run_typed(self) -> None:
        self.action_do("save")

    @on(RunList.ActionClicked)
    def _held_action_clicked(self, event: RunList.ActionClicked) -> None:
        self.action_do(event.action)

    @on(RunList.Changed)
    def _run_changed(self) -> None:
        self.show_titles()

    @property
    def is_catching_up(self) -> bool:
        """Whether the other panes do not yet show the row at the tree's cursor."""
        return self._rest_timer is not None

    def _catch_up(self) -> None:
        if self.is_catching_up:
            self.show_selected()

    def _stop_rest_timer(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.stop()
            self._rest_timer = None
