"""The workbench itself: suite tree, case and run side by side, and everything that is shown in them."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile
from workbench.tui.actions import BY_ID, PANES, Shown, Situation, bindings_for, shown_keys
from workbench.tui.commands import Commands
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import Bar
from workbench.tui.state.runs import CaseKey, RunBook, RunRecord, deciding_run
from workbench.tui.state.selection import Pane, case_of, case_picture, panes_shown, run_message
from workbench.tui.state.source import tree_message
from workbench.tui.state.spans import EMPTY, Line, Role, Span
from workbench.tui.state.status import model_label, models_label, status_line
from workbench.tui.state.tree import Row, TreeState
from workbench.tui.widgets.bars import KeyBar, PaneTitle, RunChoice
from workbench.tui.widgets.case_view import CaseView
from workbench.tui.widgets.run_list import RunList
from workbench.tui.widgets.suite_tree import SuiteTree
from workbench.tui.workspace import Workspace

REST_S = 0.06
"""The other panes follow the tree's cursor once it has stood still for this long."""

NOTICE_S = 6.0
"""A notice stays this long, or until the next command."""


class MainScreen(Screen[None]):
    """Three panes, as many of them as the width allows."""

    DEFAULT_CSS = """
    MainScreen { layout: vertical; background: $background; }
    #panes { height: 1fr; }
    #panes > Vertical { width: 1fr; height: 100%; }
    #panes > #suites-pane { width: 26%; min-width: 28; max-width: 46; }
    #panes > #run-pane { width: 1.2fr; }
    #panes > .beside { border-left: solid $border; }
    #panes > #suites-pane.alone { width: 1fr; max-width: 100%; }
    #filter { height: 1; border: none; padding: 0 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("everywhere")
    AUTO_FOCUS = "#suites"

    class Free(Message):
        """Nothing else has the keyboard any more: no dialog, no filter."""

    def __init__(self, book: RunBook, commands: Commands, *, models: tuple[str, ...], editor: str | None) -> None:
        super().__init__()
        self.workspace = Workspace((), ())
        self.suites = TreeState((), ())
        self.book = book
        self.models = models
        """The models to run on; empty: each suite's own."""
        self.pane: Pane = "suites"
        self.right: Pane = "case"
        self.zoomed = False
        self.chosen_run = 0
        self._editor = editor
        self.commands = commands
        self._resting: Timer | None = None
        self._ticking: Timer | None = None
        self._notice: Timer | None = None
        self._shown: tuple[Pane, ...] = PANES

    def compose(self) -> ComposeResult:
        yield Bar("status")
        with Horizontal(id="panes"):
            with Vertical(id="suites-pane"):
                yield PaneTitle("suites-title")
                tree = SuiteTree(self.suites, self.book, "suites")
                tree.message = (("Looking for suites …", "muted"),)
                yield tree
            with Vertical(id="case-pane", classes="beside"):
                yield PaneTitle("case-title")
                yield CaseView("case")
            with Vertical(id="run-pane", classes="beside"):
                yield PaneTitle("run-title")
                yield RunChoice("choice")
                yield RunList("run")
        yield KeyBar("keys")

    def on_screen_suspend(self) -> None:
        self.query_one("#keys", KeyBar).offer(())

    def on_screen_resume(self) -> None:
        self.refresh_bars()
        self.post_message(self.Free())

    def on_mount(self) -> None:
        self.query_one("#choice").display = False
        self.place_panes()

    # What is there

    def open(self, workspace: Workspace) -> None:
        """Show suites: at the start, and after they were read again."""
        for run in workspace.recorded:
            self.book.recall(run.planned, run.recording.header.started_at, run.recording.events, run.result)
        tree = self.query_one("#suites", SuiteTree)
        first = workspace.roots != self.workspace.roots
        if first:
            self.suites = TreeState(workspace.roots, workspace.files)
            tree.state = self.suites
        else:
            self.suites.reload(workspace.files)
        self.workspace = workspace
        tree.message = tree_message(self.suites.filter)
        tree.move_cursor(self.suites.cursor)
        self.show_selected()
        if first and workspace.recorded:
            self.call_after_refresh(self._begin_on_run, only=len(workspace.files) == 1)

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
        self.chosen_run = deciding_run(self.runs_shown)
        picture = case_picture(self.suites)
        self.query_one("#case", CaseView).show(picture.excerpt, picture.message, picture.line)
        self.show_run()

    def show_run(self) -> None:
        """Show the chosen run of the selected case, or what to do when there is none."""
        run, runs = self.run_shown, self.runs_shown
        self.query_one("#choice", RunChoice).show(runs, self.chosen_run)
        message = run_message(self.suites, self.models)
        self.query_one("#run", RunList).show(run.view if run is not None else None, message)
        self.refresh_bars()

    @property
    def selected_case(self) -> CaseKey | None:
        """The case under the tree's cursor."""
        return case_of(self.suites.selected)

    @property
    def runs_shown(self) -> list[RunRecord]:
        """The latest runs of the selected case."""
        case = self.selected_case
        return self.book.runs_of(case) if case is not None else []

    @property
    def run_shown(self) -> RunRecord | None:
        """The run that the run pane shows."""
        runs = self.runs_shown
        self.chosen_run = min(self.chosen_run, max(len(runs) - 1, 0))
        return runs[self.chosen_run] if runs else None

    def delivered(self, cases: set[CaseKey], batches: bool) -> None:
        """Events were taken over: repaint what they changed."""
        self.query_one("#suites", SuiteTree).repaint()
        if batches or self.selected_case in cases:
            self.show_run()
        else:
            self.show_status()
        if batches:
            self._tick_while_running()

    # Panes

    def go_to(self, pane: Pane) -> None:
        """Focus a pane, bringing it to the screen where it is not."""
        self.pane = pane
        if pane != "suites":
            self.right = pane
        self.place_panes()
        self.query_one(f"#{pane}").focus()
        self.refresh_bars()

    def bring(self, pane: Pane) -> None:
        """Show a pane without leaving the one in use, where there is room for both."""
        if panes_shown(self.app.size.width, self.pane, pane, self.zoomed) == (self.pane,):
            self.go_to(pane)
        else:
            self.right = pane
            self.place_panes()
            self.refresh_bars()

    def place_panes(self) -> None:
        """Give the panes their places."""
        shown = panes_shown(self.app.size.width, self.pane, self.right, self.zoomed)
        if shown == self._shown:
            return
        self._shown = shown
        for pane in (*shown, *(pane for pane in PANES if pane not in shown)):
            widget = self.query_one(f"#{pane}-pane")
            widget.display = pane in shown
            widget.set_class(len(shown) == 1, "alone")
            widget.set_class(pane != shown[0], "beside")

    def on_resize(self, event: events.Resize) -> None:
        self.place_panes()
        self.show_titles()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        for pane in PANES:
            if event.widget.id == pane and pane != self.pane:
                self.pane = pane
                if pane != "suites":
                    self.right = pane
                self.refresh_bars()

    @on(PaneTitle.Chosen)
    def _title_chosen(self, event: PaneTitle.Chosen) -> None:
        self.go_to(event.pane)

    # Bars

    def refresh_bars(self) -> None:
        """Titles, status and keys, as things are now."""
        self.show_titles()
        self.show_status()
        # Below a dialog no key of the main screen does anything.
        self.query_one("#keys", KeyBar).offer(shown_keys(self.situation()) if self.app.screen is self else ())

    def show_titles(self) -> None:
        """Name the panes and what they show."""
        run = self.run_shown
        about = {
            "suites": f"/{self.suites.filter}" if self.suites.filter else "",
            "case": case_picture(self.suites).title,
            "run": model_label(run.model) if run is not None and len(self.runs_shown) == 1 else "",
        }
        for pane in self._shown:
            sharing = [other for other in PANES if other == pane or other not in self._shown]
            panes = PANES if len(self._shown) == 1 else (pane,) if pane == "suites" else tuple(sharing)
            title = self.query_one(f"#{pane}-title", PaneTitle)
            title.show(panes, pane, pane == self.pane, about[pane], self._news() if pane == "run" else EMPTY)

    def _news(self) -> Line:
        unseen = self.query_one("#run", RunList).unseen
        if unseen:
            return (Span(f"{unseen} new {GLYPHS.down} End", "running"),)
        run, row = self.run_shown, self.suites.selected
        if run is not None and row is not None and row.file is not None and row.file.hash != run.suite_hash:
            return (Span("file changed since", "warned"),)
        if run is not None and run.recorded:
            return (Span("recorded", "muted"),)
        return EMPTY

    def show_status(self) -> None:
        """Counts, models, progress."""
        models = models_label(self.models or self.suite_models())
        counts, progress = self.book.counts(), self.book.progress()
        place, cases = self.workspace.place, self.suites.case_count
        status = self.query_one("#status", Bar)
        status.say(lambda width: status_line(place, models, cases, counts, progress, width))

    def suite_models(self) -> tuple[str, ...]:
        """The models that the suites name themselves, or on which they were recorded."""
        recorded = {run.planned.file.path: run.planned.model for run in self.workspace.recorded if run.known}
        named: dict[str, None] = {}
        for file in self.suites.files:
            if file.suite is not None:
                models = (recorded[file.path],) if file.path in recorded else file.suite.models
                named.update(dict.fromkeys(models))
        return tuple(named)

    def announce(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Say something at the bottom, for a while."""
        if self._notice is not None:
            self._notice.stop()
        said = f" {sign} {one_line(text)}" if sign else f" {one_line(text)}"
        self.query_one("#keys", KeyBar).announce((Span(said, role),))
        self._notice = self.set_timer(NOTICE_S, self._end_notice)

    def _end_notice(self) -> None:
        if self._notice is not None:
            self._notice.stop()
            self._notice = None
            self.query_one("#keys", KeyBar).clear_notice()

    # What can be done

    def situation(self) -> Situation:
        """What decides which actions can be taken."""
        row, whole = self.suites.selected, self.whole
        case = self.selected_case
        file = row.file if row is not None else None
        case_view, run_list = self.query_one("#case", CaseView), self.query_one("#run", RunList)
        can_copy = {
            "suites": row is not None,
            "case": case_view.excerpt is not None,
            "run": run_list.item is not None,
        }
        return Situation(
            pane=self.pane,
            row=row.key.kind if row is not None else None,
            runnable=sum(len(ids) for _, ids in self.runnable_below(whole)) if whole is not None else 0,
            broken=file is not None and file.suite is None,
            case_running=case is not None and bool(self.book.under_way(case)),
            running=len(self.book.under_way()),
            shown=self._what_is_shown(),
            runs=len(self.runs_shown),
            has_file=file is not None,
            has_text=can_copy[self.pane],
            editor=self._editor,
        )

    def _what_is_shown(self) -> Shown:
        run = self.run_shown
        if run is None:
            return "nothing"
        return "a recording" if run.recorded else "a finished run" if run.result is not None else "a run"

    @property
    def whole(self) -> Row | None:
        """The suite or folder that the tree's cursor is on or in."""
        row = self.suites.selected
        if row is not None and row.case is not None:
            return self.suites.rows[self.suites.parent(self.suites.cursor)]
        return row

    def runnable_below(self, row: Row) -> list[tuple[SuiteFile, tuple[str, ...]]]:
        """The cases at or below a row that can run and are not running already."""
        below = []
        for file, ids in self.suites.cases_below(row):
            free = tuple(case_id for case_id in ids if not self.book.under_way((file.path, case_id)))
            if free:
                below.append((file, free))
        return below

    def action_do(self, action_id: str) -> None:
        """Take an action of the registry, or say why it cannot be taken."""
        self._end_notice()
        self._settle()
        why = BY_ID[action_id].why_not(self.situation())
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

    @on(RunList.News)
    def _run_news(self) -> None:
        self.show_titles()

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        self.suites.set_filter(event.value)
        tree = self.query_one("#suites", SuiteTree)
        tree.message = tree_message(self.suites.filter)
        tree.follow_state()
        self.show_titles()

    @on(Input.Submitted, "#filter")
    def _filter_submitted(self) -> None:
        self.close_filter(keep=True)

    def open_filter(self) -> None:
        """Type to filter the tree."""
        self.go_to("suites")
        if not self.query("#filter"):
            box = Input(self.suites.filter, "words of name, id, tag or suite", id="filter", compact=True)
            box.cursor_blink = False
            self.query_one("#suites-pane").mount(box)
        self.call_after_refresh(self._focus_filter)

    def _focus_filter(self) -> None:
        for box in self.query("#filter"):
            box.focus()

    def close_filter(self, *, keep: bool) -> None:
        """Back to the tree, with what the filter left, or with everything."""
        for box in self.query("#filter"):
            box.remove()
        if not keep:
            self.suites.set_filter("")
        self.query_one("#suites", SuiteTree).follow_state()
        self.go_to("suites")
        self.post_message(self.Free())

    @property
    def filtering(self) -> bool:
        """Whether the filter is being typed."""
        focused: Widget | None = self.focused
        return focused is not None and focused.id == "filter"

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

    def _tick_while_running(self) -> None:
        going = self.book.progress().under_way
        if going and self._ticking is None:
            self._ticking = self.set_interval(1.0, self.show_status)
        elif not going and self._ticking is not None:
            self._ticking.stop()
            self._ticking = None
