"""Handles the signals that end a program, even if the event loop hangs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread, main_thread

_log = logging.getLogger(__name__)

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)

ANSWER_S = 3.0
"""How long the app may make no progress before an event loop that does not handle a signal counts as hanging."""

LONGEST_S = 30.0
"""How long a signal waits at most while the app is busy."""


class SignalWatch:
    """Passes signals to the event loop of this thread. Signals that the loop does not handle, because it hangs, go to
    `past_loop` on a separate thread."""

    def __init__(
        self,
        leave: Callable[[signal.Signals], None],
        past_loop: Callable[[signal.Signals], None],
        handled: Callable[[], int],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = leave
        self._past_loop = past_loop
        self._handled = handled
        """Counts what the app has processed, to tell busy from hanging."""
        self._taken = Event()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, lambda number, _: None)  # Python writes the number into the pipe
        Thread(target=self._watch, name="signals", daemon=True).start()

    def close(self) -> None:
        """Restore the default handling of signals."""
        signal.set_wakeup_fd(-1)
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        os.close(self._writing)

    def _watch(self) -> None:
        while numbers := os.read(self._reading, 64):
            # A signal that came to a thread other than the loop's does not wake the loop, whose thread handles it: the
            # terminal would stay blank after SIGCONT, and a new size unseen after SIGWINCH, until the next key.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_wake)
            for number in set(numbers).intersection(ENDING):
                self._pass_on(signal.Signals(number))
        os.close(self._reading)

    def _pass_on(self, number: signal.Signals) -> None:
        self._taken.clear()
        with suppress(RuntimeError):  # the loop is closed: the program is ending and has the same time for it
            self._loop.call_soon_threadsafe(self._take, number)
        for _ in range(int(LONGEST_S / ANSWER_S)):
            before = self._handled()
            if self._taken.wait(ANSWER_S):
                return
            if self._handled() == before:
                break
        if not self._taken.is_set():
            frame = sys._current_frames().get(main_thread().ident or 0)
            _log.critical("nothing takes %s; at\n%s", number.name, "".join(traceback.format_stack(frame)))
            self._past_loop(number)

    def _take(self, number: signal.Signals) -> None:
        self._taken.set()
        self._leave(number)


def _wake() -> None:
    """Do nothing, so that handlers of signals run."""
