"""The way out: asked for by a person, by a signal, by a terminal that is gone, or by an error of the app's own."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from threading import Thread
from typing import TYPE_CHECKING

from rich.text import Text

from workbench.authoring.open_suite import Untaken
from workbench.config.logs import LOG_NAME
from workbench.reports.visible import one_line
from workbench.suite.numerals import counted
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.spans import Span
from workbench.tui.shell.bars import NOTICE_S
from workbench.tui.terminal.driver import TolerantDriver
from workbench.tui.terminal.signals import SignalWatch

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


_log = logging.getLogger(__name__)

SIGNAL_CODE = 128
"""What the shell adds to a signal's number for the exit code."""

CLOSING_S = 10.0
"""So long runs and servers have to stop where the app hangs."""


class Leaving:
    """Leaves the app once, after everything that is under way was stopped."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._leaving = False
        self._signals: SignalWatch | None = None
        self.has_broken = False
        """Whether the app ends because of an error of its own."""
        self._asked_at_s: float | None = None
        """When quitting with runs under way was asked about, by the loop's clock, if nothing was done since."""
        self._asked_without: tuple[Untaken, ...] = ()
        """What is in no document, as it was when quitting without it was asked about."""

    def follow_signals(self) -> None:
        """Leave on the signals that end a program."""
        if sys.platform != "win32" and not self._app.is_headless:
            self._signals = SignalWatch(self._leave_for, self._leave_past_loop, lambda: self._app.containment.handled)

    def closed(self) -> None:
        """The app has ended."""
        if self._signals is not None:
            self._signals.close()

    def _leave_past_loop(self, number: signal.Signals) -> None:
        """Leave although the app hangs: on the thread that watches for signals. What was typed is in the journals."""
        app = self._app
        if isinstance(app._driver, TolerantDriver):
            app._driver.give_back()
        closing = Thread(target=app.runner.close, daemon=True)
        closing.start()
        closing.join(CLOSING_S)
        log = app.program.folders.log / LOG_NAME
        os.write(2, f"workbench did not respond and was ended (details in {one_line(str(log))})\n".encode())
        os._exit(SIGNAL_CODE + number)

    def ask(self) -> None:
        """Leave; with runs under way, with something done to the history that is not over yet, or with something typed
        that a form cannot hold, only when asked twice."""
        from workbench.tui.kit.dialogs import Dialog
        from workbench.tui.saving.dialogs import UnsavedScreen

        app = self._app
        running = len(app.main.book.under_way())
        stoppable = app.begun_deeds.stoppable if app.begun_deeds is not None else None
        under_way = " and ".join(filter(None, (counted(running, "run") if running else "", stoppable)))
        without = [suite for suite in app.main.desk.suites if suite.untaken]
        untaken = tuple(one for suite in without for one in suite.untaken.values())
        said = None
        if under_way and not self._asked_just_now:
            self._asked_at_s = asyncio.get_running_loop().time()
            said = f"{under_way[:1].upper()}{under_way[1:]} not over yet: q again stops and quits"
        elif untaken and untaken != self._asked_without:
            self._asked_without = untaken  # it is in no draft either
            said = f"Ctrl+Q again quits without {without[0].untaken_said}"
        if said is not None:
            if isinstance(app.screen, Dialog):  # it may cover the bottom row
                app.screen.say_keys((Span(f" {GLYPHS.warned} {said}", "warned"),))
            else:
                app.announce(said, "warned", GLYPHS.warned)
            return
        if isinstance(app.screen, UnsavedScreen):
            return  # it asks already
        if app.main.desk.dirty:
            app.run_worker(self._leave_if_saved(), group="ask")
        else:
            self._leave(0)

    def something_else(self) -> None:
        """Something else is done: whoever wants to quit after that is asked again."""
        self._asked_at_s = None

    @property
    def _asked_just_now(self) -> bool:
        at_s = self._asked_at_s
        return at_s is not None and asyncio.get_running_loop().time() - at_s < NOTICE_S

    async def _leave_if_saved(self) -> None:
        await self._app.saver.settled()
        if await self._app.drafting.may_leave(self._app.saver.save):
            self._leave(0)

    def terminal_gone(self) -> None:
        """The terminal closed without a signal."""
        self._leave(SIGNAL_CODE + signal.SIGHUP)

    def _leave_for(self, number: signal.Signals) -> None:
        _log.info("leaving on %s", number.name)
        self._leave(SIGNAL_CODE + number)

    def _leave(self, code: int) -> None:
        if not self._leaving:
            self._leaving = True
            self._app.workers.cancel_group(self._app, "start")
            self._app.run_worker(self._close_and_exit(code), group="leave")

    async def _close_and_exit(self, code: int) -> None:
        app = self._app
        deeds = app.begun_deeds
        if deeds is not None:
            deeds.stop()
        try:
            if app.main.book.under_way():
                app.announce("Stopping runs and servers …")
            await asyncio.to_thread(app.runner.close)
            # The program does not end before its threads do; as long as the screen is there, it can say what for.
            while deeds is not None and (doing := deeds.doing) is not None:
                app.announce(f"Leaving as soon as this is over: {doing}")
                await deeds.settled()
            app.remember()
        finally:
            app.exit(code, return_code=code)

    def broke(self, error: Exception) -> None:
        """Leave because of an error of the app's own."""
        self.has_broken = True
        app = self._app
        _log.critical("the app ends for this error")
        program = app.program
        why = one_line(program.secrets.redact(str(error)))[:200]
        log = program.folders.log / LOG_NAME
        unsaved = app.main.desk.dirty
        kept = "; the next start offers what was not saved" if unsaved else ""
        app._return_code = 1
        app.panic(Text(f"workbench broke: {type(error).__name__}: {why} (details in {log}){kept}"))
        for suite in unsaved:
            app.drafting.keep(suite)
