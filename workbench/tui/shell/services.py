"""The services of the app, such as running, saving and regrading, and the events between services and screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.authoring.case_list import CaseKey
from workbench.authoring.workspace import SuitesChanged
from workbench.config.program import Program
from workbench.engine.events import ToolsListed
from workbench.engine.recordings import Recordings, recording_lines
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.tui.breakpoints.project import Breakpoints, ProjectBreakpoints
from workbench.tui.holds.held_notices import HeldNotices
from workbench.tui.runs.execution_questions import Questions
from workbench.tui.runs.recording import RunSaver
from workbench.tui.runs.regrader import Regrader
from workbench.tui.runs.runner import OpenRuntime, Runner
from workbench.tui.runs.status_line import RunTicker
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.storage.drafts import DraftKeeper
from workbench.tui.storage.reload import Searches, SuiteReader
from workbench.tui.storage.saver import Saver
from workbench.tui.storage.watch import Watch
from workbench.tui.terminal.environment import TerminalEnvironment
from workbench.tui.tools.server_offers import ServerOffers
from workbench.tui.tree.stored_results import HistoryReader

if TYPE_CHECKING:
    from workbench.evaluation.approval import Trust
    from workbench.evaluation.options import AppStart
    from workbench.suite.trust import TrustStore
    from workbench.tui.history.batch_work import BatchWork
    from workbench.tui.runs.start import Starter
    from workbench.tui.shell.workbench import Workbench


class Services:
    """The services of one app, connected to each other and to the main screen."""

    def __init__(
        self,
        app: Workbench,
        main: MainScreen,
        program: Program,
        terminal: TerminalEnvironment,
        *,
        open_runtime: OpenRuntime,
        clock: Callable[[], float],
        trust: bool,
        record: Path | None,
        history: Path | None,
        start: AppStart | None,
    ) -> None:
        self._app = app
        self._main = main
        self.program = program
        self.terminal = terminal
        self.selection = selection = main.selection
        self.open_suites = open_suites = selection.open_suites
        self.book = book = selection.book
        self.known_tools = main.known_tools
        self.history = history
        """The path of the history file, `None` without a history."""
        self.begun_batch_work: BatchWork | None = None
        """The operations on the history, `None` until their first use."""
        self._trusts_all = trust
        self._compares = start is not None and start.opens == "compare"
        open_recordings: Callable[[], Recordings] | None = None
        if record is not None:
            folder = record

            def open_recordings() -> Recordings:
                return Recordings(folder, recording_lines(program.secrets))

        self.runner = Runner(app, book, open_runtime, self._update_runs, terminal.paint_interval_s, open_recordings)
        self.run_update_callbacks: list[Callable[[], object]] = []
        """Callbacks after each delivery of events, for parts of the app that wait for runs."""
        self.runner.on_listing = self._note_listed_tools
        self.runner.on_endpoint = lambda text: app.announce(one_line(text), keep_warning=True)
        self.breakpoints = ProjectBreakpoints(
            app, open_suites, self.known_tools, program, start.breakpoints if start is not None else None
        )
        self.breakpoints.follow(self._breakpoints_changed)
        self._held_notices = HeldNotices(
            app, selection, main, app.key_name, goes_to_first=start is not None and start.opens == "run"
        )
        self._questions = Questions(app, book, self.runner, program.secrets, self._may_ask)
        self._ticker = RunTicker(book, main.set_interval, self._update_times)
        self.drafting = DraftKeeper(app, open_suites, selection, program.folders.drafts)
        self.saver = Saver(app, open_suites, selection, self.drafting, self.is_bundled)
        self.run_saver = RunSaver(app, self.is_bundled, program.secrets)
        self.searches = Searches(app)
        self.reader = SuiteReader(app, selection, self.saver, program.models, self.searches, lambda: app.is_typing)
        self.watch = Watch(app, selection, self.reader, self.saver)
        self.server_offers = ServerOffers(
            app, open_suites, self.runner, lambda file: self.starter.approval_of_servers(file), lambda: app.is_typing
        )
        self.regrader = Regrader(app, selection, program, lambda file: self.starter.code_to_grade(file), clock)
        self.history_reader = HistoryReader(
            app,
            selection.tree.remembered,
            history,
            program.secrets.redact,
            lambda: open_suites.suites,
            main.follow_history,
        )
        # Followers are called in this order: the journal, the recorded runs, the tree, the grades, and the screen. Each
        # follower uses the state of the previous followers.
        open_suites.follow(self._exempt_suite_tokens)
        open_suites.follow(self.drafting.follow, book.follow, selection.tree.follow, self.regrader.follow, main.follow)
        open_suites.follow(self.history_reader.follow, self.server_offers.follow)
        selection.follow(lambda _news: self.server_offers.check_soon())
        main.case_pane.on_rest = self.server_offers.check_soon

    @cached_property
    def _trust_store(self) -> TrustStore:
        from workbench.evaluation.trust import trust_store  # lazy import: the first screen asks for no trust

        return trust_store(self.program.folders)

    def is_bundled(self, suite: Path) -> bool:
        """Return whether the program bundles the suite at a path."""
        return self._trust_store.is_bundled(suite)

    @cached_property
    def trust(self) -> Trust:
        """The suites and models that the user trusts, created on first use."""
        from workbench.evaluation.approval import Trust

        return Trust(self._trust_store, all_of_them=self._trusts_all)

    @cached_property
    def starter(self) -> Starter:
        """Starts runs. Created on first use."""
        from workbench.tui.runs.start import Starter  # lazy import: the first screen starts no run

        return Starter(
            self._app,
            self.selection,
            self._main,
            self.runner,
            self.program,
            self.trust,
            catch_up=self.reader.catch_up,
            suspend_questions=self._questions.suspend,
            history=self.history,
            compares=self._compares,
        )

    @property
    def batch_work(self) -> BatchWork:
        """The operations on the history, created on first use."""
        from workbench.tui.history.batch_work import BatchWork

        if self.begun_batch_work is None:
            self.begun_batch_work = BatchWork(
                self._app,
                self.history,
                self.program,
                self.selection,
                self.runner,
                may_grade=self.starter.approval_to_grade,
                resume=self.starter.resume,
                screens=self._app.side_screens,
            )
        return self.begun_batch_work

    def show_pending(self) -> None:
        """Show the oldest question of a run and announce held runs, unless a dialog or the filter has the focus."""
        self._questions.show_pending()
        self._held_notices.show_pending()

    def stop_all(self) -> None:
        """Stop every run and withdraw the questions of runs."""
        self.runner.stop_all()
        self._questions.withdraw()
        self._app.announce("Stopping everything; what is finished is kept", "text", GLYPHS.stopped)

    def _exempt_suite_tokens(self, changed: SuitesChanged) -> None:
        """Do not redact the tokens in a suite's text, because the user wrote them."""
        for suite in changed.suites:
            self.program.secrets.exempt(suite.text)

    def tools_changed(self) -> None:
        """Discard the cached tool lists because a server announced other tools."""
        self.known_tools.forget()
        self._main.auditor.forget()

    def _note_listed_tools(self, listed: Sequence[ToolsListed]) -> None:
        self.tools_changed()
        self.selection.notify_all()
        for listing in listed:
            if listing.change is not None:
                text = f"{listing.server} lists different tools now: {listing.change}"
                self._app.announce(one_line(text), keep_warning=True)

    def _update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        # If a case was edited during its run, the run was graded by the earlier case.
        self.regrader.finish(cases)
        if batches:
            # The servers of a batch may have listed their tools, so the known tools are cleared.
            self.known_tools.forget()
        self._main.update_runs(cases, batches)
        self._update_side_screens(cases, batches)
        self._ticker.follow()
        self.show_pending()
        for delivered in self.run_update_callbacks:
            delivered()
        for problem in self.runner.problems():
            self._app.announce(problem[:1].upper() + problem[1:], "error", GLYPHS.error)

    def _update_side_screens(self, cases: set[CaseKey], batches: bool) -> None:
        for screen in self._app.side_screens():
            screen.update_runs(cases, batches)

    def _update_times(self) -> None:
        for screen in self._app.side_screens():
            # Only the top screen is updated, because a covered screen must not draw.
            if self._app.shows(screen):
                screen.update_times()
                return
        self._main.show_status()
        self._main.run_pane.run_list.update_answer_time(self.book.now())
        if self.book.starting or self._main.shows_summary:
            self._main.show_run()

    def _may_ask(self) -> bool:
        if self._app.shows_main:
            adder = self._main.adder
            return not self._main.filter_box.typing and (adder is None or adder.allows_questions)
        return getattr(self._app.top_screen, "takes_questions", False)

    def update_grades_above_main(self, cases: set[CaseKey]) -> None:
        """Show new grades of these cases on the screens above the main screen."""
        self._update_side_screens(cases, False)

    def update_grades_everywhere(self, cases: set[CaseKey]) -> None:
        self._main.update_runs(cases, False)
        self._update_side_screens(cases, False)

    def update_all_grades(self) -> None:
        """Update all screens after a regrade."""
        self._main.update_grades()
        for screen in self._app.side_screens():
            screen.update_grades()

    def _breakpoints_changed(self, points: Breakpoints) -> None:
        self.runner.set_breakpoints(points.points)
        for view in (self._main.run_pane.run_list, self._main.case_pane.form):
            view.breakpoints = points.tools
            view.repaint()
