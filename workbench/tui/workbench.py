"""The Textual app: themes, signals, the session of runs, and the way out."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import SystemCommand
from textual.command import Provider
from textual.driver import Driver
from textual.screen import Screen

from workbench.batches.recordings import save_recording
from workbench.config.logs import LOG_NAME
from workbench.config.program import Program
from workbench.config.resources import bundled
from workbench.reports.visible import one_line
from workbench.trajectory.recording import RecordingError
from workbench.tui.commands import Commands
from workbench.tui.driver import TolerantDriver
from workbench.tui.environment import Surroundings
from workbench.tui.glyphs import GLYPHS
from workbench.tui.painting import PaintedApp
from workbench.tui.palette import ActionCommands
from workbench.tui.questions import Questions
from workbench.tui.runner import OpenSession, Runner
from workbench.tui.screens.help import HelpScreen
from workbench.tui.screens.main import MainScreen
from workbench.tui.screens.themes import ThemesScreen
from workbench.tui.starting import Cases, Starter
from workbench.tui.state.runs import CaseKey, RunBook, RunRecord
from workbench.tui.state.spans import Span
from workbench.tui.theming import Palette, load_themes, textual_theme
from workbench.tui.widgets.dialogs import Dialog
from workbench.tui.widgets.line_view import LineView
from workbench.tui.workspace import Workspace, lost, open_workspace, read_again, recordings_folder

_log = logging.getLogger(__name__)

DARK_THEME, PLAIN_THEME = "graphite", "sixteen"
FIRST_PAINT_S = 0.25
"""Suites that are read in less than this are on the very first picture."""

SIGNAL_CODE = 128
"""What the shell adds to a signal's number for the exit code."""


class Workbench(PaintedApp):
    """The app on some paths."""

    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionCommands}
    ENABLE_COMMAND_PALETTE = True
    CSS = "CommandPalette { background: $background 60%; } CommandPalette SearchIcon { display: none; }"

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        open_session: OpenSession,
        program: Program,
        surroundings: Surroundings,
        models: Sequence[str] = (),
        trust: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.surroundings = surroundings
        self.program = program
        self._themes = load_themes(bundled("themes"))
        first = PLAIN_THEME if surroundings.few_colours or surroundings.no_colour else DARK_THEME
        self.palette = Palette(self._themes[first], no_colour=surroundings.no_colour)
        super().__init__(driver_class=_driver_class(), ansi_color=True if surroundings.no_colour else None)
        for name in tuple(self.available_themes):
            self.unregister_theme(name)
        for theme in self._themes.values():
            self.register_theme(textual_theme(theme))
        self.theme = first
        self._paths = tuple(paths)
        self._starting = ExitStack()
        self.is_starting = True
        """Whether nothing has been painted yet."""
        self._leaving = False
        self._broken = False
        self._asked_to_quit = False
        self._saving = asyncio.Lock()
        book = RunBook(clock)
        self.main = MainScreen(book, Commands(self), models=tuple(models), editor=surroundings.editor)
        self.runner = Runner(self, book, open_session, self._delivered, surroundings.paint_interval_s)
        self._questions = Questions(self)
        self._starter = Starter(self, trust_all=trust)

    def get_default_screen(self) -> Screen[None]:
        return self.main

    # The beginning

    def on_load(self) -> None:
        self._starting.enter_context(self.batch_update())

    def on_mount(self) -> None:
        if sys.platform != "win32" and not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                loop.add_signal_handler(number, self._leave_for, number)
        self.theme_changed_signal.subscribe(self, self._recolour)
        self.run_worker(self._open(), group="open")
        self.set_timer(FIRST_PAINT_S, self._paint)

    async def _open(self) -> None:
        workspace = await asyncio.to_thread(open_workspace, self._paths, self.program.models)
        # By way of the screen's own messages, so that it is mounted by then, however quickly the suites were read.
        self.main.call_later(self._opened, workspace)

    def _opened(self, workspace: Workspace) -> None:
        self.main.open(workspace)
        self.call_after_refresh(self._paint)
        if workspace.samples:
            self.main.announce("No suites in this folder: these are the samples. r runs the case")

    def _paint(self) -> None:
        self._starting.close()
        self.is_starting = False
        self.main.check_idle()

    def read_again(self, failure: str | None = None) -> None:
        """Read all suites again, off the loop, and say so; a failure before that is said instead."""
        self.run_worker(self._read_again(failure), group="open", exclusive=True)

    async def _read_again(self, failure: str | None) -> None:
        gone = await asyncio.to_thread(lost, self.main.workspace)
        self._take(await asyncio.to_thread(read_again, self.main.workspace, self.program.models))
        broken = sum(file.suite is None and file.path not in gone for file in self.main.workspace.files)
        if failure is not None:
            self.main.announce(failure, "error", GLYPHS.error)
        elif gone:
            are_gone = f"{gone[0].name} is gone" if len(gone) == 1 else f"{len(gone)} suites are gone"
            self.main.announce(are_gone + (f"; {broken} cannot run" if broken else ""), "warned", GLYPHS.warned)
        elif broken:
            self.main.announce(f"Read again; {broken} cannot run", "error", GLYPHS.error)
        else:
            self.main.announce("Read again from disk", "passed", GLYPHS.passed)

    def _take(self, workspace: Workspace) -> None:
        self.main.open(workspace)

    # Running

    def run_cases(self, cases: Cases) -> None:
        """Run cases, after asking for trust where that is needed."""
        self.run_worker(self._start(cases), group="start")

    async def _start(self, cases: Cases) -> None:
        with self._questions.put_off():
            await self._starter.run(cases)

    def _delivered(self, cases: set[CaseKey], batches: bool) -> None:
        self.main.delivered(cases, batches)
        self._questions.look()

    @on(MainScreen.Free)
    def _main_is_free(self) -> None:
        self._questions.look()

    def action_stop_all(self) -> None:
        """Stop every run, and ask nothing more about any."""
        self.runner.stop_all()
        self._questions.withdraw()
        self.main.announce("Stopping everything; what is done stays", "text", GLYPHS.stopped)

    def save_run(self) -> None:
        """Save the run that is shown as a recording."""
        if (run := self.main.run_shown) is not None:
            self.run_worker(self._save(run), group="save")

    async def _save(self, run: RunRecord) -> None:
        async with self._saving:
            if run.saved_in is not None and await asyncio.to_thread(run.saved_in.is_file):
                self.main.announce(f"Saved already in {run.saved_in}", "text", GLYPHS.passed)
            else:
                await self._save_new(run)

    async def _save_new(self, run: RunRecord) -> None:
        if run.result is None:
            return
        folder = recordings_folder(run.path, of_samples=self._starter.is_bundled(run.path))
        secrets = self.program.secrets
        try:
            file = await asyncio.to_thread(
                save_recording,
                folder,
                run.planned,
                run.events,
                run.result,
                started_at=run.started_at,
                secrets=secrets,
            )
        except RecordingError as error:
            self.main.announce(f"Nothing was saved: {error}", "error", GLYPHS.error)
        else:
            run.saved_in = file
            self.main.announce(f"Saved in {file}", "passed", GLYPHS.passed)

    # Themes

    def choose_theme(self) -> None:
        """Offer the themes, each shown as the cursor stands on it."""

        def keep(name: str | None) -> None:
            if name is not None:
                self.theme = name

        self.push_screen(ThemesScreen(tuple(self._themes.values()), self.theme, self._preview), keep)

    def _preview(self, name: str) -> None:
        self.theme = name

    def _recolour(self, _: object) -> None:
        self.palette = Palette(self._themes[self.theme], no_colour=self.surroundings.no_colour)
        for screen in self.screen_stack:
            for view in screen.query(LineView):
                view.redraw()
            screen.refresh()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """None of Textual's own: the registry names all there is."""
        return ()

    # The end

    def ask_to_quit(self) -> None:
        """Quit; with runs under way, only when asked twice."""
        running = len(self.main.book.under_way())
        if running and not self._asked_to_quit:
            self._asked_to_quit = True
            said = f"{running} still running: q again stops them and quits"
            self.main.announce(said, "warned", GLYPHS.warned)
            if isinstance(self.screen, Dialog):  # it may cover the row where that stands
                self.screen.say_keys((Span(f" {GLYPHS.warned} {said}", "warned"),))
            return
        self._leave(0)

    async def action_quit(self) -> None:
        self.ask_to_quit()

    def action_command_palette(self) -> None:
        """All commands. None of them is about a dialog; the help offers them and gives way."""
        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        if self.screen is self.main:
            super().action_command_palette()

    def action_help_quit(self) -> None:
        self.main.announce("q quits, x stops the case, ? shows all keys")

    def action_terminal_gone(self) -> None:
        """The terminal closed without a signal."""
        self._leave(SIGNAL_CODE + signal.SIGHUP)

    def _leave_for(self, number: signal.Signals) -> None:
        _log.info("leaving on %s", number.name)
        self._leave(SIGNAL_CODE + number)

    def _leave(self, code: int) -> None:
        if not self._leaving:
            self._leaving = True
            self.run_worker(self._close_and_exit(code), group="leave")

    async def _close_and_exit(self, code: int) -> None:
        if self.main.book.under_way():
            self.main.announce("Stopping runs and servers …")
        await asyncio.to_thread(self.runner.close)
        self.exit(code, return_code=code)

    def _fatal_error(self) -> None:
        error = sys.exc_info()[1]
        _log.critical("the app broke", exc_info=True)
        if self._broken:
            return
        self._broken = True
        name = type(error).__name__
        log = self.program.folders.log / LOG_NAME
        why = one_line(self.program.secrets.redact(str(error)))[:200]
        self.panic(Text(f"workbench broke: {name}: {why} (details in {log})"))


def _driver_class() -> type[Driver] | None:
    return TolerantDriver if os.name == "posix" else None
