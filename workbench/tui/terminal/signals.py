"""Handles the signals that end a program, even if the event loop hangs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class SignalWatch:
    """Passes signals to the event loop of this thread, and before that to `at_once` on a separate thread."""

    def __init__(self, leave: Callable[[signal.Signals], object], at_once: Callable[[signal.Signals], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = leave
        self._at_once = at_once
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
                self._at_once(signal.Signals(number))
                with suppress(RuntimeError):  # the loop is closed: the program is ending
                    self._loop.call_soon_threadsafe(self._leave, signal.Signals(number))
        os.close(self._reading)


def _wake() -> None:
    """Do nothing, so that handlers of signals run."""
