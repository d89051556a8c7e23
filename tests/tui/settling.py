"""When the app under test has nothing left to do.

Textual's pilot sleeps 20 ms or more after each key and asks whether the process used the processor meanwhile. Here the
event loop is asked: nothing is ready, no timer is about to fire, and no thread works on something the app waits for.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import textual.app
import textual.pilot

SOON_S = 0.025
"""A timer that fires within this time belongs to what is under way: a frame, a key that is looked at later."""
THREAD_POLL_S = 0.001
CALM_ROUNDS = 3
"""How many rounds of the loop in a row must find nothing: messages go from queue to queue."""

AWAITED_THREADS = frozenset(("worked out", "python of a suite", "schema"))


async def wait_until_calm(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Return when the loop has nothing to do, at the latest after `max_sleep` seconds.

    `min_sleep` is there because Textual passes it.
    """
    loop = cast(Any, asyncio.get_running_loop())
    end = loop.time() + max_sleep
    calm = 0
    while calm < CALM_ROUNDS and (now := loop.time()) < end:
        await asyncio.sleep(0)
        if loop._ready:
            calm = 0
        elif (due := _next_timer(loop)) is not None and due - now < SOON_S:
            await asyncio.sleep(max(0.0, due - now))
            calm = 0
        elif _thread_works(loop):
            await asyncio.sleep(THREAD_POLL_S)
            calm = 0
        else:
            calm += 1


def _next_timer(loop: Any) -> float | None:
    """Returns the time of the next timer of the loop that was not cancelled."""
    return min((handle._when for handle in loop._scheduled if not handle._cancelled), default=None)


def _thread_works(loop: Any) -> bool:
    """Whether a thread works on something that a task of the loop waits for."""
    pool = loop._default_executor
    if pool is not None and (pool._work_queue.qsize() or pool._idle_semaphore._value < len(pool._threads)):
        return True
    return any(thread.name in AWAITED_THREADS for thread in threading.enumerate())


def settle_by_the_loop() -> None:
    """Have Textual's pilot and app wait this way."""
    for module in (textual.pilot, textual.app):
        vars(module)["wait_for_idle"] = wait_until_calm
