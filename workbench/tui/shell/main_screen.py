"""The workbench itself: suite tree, case and run side by side, and everything that is shown in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.timer import Timer

from workbench.authoring.case_now import CaseKey
from workbench.authoring.document import Document
from workbench.authoring.known_tools import KnownTools
from workbench.authoring.open_suite import OpenSuite
from workbench.authoring.open_suites import Desk
from workbench.authoring.workspace import Workspace
from workbench.tui.case.pane import CasePane
from workbench.tui.kit.actions import bindings_for
from workbench.tui.kit.bars import KeyBar, PaneTitle
from workbench.tui.kit.painting import Bar
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role
from workbench.tui.run_book.book import RunBook
from workbench.tui.run_book.summaries import deciding_run
from workbench.tui.shell.bars import MainBars
from workbench.tui.shell.commands import Commands
from workbench.tui.shell.messages import run_message
from workbench.tui.shell.registry import ACTIONS, BY_ID
from workbench.tui.shell.situation import situation_of
from workbench.tui.trajectory.pane import RunPane
from workbench.tui.trajectory.run_tabs import RunChoice
from workbench.tui.trajectory.view import RunList
from workbench.tui.tree.auditing import Auditor
from workbench.tui.tree.lines import tree_message
from workbench.tui.tree.selection import SelectionScreen
from workbench.tui.tree.state import TreeState
from workbench.tui.tree.view import FilterBox, SuiteTree

REST_S = 0.06
"""The other panes follow the tree's cursor once it has stood still for this long."""


class MainScreen(SelectionScreen):
    """The suites, the case and the run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_for(a for a in ACTIONS if a.where == "everywhere")
    AUTO_FOCUS = "#suites"

    class Free(Message):
        """Nothing else has the keyboard any more: no dialog, no filter."""

    def __init__(
        self,
        book: RunBook,
        commands: Commands,
        *,
        models: tuple[str, ...],
        editor: str | None,
        known_tools: KnownTools,
    ) -> None:
        super().__init__(book)
        self.workspace = Workspace((), ())
        self.models = models
        """The models to run on; empty: each suite's own."""
        self.models_for_now = False
        """Whether the command line says which they are: for this start only, until others are chosen."""
        self.editor = editor
        """The user's editor, as a command."""
        self.commands = commands
        self.known_tools = known_tools
        """The tools of the suites, as far as they are known without starting anything."""
        self.desk = Desk(known_tools.checked)
        self.on_change: Callable[[OpenSuite], None] = lambda suite: None
        """Told of every suite whose document has changed."""
        self.on_reading: Callable[[Iterable[OpenSuite]], str] = lambda suites: ""
        """Told of suites that may say something else now; says which grades that moved, in words."""
        self.moved = ""
        """Which grades the last change moved."""
        self._resting: Timer | None = None
        self._missed = False
        """Whether runs went on while this screen was covered."""
        self._bars = MainBars(self)
        self.auditor = Auditor(self, known_tools.listings)

    def compose(self) -> ComposeResult:
        yield Bar("status")
        with Horizontal(id="panes"):
            with Vertical(id="suites-pane"):
                yield PaneTitle("suites-title")
                tree = SuiteTree(self.suites, self.book, "suites")
                tree.message = (("Looking for suites …", "muted"),)
                yield tree
                yield FilterBox()
            yield CasePane("case-pane", classes="beside")
            yield RunPane("run-pane", classes="beside")
        yield KeyBar("keys")

    def on_screen_suspend(self) -> None:
        self._bars.offer_no_keys()

    def on_screen_resume(self) -> None:
        if self._missed:
            self._missed = False
            self.query_one("#suites", SuiteTree).repaint()
            self.show_run()
        self.refresh_bars()
        self.post_message(self.Free())

    @property
    def is_covered(self) -> bool:
        """Whether another screen takes all the room; a dialog does not."""
        return any(not screen.is_modal for screen in self.app.screen_stack[1:])

    # What is there

    def open(self, workspace: Workspace) -> tuple[OpenSuite, ...]:
        """Show suites: at the start, and after they were read again. The suites are returned that were edited here and
        are something else on the disk now."""
        for run in workspace.recorded:
            self.book.recall(run.planned, run.recording.header.started_at, run.recording.events, run.result)
        tree = self.query_one("#suites", SuiteTree)
        first = not self.workspace.roots
        recordings = frozenset(run.planned.file.path for run in workspace.recorded)
        conflicts = self.desk.take(workspace.files, recordings)
        if first:
            self.suites = TreeState(workspace.roots, self.desk.suites)
            tree.state = self.suites
        else:
            self.suites.reload(self.desk.suites, workspace.roots)
        self.workspace = workspace
        self._follow_grades(self.desk.suites)
        tree.message = tree_message(self.suites.filter)
        tree.move_cursor(self.suites.cursor)
        self.show_selected()
        if first and workspace.recorded:
            self.call_after_refresh(self._begin_on_run, only=len(workspace.files) == 1)
        return conflicts

    # Changing

    def change(
        self,
        suite: OpenSuite,
        document: Document,
        said: str,
        *,
        group: Hashable | None = None,
        case: str | None = None,
        index: int | None = None,
    ) -> bool:
        """Give a suite another document: the one way in which anything is edited; whether it is another one at all.

        `said` is what was done, in words; changes of one `group` in a row are one step of undo; `case` is the key of
        the case it was about, on which the tree's cursor is after an undo; `index` is that of a case that is edited in
        place (`HEAD`: the suite's settings), which stays in the tree whatever is filtered.
        """
        if not suite.change(document, said, group, case):
            return False
        self.show_change(suite, index)
        return True

    def follow_change(self, suite: OpenSuite, case: str | None) -> None:
        """Show a suite whose document is another one now, with the tree's cursor on what was changed."""
        self.suites.changed(suite)
        if case is None or any(outline.key == case for outline in suite.cases):
            self.suites.select(suite.path, case)
        elif self.selected_suite is not suite:
            self.suites.select(suite.path)
        self.show_change(suite)

    def show_change(self, suite: OpenSuite, index: int | None = None) -> None:
        """Show a suite whose document is another one now; what was typed is on the disk before it is on the screen."""
        self.on_change(suite)
        tree = self.query_one("#suites", SuiteTree)
        is_other = self.suites.changed(suite, index)
        self._follow_grades((suite,))
        if is_other or tree.cursor != self.suites.cursor:
            tree.move_cursor(self.suites.cursor)
        tree.repaint()
        self.show_selected()
        if self.moved:
            self.announce(self.moved, gently=True)

    def _follow_grades(self, suites: Iterable[OpenSuite]) -> None:
        self.moved = self.on_reading(suites)
        if self.moved:
            self.suites.follow_status(self.book)

    @property
    def and_moved(self) -> str:
        """What the last change moved, to be added to what is said of it."""
        return f"; {self.moved}" if self.moved else ""

    def add(self, suite: OpenSuite) -> None:
        """Open one more suite, which need not be on the disk."""
        if not any(suite.path.is_relative_to(root) for root in self.workspace.roots):
            self.open(replace(self.workspace, roots=(*self.workspace.roots, suite.path)))
        self.desk.add(suite)
        self.suites.reload(self.desk.suites)
        self.show_change(suite)

    def select(self, path: Path, case: str | None = None) -> None:
        """Put the tree's cursor on a suite or, by its key, on a case."""
        self.suites.select(path, case)
        self.query_one("#suites", SuiteTree).move_cursor(self.suites.cursor)
        self.show_selected()

    def _begin_on_run(self, *, only: bool) -> None:
        """Show the recorded run where there is no room for all panes; the tree gives way to the `only` one."""
        if only:
            self.bring("run")
        else:
            self.right = "run"
            self.place_panes()
            self.refresh_bars()

    def show_selected(self) -> None:
        """Let the other panes show what the tree's cursor stands on."""
        self._stop_resting()
        self.auditor.look_soon()
        self.chosen_run = deciding_run(self.runs_shown)
        step = self.case_pane.show(self.suites)
        self.show_run()
        if step is not None:
            self.run_pane.run_list.go_to_step(step)

    def show_run(self) -> None:
        """Show the chosen run of the selected case, or what to do when there is none."""
        runs = self.runs_shown
        self.chosen_run = min(self.chosen_run, max(len(runs) - 1, 0))
        self.run_pane.show(runs, self.chosen_run, run_message(self.suites, self.models), self.book.held_runs)
        self.refresh_bars()

    def delivered(self, cases: set[CaseKey], batches: bool) -> None:
        """Events were taken over: repaint what they changed. Below another screen nothing is: Textual would draw all of
        that one again."""
        if self.is_covered:
            self._missed = True
            return
        self.query_one("#suites", SuiteTree).repaint()
        run = self.run_shown
        if batches or self.selected_case in cases or (run is not None and run.stage == "waiting"):
            self.show_run()
        else:
            self._bars.show_status()

    def follow_grades(self) -> None:
        """Grades of many runs are others now: a filter that asks for them finds others."""
        if self.suites.follow_status(self.book):
            self.query_one("#suites", SuiteTree).follow_state()

    @on(PaneTitle.RightChosen)
    def _view_chosen(self, event: PaneTitle.RightChosen) -> None:
        if event.pane == "case":
            self.action_do("edit.view")

    # Bars

    def refresh_bars(self) -> None:
        """Titles, status and keys, as things are now."""
        self._bars.refresh()

    def show_status(self) -> None:
        """Counts, models, progress, as they are now."""
        self._bars.show_status()

    def show_titles(self) -> None:
        """Name the panes and what they show."""
        self._bars.show_titles()

    def announce(self, text: str, role: Role = "text", sign: str = "", *, gently: bool = False) -> None:
        """Say something at the bottom, for a while; `gently`: not in the place of a warning."""
        self._bars.announce(text, role, sign, gently=gently)

    def end_notice(self, only: str) -> None:
        """Take back what was said, if it was that, before its time is over."""
        self._bars.end_notice(only)

    # What can be done

    def action_do(self, action_id: str) -> None:
        """Take an action of the registry, or say why it cannot be taken."""
        self._bars.end_notice()
        self._settle()
        why = BY_ID[action_id].why_not(situation_of(self))
        if why is not None:
            self.announce(why[:1].upper() + why[1:], "warned", GLYPHS.warned)
        else:
            self.commands.perform(action_id, self)

    @on(SuiteTree.Moved)
    def _tree_moved(self) -> None:
        self._stop_resting()
        self._resting = self.set_timer(REST_S, self.show_selected)

    @on(SuiteTree.Opened)
    def _tree_opened(self) -> None:
        self.action_do("tree.open")

    @on(RunChoice.Chosen)
    def _run_chosen(self, event: RunChoice.Chosen) -> None:
        self.chosen_run = event.index
        self.show_run()

    @on(RunPane.Turned)
    def _run_typing(self) -> None:
        self.refresh_bars()

    @on(RunPane.Kept)
    def _run_typed(self) -> None:
        self.action_do("save")

    @on(RunList.Wanted)
    def _held_wanted(self, event: RunList.Wanted) -> None:
        self.action_do(event.action)

    @on(RunList.News)
    def _run_news(self) -> None:
        self.show_titles()

    # Time

    @property
    def is_catching_up(self) -> bool:
        """Whether the tree's cursor has moved on from what the other panes show."""
        return self._resting is not None

    def _settle(self) -> None:
        """Catch up with the tree's cursor before anything is done to what it stands on."""
        if self.is_catching_up:
            self.show_selected()

    def _stop_resting(self) -> None:
        if self._resting is not None:
            self._resting.stop()
            self._resting = None
