"""Runs blocking functions in daemon threads, so that they cannot keep the program from ending."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(function: Callable[[], _Result], *, name: str) -> _Result:
    """Call a function in a new thread called `name`, and return its result.

    Errors of the function are raised here. SystemExit and KeyboardInterrupt become a RuntimeError."""
    # `asyncio.to_thread` is not used, because the program would wait at its end for all threads of that pool, even
    # endless ones.
    outcome: concurrent.futures.Future[_Result] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(function())
        except Exception as error:  # noqa: BLE001
            outcome.set_exception(error)
        except BaseException as error:  # noqa: BLE001
            # In the event loop, SystemExit and KeyboardInterrupt would end the loop itself.
            outcome.set_exception(RuntimeError(f"{name} raised {type(error).__name__}: {error}"))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        return await asyncio.wrap_future(outcome)
    finally:
        # A thread with a result has ended and can be joined at once. A thread that the caller abandoned may still run.
        if outcome.done():
            thread.join()
