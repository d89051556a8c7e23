"""Waits until the app under test has nothing left to do.

Textual's pilot sleeps 20 ms or more after each key, and checks whether the process used the CPU meanwhile. This module
asks the event loop instead: no callback is ready, no timer is due soon, and no thread works on something that the app
awaits. Threads that a test holds at a `Gate`, and apps that have ended, do not count."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar, cast

import textual.app
import textual.pilot
from textual._context import active_app

from tests.tui.frames import draw_what_is_seen

SOON_S = 0.025
"""A timer within this time belongs to the operation in progress, such as a frame or the end of a key sequence."""
THREAD_POLL_S = 0.001
MIN_ROUNDS = 500
"""The minimum number of loop iterations to wait. On a busy machine, a second has few iterations."""
CALM_ROUNDS = 3
"""The number of consecutive idle iterations, because messages pass from queue to queue."""

AWAITED_THREADS = frozenset(("worked out", "python of a suite", "schema"))


class Gate:
    """A place at which threads stop until the test opens it."""

    _threads: ClassVar[dict[int | None, Gate]] = {}
    """The gate at which each thread waits."""
    _lock: ClassVar = threading.Lock()

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()

    def wait(self) -> None:
        """Stop this thread until the gate is open. Raises AssertionError after half a minute."""
        with self._lock:
            if not self._opened.is_set():
                self._threads[threading.get_ident()] = self
        self._reached.set()
        assert self._opened.wait(30)

    def is_reached(self) -> bool:
        """Whether a thread has reached the gate."""
        return self._reached.is_set()

    def open(self) -> None:
        """Release the threads at the gate, and let later threads pass."""
        with self._lock:
            for thread in [thread for thread, gate in self._threads.items() if gate is self]:
                del self._threads[thread]
            self._opened.set()

    @classmethod
    def holds(cls, thread: threading.Thread) -> bool:
        """Return whether a thread waits at a closed gate."""
        return thread.ident in cls._threads


async def wait_until_calm(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Return when the loop is idle, at the latest after both `max_sleep` seconds and `MIN_ROUNDS` iterations.

    `min_sleep` exists because Textual passes it."""
    loop = cast("Any", asyncio.get_running_loop())
    end = loop.time() + max_sleep
    calm = rounds = 0
    while calm < CALM_ROUNDS and ((now := loop.time()) < end or rounds < MIN_ROUNDS):
        rounds += 1
        await asyncio.sleep(0)
        if loop._ready:
            calm = 0
        elif _app_ended():
            # Its last screen keeps requesting frames that are never drawn.
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
    """Return the time of the loop's next timer that was not cancelled."""
    return min((handle._when for handle in loop._scheduled if not handle._cancelled), default=None)


def _app_ended() -> bool:
    """Return whether the app under test is ending."""
    app = active_app.get(None)
    return app is not None and app._exit


def _thread_works(loop: Any) -> bool:
    """Return whether a thread works on something that a task of the loop awaits."""
    pool = loop._default_executor
    if pool is not None:
        held = sum(map(Gate.holds, pool._threads))
        if pool._work_queue.qsize() or pool._idle_semaphore._value < len(pool._threads) - held:
            return True
    return any(thread.name in AWAITED_THREADS and not Gate.holds(thread) for thread in threading.enumerate())


async def _is_calm_anyway(pilot: textual.pilot.Pilot[Any]) -> bool:
    """Replace the pilot's question to every widget whether it is idle, which took half of the time of a key. Its
    callers wait until the loop is calm as well."""
    return True


def settle_by_the_loop() -> None:
    """Make Textual's pilot and app wait this way."""
    for module in (textual.pilot, textual.app):
        vars(module)["wait_for_idle"] = wait_until_calm
    vars_of_pilot: Any = textual.pilot.Pilot
    vars_of_pilot._wait_for_screen = _is_calm_anyway
