"""What the actions of the registry do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from workbench.suite.loading import SuiteFile
from workbench.tui import clipboard
from workbench.tui.actions import PANES
from workbench.tui.editor import editor_command
from workbench.tui.glyphs import GLYPHS
from workbench.tui.screens.help import HelpScreen
from workbench.tui.screens.models import ModelsScreen
from workbench.tui.state.model_choices import model_choices
from workbench.tui.state.run_lines import copied_text
from workbench.tui.state.tree import Row
from workbench.tui.widgets.case_view import CaseView
from workbench.tui.widgets.run_list import RunList
from workbench.tui.widgets.suite_tree import SuiteTree

if TYPE_CHECKING:
    from workbench.tui.screens.main import MainScreen
    from workbench.tui.workbench import Workbench


class Commands:
    """One method for each action, on the app and its main screen."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._methods: dict[str, Callable[[MainScreen], object]] = {
            "run.case": self._run_case,
            "run.suite": self._run_below,
            "run.stop": self._stop,
            "run.stop_all": lambda screen: self._app.action_stop_all(),
            "run.expand": lambda screen: screen.query_one("#run", RunList).toggle(),
            "run.previous": lambda screen: self._choose_run(screen, -1),
            "run.next": lambda screen: self._choose_run(screen, 1),
            "run.save": lambda screen: self._app.save_run(),
            "models": self._models,
            "tree.filter": lambda screen: screen.open_filter(),
            "tree.open": self._open,
            "tree.fold": lambda screen: self._fold(screen, True),
            "tree.unfold": lambda screen: self._fold(screen, False),
            "copy": self._copy,
            "edit": self._edit,
            "reload": lambda screen: self._app.read_again(),
            "pane.suites": lambda screen: screen.go_to("suites"),
            "pane.case": lambda screen: screen.go_to("case"),
            "pane.run": lambda screen: screen.go_to("run"),
            "pane.next": lambda screen: self._next_pane(screen, 1),
            "pane.previous": lambda screen: self._next_pane(screen, -1),
            "zoom": self._zoom,
            "back": self._back,
            "theme": lambda screen: self._app.choose_theme(),
            "help": lambda screen: self._app.push_screen(HelpScreen(screen.situation())),
            "palette": lambda screen: self._app.action_command_palette(),
            "quit": lambda screen: self._app.ask_to_quit(),
        }

    @property
    def known(self) -> tuple[str, ...]:
        """The ids of all actions that can be performed."""
        return tuple(self._methods)

    def perform(self, action_id: str, screen: MainScreen) -> None:
        """Do what an action says; whether it can be done was asked before."""
        self._methods[action_id](screen)

    def _run_case(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is not None:
            self._run(screen, row)

    def _run_below(self, screen: MainScreen) -> None:
        if screen.whole is not None:
            self._run(screen, screen.whole)

    def _run(self, screen: MainScreen, row: Row) -> None:
        self._app.run_cases(screen.runnable_below(row))

    def _stop(self, screen: MainScreen) -> None:
        self._app.runner.stop([run.run_id for run in screen.book.under_way(screen.selected_case)])

    def _choose_run(self, screen: MainScreen, step: int) -> None:
        screen.chosen_run = (screen.chosen_run + step) % len(screen.runs_shown)
        screen.show_run()

    def _models(self, screen: MainScreen) -> None:
        recorded = [run.planned.model for run in screen.workspace.recorded]
        models = model_choices(self._app.program, screen.suites.files, screen.models, recorded)

        def take(models: tuple[str, ...] | None) -> None:
            if models is not None:
                screen.models = models
                screen.show_selected()

        self._app.push_screen(ModelsScreen(models, screen.models), take)

    def _open(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None:
            return
        if screen.suites.is_foldable(row) and (row.file is None or row.file.suite is not None):
            self._fold(screen, not screen.suites.is_folded(row))
        else:
            screen.go_to("run" if screen.runs_shown else "case")

    def _fold(self, screen: MainScreen, folded: bool) -> None:
        suites = screen.suites
        row = suites.selected
        if row is None:
            return
        if folded and (not suites.is_foldable(row) or suites.is_folded(row)):
            suites.move_to(suites.parent(suites.cursor))
        else:
            suites.fold(row, folded)
        screen.query_one("#suites", SuiteTree).follow_state()

    def _copy(self, screen: MainScreen) -> None:
        text, what = self._text_to_copy(screen)
        if not text:
            screen.announce("There is nothing to copy here", "warned", GLYPHS.warned)
            return
        try:
            where = clipboard.copy(
                text,
                in_tmux=self._app.surroundings.in_tmux,
                send=self._app.copy_to_clipboard,
                folder=self._app.program.folders.state,
            )
        except OSError as error:
            screen.announce(f"Nothing was copied: {error}", "error", GLYPHS.error)
        else:
            screen.announce(f"Copied {what} {where}", "passed", GLYPHS.passed)

    def _text_to_copy(self, screen: MainScreen) -> tuple[str, str]:
        if screen.pane == "run":
            item = screen.query_one("#run", RunList).item
            return copied_text(item) if item is not None else ("", "")
        if screen.pane == "case":
            excerpt = screen.query_one("#case", CaseView).excerpt
            return (excerpt.text, "the TOML") if excerpt is not None else ("", "")
        row = screen.suites.selected
        if row is None:
            return "", ""
        if row.problem is not None:
            return str(row.problem), "the problem"
        return (row.case.id, "the case's id") if row.case is not None else (str(row.key.path), "the path")

    def _edit(self, screen: MainScreen) -> None:
        row = screen.suites.selected
        if row is None or row.file is None or self._app.surroundings.editor is None:
            return
        try:
            command = editor_command(self._app.surroundings.editor, row.file.path, _line_of(row, row.file))
        except ValueError as error:
            screen.announce(f"The editor cannot be started: {error}", "error", GLYPHS.error)
            return
        failure: str | None = None
        try:
            with self._app.suspend():
                try:
                    code = subprocess.run(command, check=False).returncode
                    failure = f"{command[0]} ended with code {code}" if code else None
                except OSError as error:
                    failure = f"{command[0]} cannot be started: {error.strerror}"
        except SuspendNotSupported:
            failure = "this terminal cannot be handed over to an editor"
        self._app.read_again(failure)

    def _next_pane(self, screen: MainScreen, step: int) -> None:
        if screen.filtering:
            screen.close_filter(keep=True)
        screen.go_to(PANES[(PANES.index(screen.pane) + step) % len(PANES)])

    def _zoom(self, screen: MainScreen) -> None:
        screen.zoomed = not screen.zoomed
        screen.place_panes()
        screen.refresh_bars()

    def _back(self, screen: MainScreen) -> None:
        if screen.filtering or (screen.suites.filter and screen.pane == "suites"):
            screen.close_filter(keep=False)
        elif screen.zoomed:
            self._zoom(screen)
        else:
            screen.go_to("suites")


def _line_of(row: Row, file: SuiteFile) -> int:
    if row.problem is not None:
        return row.problem.line or 1
    if row.case is not None and file.suite is not None:
        return file.case_lines([case.id for case in file.suite.cases].index(row.case.id))[0]
    return next((problem.line for problem in file.errors if problem.line), 1)
