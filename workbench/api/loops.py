"""Run coroutines to their end, even inside a running event loop, for example in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from workbench.engine.engine_thread import EngineThread

_Result = TypeVar("_Result")

END_TIMEOUT_S = 20.0
"""The longest wait for an interrupted evaluation to stop its runs and close its servers, in seconds."""


def run_blocking(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end and return its result. A running event loop is blocked meanwhile."""
    if not _in_event_loop():
        return asyncio.run(work)
    # `asyncio.run` refuses to run inside a loop, so the coroutine gets a thread with its own loop.
    thread = EngineThread()
    try:
        return thread.submit(work).result()
    finally:
        thread.close(END_TIMEOUT_S)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
