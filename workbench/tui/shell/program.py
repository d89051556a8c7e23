"""The actions of the program, and of the panes: themes, the log, help, suspending, quitting; focus, sizes, copying."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.logs import LOG_NAME
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.tui.kit.actions import PANE_TITLES, PANES, MainActions, MainSituation, action

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


def _copy(now: MainSituation) -> str | None:
    return None if now.has_text else "there is nothing to copy here"


def _border(now: MainSituation) -> str | None:
    return None if now.has_borders else "only one pane is shown"


def _moved_border(now: MainSituation) -> str | None:
    return None if now.moved_borders else "the panes that are shown have their first widths"


class ViewActions(MainActions):
    """Moves between the panes, sizes them, and copies from them."""

    GROUP = "Panes"

    @action("y", "Copy what the cursor is on", name="copy", label="copy", needs=_copy, words="yank clipboard")
    def copy(self) -> None:
        """Copy what the cursor is on."""
        text, what = self._text_to_copy()
        self.app.copy(text, what, self.app.main.announce)

    def _text_to_copy(self) -> tuple[str, str]:
        main = self.app.main
        if main.pane == "run":
            from workbench.show.views.run_text import copied_text

            item = main.run_pane.run_list.item
            return copied_text(item) if item is not None else ("", "")
        if main.pane == "case":
            return main.case_pane.text_to_copy()
        row = main.selection.row
        if row is None:
            return "", ""
        if row.problem is not None:
            return str(row.problem), "the problem"
        return (row.case.id, "the case's id") if row.case is not None else (str(row.key.path), "the path")

    @action("1", "Go to the suites", name="pane.suites")
    def go_to_suites(self) -> None:
        """Go to the suites."""
        self.app.main.go_to("suites")

    @action("2", "Go to the case", name="pane.case")
    def go_to_case(self) -> None:
        """Go to the case."""
        self.app.main.go_to("case")

    @action("3", "Go to the run", name="pane.run")
    def go_to_run(self) -> None:
        """Go to the run."""
        self.app.main.go_to("run")

    @action("tab", "Next pane", name="pane.next", words="switch focus")
    def next_pane(self) -> None:
        """Go to the next pane."""
        self._go(1)

    @action("shift+tab", "Previous pane", name="pane.previous", words="switch focus")
    def previous_pane(self) -> None:
        """Go to the previous pane."""
        self._go(-1)

    def _go(self, step: int) -> None:
        main = self.app.main
        if main.filter_box.typing:
            main.filter_box.end(keep=True)
        main.go_to(PANES[(PANES.index(main.pane) + step) % len(PANES)])

    @action("z", "Zoom the pane, or end the zoom", name="zoom", label="zoom", words="maximize fullscreen")
    def zoom(self) -> None:
        """Give the pane the whole screen, or end that."""
        main = self.app.main
        main.zoomed = not main.zoomed
        main.place_panes()
        main.refresh_bars()

    @action("<", "Make the pane narrower", name="pane.narrower", needs=_border, words="resize smaller")
    def narrower(self) -> None:
        """Make the pane narrower."""
        self._widen(-1)

    @action(">", "Make the pane wider", name="pane.wider", needs=_border, words="resize bigger")
    def wider(self) -> None:
        """Make the pane wider."""
        self._widen(1)

    def _widen(self, sign: int) -> None:
        if not self.app.main.widen(sign):
            pane, way = PANE_TITLES[self.app.main.pane], "wider" if sign > 0 else "narrower"
            self.app.announce(f"{pane} cannot be {way}: each pane keeps a least width")

    @action(
        "",
        "Give the panes their first widths again",
        name="pane.widths",
        needs=_moved_border,
        words="resize reset layout",
    )
    def reset_widths(self) -> None:
        """Give the panes their first widths."""
        self.app.main.reset_borders()

    @action("esc", "Stop a search for suites, or leave the filter, the zoom or the pane", name="back", listed=False)
    def back(self) -> None:
        """Stop a search for suites, or leave the filter, the search, the zoom or the pane."""
        main = self.app.main
        if self.app.services.searches.stop():
            return
        if main.filter_box.typing or (main.selection.tree.filter and main.pane == "suites"):
            main.filter_box.end(keep=False)
        elif main.pane == "run" and main.run_pane.searching:
            main.run_pane.end_search()
        elif main.zoomed:
            self.zoom()
        else:
            main.go_to("suites")


class ProgramActions(MainActions):
    """Performs the actions of the program itself."""

    GROUP = "Program"

    def __init__(self, app: Workbench) -> None:
        super().__init__(app)
        self._warned_of_clocks = False

    @action("", "Change the theme", name="theme", words="colour color dark light settings config appearance")
    def choose_theme(self) -> None:
        """Ask for a theme."""
        self.app.appearance.choose(self.app)

    @action("", "Save a picture of the screen", name="picture", changes=True, words="screenshot svg export")
    def picture(self) -> None:
        """Save what the screen shows, once no dialog covers it."""
        self.app.call_after_refresh(self._save_picture)

    def _save_picture(self) -> None:
        from workbench.tui.terminal.screenshot import save_picture, svg_of, text_of

        app, secrets = self.app, self.app.program.secrets
        folders = (Path(), app.program.folders.state / "pictures")
        try:
            drawing, lines = save_picture(folders, secrets.redact(svg_of(app)), secrets.redact(text_of(app)))
        except OSError as error:
            app.announce(f"No picture was saved: {error}", "error", GLYPHS.error)
        else:
            app.announce(f"Saved in {drawing.resolve()}, and as text in {lines.name}", "passed", GLYPHS.passed)

    @action("ctrl+l", "Draw the screen anew", name="redraw", where="anywhere", listed=False)
    def redraw(self) -> None:
        """Draw everything anew."""
        self.app.action_draw_anew()

    @action("", "Show where the log is", name="log", words="debug trace")
    def show_log(self) -> None:
        """Announce where the log is."""
        log = self.app.program.folders.log / LOG_NAME
        self.app.announce(f"The log is {log}" if log.exists() else f"Nothing was logged yet; it will be in {log}")

    @action("", "Suspend; fg in the shell resumes", name="suspend", changes=True, words="shell background")
    def suspend(self) -> None:
        """Suspend like a terminal on Ctrl+Z: all processes of the job stop, including the parent that started this
        one."""
        app = self.app
        if app.is_web:
            app.announce("A browser has no shell to resume from: q quits", "warned", GLYPHS.warned)
            return
        if os.name != "posix" or app.is_headless or os.getsid(0) == os.getpid():
            app.announce("There is no shell here to resume from", "warned", GLYPHS.warned)
            return
        running = len(app.main.book.under_way())
        if running and not self._warned_of_clocks:
            self._warned_of_clocks = True
            text = f"{counted(running, 'run')} under way, whose time limits keep counting: choose Suspend again"
            app.announce(text, "warned", GLYPHS.warned)
            return
        self._warned_of_clocks = False
        os.kill(0, signal.SIGTSTP)

    @action("?", "Keys and help", name="help", label="keys", words="keyboard shortcuts bindings manual docs ?")
    def help(self) -> None:
        """Show the keys of the main screen."""
        self.app.show_help()

    @action("ctrl+p :", "All commands", name="palette", where="anywhere", listed=False)
    def palette(self) -> None:
        """Open the palette."""
        self.app.action_command_palette()

    @action("q", "Quit", name="quit", label="quit", words="exit close leave bye :q")
    def quit(self) -> None:
        """Quit, which may ask something."""
        self.app.quit()
