"""The signals that end a program, followed past an event loop that does not come to them."""

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
"""So long nothing may happen in the app before an event loop that does not take a signal hangs."""

LONGEST_S = 30.0
"""So long a signal waits at most behind what the app has to do."""


class SignalWatch:
    """Passes signals to the event loop of this thread, and to `past_loop`, on a thread of its own, those that the loop
    does not take: it hangs."""

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
        """How much the app has done so far: it may be busy, and not hang."""
        self._taken = Event()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, lambda number, _: None)  # Python writes its number into the pipe
        Thread(target=self._watch, name="signals", daemon=True).start()

    def close(self) -> None:
        """Leave signals to what they do by default."""
        signal.set_wakeup_fd(-1)
        for number in ENDING:
            signal.signal(number, signal.SIG_DFL)
        os.close(self._writing)

    def _watch(self) -> None:
        while numbers := os.read(self._reading, 64):
            for number in set(numbers).intersection(ENDING):
                self._pass_on(signal.Signals(number))
        os.close(self._reading)

    def _pass_on(self, number: signal.Signals) -> None:
        self._taken.clear()
        with suppress(RuntimeError):  # the loop is closed: the program ends already, and has as long to do so
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
