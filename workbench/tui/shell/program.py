"""Themes, screenshots, the log, help, palette, suspending and quitting."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from workbench.config.logs import LOG_NAME
from workbench.config.program import Program
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import PANE_TITLES, PANES
from workbench.tui.kit.help import HelpScreen
from workbench.tui.kit.painting import PaintedApp
from workbench.tui.kit.stage import Stage
from workbench.tui.shell.main_screen import MainScreen
from workbench.tui.shell.registry import help_sections, keys_elsewhere
from workbench.tui.shell.situation import situation_of
from workbench.tui.terminal.screenshot import save_picture, svg_of, text_of
from workbench.tui.trajectory.copied import copied_text


class ProgramCommands:
    """Handles the actions of the program."""

    def __init__(
        self,
        app: PaintedApp,
        stage: Stage,
        main: MainScreen,
        program: Program,
        *,
        choose_theme: Callable[[], object],
    ) -> None:
        self._app = app
        self._stage = stage
        self._main = main
        self._program = program
        self._warned_of_clocks = False
        self.methods: dict[str, Callable[[], object]] = {
            "picture": lambda: self._app.call_after_refresh(self._save_picture),
            "redraw": app.action_draw_anew,
            "log": self._show_log,
            "suspend": self._suspend,
            "theme": choose_theme,
            "help": self._help,
            "palette": app.action_command_palette,
            "quit": lambda: stage.quit(),
        }

    def _help(self) -> None:
        now = situation_of(self._main)
        here = (now.pane, now.view) if now.pane == "case" else (now.pane,)
        self._stage.show(HelpScreen(help_sections(now), now, keys_elsewhere(*here)))

    def _save_picture(self) -> None:
        app = self._app
        redact = self._program.secrets.redact
        folders = (Path(), self._program.folders.state / "pictures")
        try:
            drawing, lines = save_picture(folders, redact(svg_of(app)), redact(text_of(app)))
        except OSError as error:
            self._stage.announce(f"No picture was saved: {error}", "error", GLYPHS.error)
        else:
            self._stage.announce(f"Saved in {drawing.resolve()}, and as text in {lines.name}", "passed", GLYPHS.passed)

    def _show_log(self) -> None:
        log = self._program.folders.log / LOG_NAME
        self._stage.announce(f"The log is {log}" if log.exists() else f"Nothing was logged yet; it will be in {log}")

    def _suspend(self) -> None:
        """Suspend like a terminal on Ctrl+Z: all processes of the job stop, including the parent that started this
        one."""
        if self._app.is_web:
            self._stage.announce("A browser has no shell to resume from: q quits", "warned", GLYPHS.warned)
            return
        if os.name != "posix" or self._app.is_headless or os.getsid(0) == os.getpid():
            self._stage.announce("There is no shell here to resume from", "warned", GLYPHS.warned)
            return
        running = len(self._main.book.under_way())
        if running and not self._warned_of_clocks:
            self._warned_of_clocks = True
            text = f"{counted(running, 'run')} under way, whose time limits keep counting: choose Suspend again"
            self._stage.announce(text, "warned", GLYPHS.warned)
            return
        self._warned_of_clocks = False
        os.kill(0, signal.SIGTSTP)


class ViewingCommands:
    """Handles the actions for viewing."""

    def __init__(self, stage: Stage, main: MainScreen, stop_search: Callable[[], bool]) -> None:
        self._stage = stage
        self._main = main
        self._stop_search = stop_search
        self.methods: dict[str, Callable[[], object]] = {
            "copy": self._copy,
            "pane.suites": lambda: self._main.go_to("suites"),
            "pane.case": lambda: self._main.go_to("case"),
            "pane.run": lambda: self._main.go_to("run"),
            "pane.next": lambda: self._next_pane(1),
            "pane.previous": lambda: self._next_pane(-1),
            "pane.narrower": lambda: self._widen(-1),
            "pane.wider": lambda: self._widen(1),
            "pane.widths": self._main.reset_borders,
            "zoom": self._zoom,
            "back": self._back,
        }

    def _copy(self) -> None:
        text, what = self._text_to_copy()
        self._stage.copy(text, what, self._main.announce)

    def _text_to_copy(self) -> tuple[str, str]:
        if self._main.pane == "run":
            item = self._main.run_pane.run_list.item
            return copied_text(item) if item is not None else ("", "")
        if self._main.pane == "case":
            return self._main.case_pane.text_to_copy()
        row = self._main.selection.row
        if row is None:
            return "", ""
        if row.problem is not None:
            return str(row.problem), "the problem"
        return (row.case.id, "the case's id") if row.case is not None else (str(row.key.path), "the path")

    def _next_pane(self, step: int) -> None:
        if self._main.filter_box.typing:
            self._main.filter_box.end(keep=True)
        self._main.go_to(PANES[(PANES.index(self._main.pane) + step) % len(PANES)])

    def _widen(self, sign: int) -> None:
        if not self._main.widen(sign):
            pane, way = PANE_TITLES[self._main.pane], "wider" if sign > 0 else "narrower"
            self._stage.announce(f"{pane} cannot be {way}: each pane keeps a least width")

    def _zoom(self) -> None:
        self._main.zoomed = not self._main.zoomed
        self._main.place_panes()
        self._main.refresh_bars()

    def _back(self) -> None:
        if self._stop_search():
            return
        if self._main.filter_box.typing or (self._main.selection.tree.filter and self._main.pane == "suites"):
            self._main.filter_box.end(keep=False)
        elif self._main.pane == "run" and self._main.run_pane.searching:
            self._main.run_pane.end_search()
        elif self._main.zoomed:
            self._zoom()
        else:
            self._main.go_to("suites")
