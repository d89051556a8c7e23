"""Work that may block, in a thread that cannot keep the program from ending."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(function: Callable[[], _Result], *, name: str) -> _Result:
    """Call a function in a thread of this name and return its result.

    Raises the function's errors; one that would end the program (SystemExit, KeyboardInterrupt) becomes a
    RuntimeError."""
    outcome: concurrent.futures.Future[_Result] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(function())
        except Exception as error:  # noqa: BLE001 (raised again where it is awaited)
            outcome.set_exception(error)
        except BaseException as error:  # noqa: BLE001 (it would end the loop that waits)
            outcome.set_exception(RuntimeError(f"{name} raised {type(error).__name__}: {error}"))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        return await asyncio.wrap_future(outcome)
    finally:
        if outcome.done():
            thread.join()  # it has nothing left to do
