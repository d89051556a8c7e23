"""When the app under test has nothing left to do.

Textual's pilot sleeps 20 ms or more after each key and asks whether the process used the processor meanwhile. Here the
event loop is asked: nothing is ready, no timer is about to fire, and no thread works on something the app waits for.
A thread that a test itself holds back, at a `Gate`, is not waited for; nor is anything in an app that has ended.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar, cast

import textual.app
import textual.pilot
from textual._context import active_app

from tests.tui.frames import draw_what_is_seen

SOON_S = 0.025
"""A timer that fires within this time belongs to what is under way: a frame, a key that is looked at later."""
THREAD_POLL_S = 0.001
MIN_ROUNDS = 500
"""So many rounds of the loop are waited for at least: on a busy machine, a second is over after few."""
CALM_ROUNDS = 3
"""How many rounds of the loop in a row must find nothing: messages go from queue to queue."""

AWAITED_THREADS = frozenset(("worked out", "python of a suite", "schema"))


class Gate:
    """A place where threads stop until the test opens it."""

    _threads: ClassVar[dict[int | None, Gate]] = {}
    """At which gate a thread stands."""
    _lock: ClassVar = threading.Lock()

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def wait(self) -> None:
        """Stop this thread until the gate is open. Raises AssertionError when it is not opened in half a minute."""
        with self._lock:
            if not self._opened.is_set():
                self._threads[threading.get_ident()] = self
        self._reached.set()
        assert self._opened.wait(30)

    def is_reached(self) -> bool:
        """Whether a thread has come here."""
        return self._reached.is_set()

    def open(self) -> None:
        """Let the threads go on that stand here and those that come later."""
        with self._lock:
            for thread in [thread for thread, gate in self._threads.items() if gate is self]:
                del self._threads[thread]
            self._opened.set()

    @classmethod
    def holds(cls, thread: threading.Thread) -> bool:
        """Whether a thread stands at a closed gate."""
        return thread.ident in cls._threads


async def wait_until_calm(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Return when the loop has nothing to do, at the latest after `max_sleep` seconds and `MIN_ROUNDS`.

    `min_sleep` is there because Textual passes it.
    """
    loop = cast("Any", asyncio.get_running_loop())
    end = loop.time() + max_sleep
    calm = rounds = 0
    while calm < CALM_ROUNDS and ((now := loop.time()) < end or rounds < MIN_ROUNDS):
        rounds += 1
        await asyncio.sleep(0)
        if loop._ready:
            calm = 0
        elif _app_ended():
            # Its last screen goes on asking for frames that are never drawn.
            await asyncio.sleep(THREAD_POLL_S)
            return
        elif (due := _next_timer(loop)) is not None and due - now < SOON_S:
            await asyncio.sleep(max(0.0, due - now))
            calm = 0
        elif _thread_works(loop):
            await asyncio.sleep(THREAD_POLL_S)
            calm = 0
        elif calm == CALM_ROUNDS - 1 and draw_what_is_seen():
            calm = 0
        else:
            calm += 1


def _next_timer(loop: Any) -> float | None:
    """Returns the time of the next timer of the loop that was not cancelled."""
    return min((handle._when for handle in loop._scheduled if not handle._cancelled), default=None)


def _app_ended() -> bool:
    """Whether the app under test was told to exit."""
    app = active_app.get(None)
    return app is not None and app._exit


def _thread_works(loop: Any) -> bool:
    """Whether a thread works on something that a task of the loop waits for."""
    pool = loop._default_executor
    if pool is not None:
        held = sum(map(Gate.holds, pool._threads))
        if pool._work_queue.qsize() or pool._idle_semaphore._value < len(pool._threads) - held:
            return True
    return any(thread.name in AWAITED_THREADS and not Gate.holds(thread) for thread in threading.enumerate())


async def _is_calm_anyway(pilot: textual.pilot.Pilot[Any]) -> bool:
    """Stand in for the pilot's question to every widget whether it is done, which cost half of a key: who asks waits
    until the loop is calm as well."""
    return True


def settle_by_the_loop() -> None:
    """Have Textual's pilot and app wait this way."""
    for module in (textual.pilot, textual.app):
        vars(module)["wait_for_idle"] = wait_until_calm
    vars_of_pilot: Any = textual.pilot.Pilot
    vars_of_pilot._wait_for_screen = _is_calm_anyway
