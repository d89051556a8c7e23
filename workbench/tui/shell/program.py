"""Themes, pictures, the log, help, palette, and the ways out."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.config.logs import LOG_NAME
from workbench.reports.values import counted
from workbench.tui.kit.actions import PANES
from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.help import HelpScreen
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Role
from workbench.tui.shell.registry import help_sections
from workbench.tui.shell.situation import situation_of
from workbench.tui.terminal.screenshot import save_picture, svg_of, text_of
from workbench.tui.trajectory.copied import copied_text
from workbench.tui.trajectory.view import RunList

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class ProgramCommands:
    """The methods of `actions.program`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._warned_of_clocks = False
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "picture": lambda screen: self._app.call_after_refresh(self._save_picture),
            "log": self._show_log,
            "suspend": self._suspend,
            "theme": lambda screen: self._app.looks.choose(self._app),
            "help": self._help,
            "palette": lambda screen: self._app.action_command_palette(),
            "quit": lambda screen: self._app.ask_to_quit(),
        }

    def _help(self, screen: MainScreen) -> None:
        now = situation_of(screen)
        self._app.push_screen(HelpScreen(help_sections(now), now))

    def _save_picture(self) -> None:
        app = self._app
        redact = app.program.secrets.redact
        folders = (Path(), app.program.folders.state / "pictures")
        try:
            drawing, lines = save_picture(folders, redact(svg_of(app)), redact(text_of(app)))
        except OSError as error:
            self._say(f"No picture was saved: {error}", "error", GLYPHS.error)
        else:
            self._say(f"Saved in {drawing.resolve()}, and as text in {lines.name}", "passed", GLYPHS.passed)

    def _show_log(self, screen: MainScreen) -> None:
        log = self._app.program.folders.log / LOG_NAME
        self._say(f"The log is {log}" if log.exists() else f"Nothing was logged yet; it will be in {log}")

    def _suspend(self, screen: MainScreen) -> None:
        """As a terminal does at ctrl+z: all processes of the job stop, whatever started this one among them."""
        if os.name != "posix" or self._app.is_headless or os.getsid(0) == os.getpid():
            self._say("There is no shell here that could bring it back", "warned", GLYPHS.warned)
            return
        running = len(self._app.main.book.under_way())
        if running and not self._warned_of_clocks:
            self._warned_of_clocks = True
            said = f"{counted(running, 'run')} under way, whose time limits go on meanwhile: choose Suspend again"
            self._say(said, "warned", GLYPHS.warned)
            return
        self._warned_of_clocks = False
        os.kill(0, signal.SIGTSTP)

    def _say(self, text: str, role: Role = "text", sign: str = "") -> None:
        """Say something where it is seen: these actions can be taken on the screens beside the main one, too."""
        screen: Any = self._app.screen
        (screen if hasattr(screen, "NAME") else self._app.main).announce(text, role, sign)


class ViewingCommands:
    """The methods of `actions.viewing`."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "copy": self._copy,
            "pane.suites": lambda screen: screen.go_to("suites"),
            "pane.case": lambda screen: screen.go_to("case"),
            "pane.run": lambda screen: screen.go_to("run"),
            "pane.next": lambda screen: self._next_pane(screen, 1),
            "pane.previous": lambda screen: self._next_pane(screen, -1),
            "zoom": self._zoom,
            "back": self._back,
        }

    def _copy(self, screen: MainScreen) -> None:
        text, what = self._text_to_copy(screen)
        copy_text(self._app, text, what, screen.announce)

    def _text_to_copy(self, screen: MainScreen) -> tuple[str, str]:
        if screen.pane == "run":
            item = screen.query_one("#run", RunList).item
            return copied_text(item) if item is not None else ("", "")
        if screen.pane == "case":
            return screen.case_pane.text_to_copy()
        row = screen.suites.selected
        if row is None:
            return "", ""
        if row.problem is not None:
            return str(row.problem), "the problem"
        return (row.case.id, "the case's id") if row.case is not None else (str(row.key.path), "the path")

    def _next_pane(self, screen: MainScreen, step: int) -> None:
        if screen.filter_box.typing:
            screen.filter_box.end(keep=True)
        screen.go_to(PANES[(PANES.index(screen.pane) + step) % len(PANES)])

    def _zoom(self, screen: MainScreen) -> None:
        screen.zoomed = not screen.zoomed
        screen.place_panes()
        screen.refresh_bars()

    def _back(self, screen: MainScreen) -> None:
        if screen.filter_box.typing or (screen.suites.filter and screen.pane == "suites"):
            screen.filter_box.end(keep=False)
        elif screen.pane == "run" and screen.run_pane.searching:
            screen.run_pane.end_search()
        elif screen.zoomed:
            self._zoom(screen)
        else:
            screen.go_to("suites")
