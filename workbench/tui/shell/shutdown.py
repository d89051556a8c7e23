"""The end of the app: on request, on a signal, after the loss of the terminal, or after an internal error."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from threading import enumerate as all_threads
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.authoring.form.field_text import InvalidText
from workbench.config.logs import LOG_NAME
from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.tui.kit.stage import Announce
from workbench.tui.shell.bars import NOTICE_S
from workbench.tui.shell.services import Services

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class SignalWatch:
    """Calls `at_once` for each signal that ends a program, in a separate thread, then `leave` in the event loop."""

    # A handler in the event loop would not run while the loop hangs. Python writes the number of each signal into a
    # pipe (`set_wakeup_fd`), and a thread can read the pipe at any time.

    def __init__(self, leave: Callable[[signal.Signals], object], at_once: Callable[[signal.Signals], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = leave
        self._at_once = at_once
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in ENDING_SIGNALS:
            # Without a handler, Python writes nothing into the pipe.
            signal.signal(number, lambda number, _: None)
        Thread(target=self._watch, name="signals", daemon=True).start()

    def close(self) -> None:
        """Restore the default handling of signals."""
        signal.set_wakeup_fd(-1)
        for number in ENDING_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.close(self._writing)

    def _watch(self) -> None:
        while numbers := os.read(self._reading, 64):
            # Python runs handlers in the thread of the loop, but a signal received by another thread does not wake the
            # loop. Until the next key, the terminal would stay blank after SIGCONT, and SIGWINCH would have no effect.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_wake)
            for number in set(numbers).intersection(ENDING_SIGNALS):
                self._at_once(signal.Signals(number))
                # When the program ends, the loop may already be closed.
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._leave, signal.Signals(number))
        os.close(self._reading)


def _wake() -> None:
    """Do nothing. Scheduling this call wakes the event loop, so that Python runs pending signal handlers."""


_log = logging.getLogger(__name__)

SIGNAL_CODE = 128
"""The number that shells add to a signal's number to get the exit code."""

MAX_ENDING_SECONDS = 17.0
"""The time in seconds after a signal in which the program ends. Runs, servers and the history must close in time."""

SIGNAL_TIMEOUT_S = 3.0
"""The time in seconds without progress after which an event loop counts as hanging if it has not handled a signal."""

ENDING_TIMEOUT_S = 8.0
"""The time in seconds without progress after which an ending app counts as hanging."""

HANG_REPORT_S = 2.0
"""The time in seconds to restore the terminal and to log the reason before the program is ended by force."""


class Shutdown:
    """Ends the app: closes runs, servers and the history, then exits.

    A key, a signal, the loss of the terminal or an internal error begins the shutdown, which happens once. If it hangs,
    a thread kills the process."""

    def __init__(
        self,
        app: Workbench,
        services: Services,
        *,
        announce: Announce,
        remember: Callable[[], object],
        handled: Callable[[], int],
    ) -> None:
        self._app = app
        self._services = services
        self._announce = announce
        self._remember = remember
        """Stores the current position for the next session."""
        self._handled = handled
        """Returns the number of handled messages. While the number grows, the event loop does not hang."""
        self._is_leaving = False
        self._closing: Future[None] | None = None
        """The closing of runs, servers and the history, `None` until it begins."""
        self._begins_closing = Lock()
        self._is_watched = False
        """Whether a thread will end the program by force if it hangs."""
        self._has_ended = Event()
        self._signals: SignalWatch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_urgent = False
        """Whether a signal asked to end. Waiting input is then dropped."""
        self.has_broken = False
        """Whether the app ends because of an internal error."""
        self._refused_at_s: float | None = None
        """The time of the last refusal to quit with active runs, by the loop's clock. `None` after another action."""
        self._refused_texts: tuple[InvalidText, ...] = ()
        """The invalid texts of the last refusal to quit with invalid texts."""

    def follow_signals(self) -> None:
        """Leave the app on signals that end a program."""
        if sys.platform != "win32" and not self._app.is_headless:
            self._loop = asyncio.get_running_loop()
            self._signals = SignalWatch(self._leave_for, self._prepare_end)

    def _prepare_end(self, number: signal.Signals) -> None:
        """Note that the app must end, and start the thread that ends it if it hangs.

        Called in the thread that receives signals, before the event loop handles the signal."""
        self.is_urgent = True
        self._watch_end(SIGNAL_CODE + number)

    def clean_up(self) -> None:
        """Wait until runs, servers and the history are closed, and restore the handling of signals."""
        wait((self._begin_closing(),), MAX_ENDING_SECONDS)
        # A run that starts while the app closes may have opened the runtime again.
        self._services.runner.close()
        if self._signals is not None:
            self._signals.close()
        if not self._app.return_code:
            # Results may be printed now. Printing takes a while but is not a hang.
            self._has_ended.set()

    def _begin_closing(self) -> Future[None]:
        """Begin to close runs, servers and the history in a new thread. Callable from any thread."""
        with self._begins_closing:
            if self._closing is None:
                self._closing = Future()
                # A cancelled task must not cancel the future that it awaits.
                self._closing.set_running_or_notify_cancel()
                Thread(target=self._close, args=(self._closing,), name="closing", daemon=True).start()
            return self._closing

    def _close(self, closing: Future[None]) -> None:
        try:
            self._services.runner.close()
        except Exception:  # noqa: BLE001 (the program ends all the same)
            _log.exception("not everything could be closed")
        finally:
            closing.set_result(None)

    def _watch_end(self, code: int) -> None:
        """Start the thread that ends the program with `code` if the program hangs. Callable from any thread."""
        if self._signals is not None and not self._is_watched:
            self._is_watched = True
            Thread(target=self._end_if_hanging, args=(code,), name="end", daemon=True).start()

    def _end_if_hanging(self, code: int) -> None:
        deadline_s = time.monotonic() + MAX_ENDING_SECONDS
        closing = self._begin_closing()
        # The app hangs if no message was handled for a while, everything is closed, and no operation on the history is
        # unfinished.
        while (left_s := deadline_s - time.monotonic()) > 0:
            handled = self._handled()
            patience_s = ENDING_TIMEOUT_S if self._is_leaving or self.has_broken else SIGNAL_TIMEOUT_S
            if self._has_ended.wait(min(patience_s, left_s)):
                return
            if self._handled() == handled and closing.done() and self._unfinished_operation is None:
                break
        last_words = Thread(target=self._report_hang, args=(closing.done(),), daemon=True)
        # The hanging part may hold a lock, for example of the log, so the report is written in a thread.
        last_words.start()
        last_words.join(HANG_REPORT_S)
        os._exit(code)

    def _report_hang(self, is_closed: bool) -> None:
        """Restore the terminal, and log which part hangs. Unsaved changes are safe in the journals."""
        if (driver := self._app.staged_driver) is not None:
            driver.restore_terminal()
        log = one_line(str(self._services.program.folders.log / LOG_NAME))
        # The terminal may be gone.
        with suppress(OSError):
            os.write(2, f"workbench did not respond and was ended (details in {log})\n".encode())
        if not self._is_leaving:
            why = "the app does not respond"
        elif not is_closed:
            why = "runs, servers or the history do not close"
        else:
            why = f"{self._unfinished_operation or 'the app'} does not end"
        _log.critical("ended by force: %s; at\n%s", why, _thread_stacks(self._loop))

    @property
    def _unfinished_operation(self) -> str | None:
        batch_work = self._services.begun_batch_work
        if batch_work is not None:
            return batch_work.running_operation
        return None

    def ask(self) -> None:
        """Leave the app, or announce that a second request will leave.

        The first request is refused while there are active runs, an unfinished operation on the history, or invalid
        text in a form. With unsaved changes, a dialog asks."""
        from workbench.tui.kit.dialogs import Dialog
        from workbench.tui.storage.dialogs import UnsavedScreen

        app = self._app
        under_way: list[str] = []
        if running := len(self._services.book.active_runs()):
            under_way.append(counted(running, "run"))
        batch_work = self._services.begun_batch_work
        if batch_work is not None and batch_work.stoppable_operation:
            under_way.append(batch_work.stoppable_operation)
        without = []
        for suite in self._services.open_suites.suites:
            if suite.invalid_texts:
                without.append(suite)
        invalid_texts = tuple(chain.from_iterable(suite.invalid_texts.values() for suite in without))
        text = None
        if under_way and not self._was_just_requested:
            self._refused_at_s = asyncio.get_running_loop().time()
            names = " and ".join(under_way)
            text = f"{names[:1].upper()}{names[1:]} still under way: q again stops and quits"
        elif invalid_texts and invalid_texts != self._refused_texts:
            # Drafts do not store invalid texts of a form, so quitting loses them.
            self._refused_texts = invalid_texts
            text = f"Ctrl+Q again quits without {without[0].invalid_text_message}"
        if text is not None:
            # A dialog may cover the bottom row with the notices.
            if isinstance(app.screen, Dialog):
                app.screen.show_notice(text)
            else:
                self._announce(text, "warned", GLYPHS.warned)
            return
        if isinstance(app.screen, UnsavedScreen):
            return  # this dialog already asks
        if self._services.open_suites.dirty:
            app.run_worker(self._leave_if_saved(), group="ask")
        else:
            self._leave(0)

    def withdraw_request(self) -> None:
        """Forget the request to quit, because the user did something else. Quitting may then be refused again."""
        self._refused_at_s = None

    @property
    def _was_just_requested(self) -> bool:
        at_s = self._refused_at_s
        return at_s is not None and asyncio.get_running_loop().time() - at_s < NOTICE_S

    async def _leave_if_saved(self) -> None:
        await self._services.saver.wait_until_saved()
        if await self._services.drafting.ask_before_leaving(self._services.saver.save):
            self._leave(0)

    def terminal_gone(self) -> None:
        """Leave after the terminal was closed without a signal."""
        self._watch_end(SIGNAL_CODE + signal.SIGHUP)
        self._leave(SIGNAL_CODE + signal.SIGHUP)

    def _leave_for(self, number: signal.Signals) -> None:
        _log.info("leaving on %s", number.name)
        self._leave(SIGNAL_CODE + number)

    def _leave(self, code: int) -> None:
        if not self._is_leaving:
            self._is_leaving = True
            self._app.workers.cancel_group(self._app, "start")
            self._app.run_worker(self._close_and_exit(code), group="leave")

    async def _close_and_exit(self, code: int) -> None:
        app = self._app
        batch_work = self._services.begun_batch_work
        if batch_work is not None:
            batch_work.stop()
        try:
            if self._services.book.active_runs():
                self._announce("Stopping runs and servers …")
            await asyncio.wrap_future(self._begin_closing())
            # An operation on the history is never interrupted. A notice says what the app waits for.
            while batch_work is not None and self._unfinished_operation is not None:
                self._announce(f"Quitting as soon as this is finished: {self._unfinished_operation}")
                await batch_work.wait_until_idle()
            self._watch_end(code)
            self._remember()
        finally:
            app.exit(code, return_code=code)

    def leave_after_error(self, error: Exception) -> None:
        """Leave after an internal error. The message explains how to recover unsaved changes."""
        self.has_broken = True
        self._watch_end(1)
        app = self._app
        _log.critical("the app ends for this error")
        program = self._services.program
        why = one_line(program.secrets.redact(str(error)))[:200]
        log = program.folders.log / LOG_NAME
        unsaved = self._services.open_suites.dirty
        drafts = ""
        if unsaved:
            command = shlex.join(["workbench", *(_path_to_type(suite.path) for suite in unsaved)])
            drafts = f"; '{one_line(command)}' offers your unsaved changes again"
        app._return_code = 1
        app.panic(Text(f"workbench failed: {type(error).__name__}: {why} (details in {log}){drafts}"))
        for suite in unsaved:
            self._services.drafting.keep(suite)


def _thread_stacks(loop: asyncio.AbstractEventLoop | None) -> str:
    frames = sys._current_frames()
    found = {}
    for thread in all_threads():
        if thread is not current_thread() and thread.ident in frames:
            found[thread.name] = "".join(traceback.format_stack(frames[thread.ident]))
    # Tasks may begin or end during the iteration.
    with suppress(RuntimeError):
        for task in asyncio.all_tasks(loop) if loop is not None else ():
            coroutine: Any = task.get_coro()
            while frame := getattr(coroutine, "cr_frame", None):
                found[task.get_name()] = f"{found.get(task.get_name(), '')}{''.join(traceback.format_stack(frame, 1))}"
                coroutine = coroutine.cr_await
    return "\n".join(f"{name}:\n{place}" for name, place in found.items())


def _path_to_type(path: Path) -> str:
    """Return a path as a user types it in the current folder."""
    try:
        typed = str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path.absolute())
    if typed.startswith("-"):
        # A name that begins with a dash would be read as an option.
        return f"./{typed}"
    return typed
