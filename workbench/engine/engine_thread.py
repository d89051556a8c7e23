"""The engine's thread. It has its own event loop, so that the engine and the screen never wait for each other."""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from workbench.standard_streams import open_closed_descriptors

_Result = TypeVar("_Result")


class _IdleSelector(selectors.DefaultSelector):
    """The selector of an event loop. Sets `idle` while the loop waits for input or for a timer."""

    def __init__(self, idle: threading.Event) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:  # the loop has more to do
            return super().select(timeout)
        self._idle.set()
        try:
            return super().select(timeout)
        finally:
            self._idle.clear()


class EngineThread:
    """A thread that runs the coroutines that other threads submit.

    The thread starts with the object and ends with `close`."""

    def __init__(self, name: str = "engine") -> None:
        # If a standard stream is closed, a socket of the loop would get its file descriptor, and the program would
        # print into the socket.
        open_closed_descriptors()
        self._idle = threading.Event()
        self._idle.set()
        self._loop = _new_loop(self._idle)
        self._executor = ThreadPoolExecutor(thread_name_prefix=name)
        self._loop.set_default_executor(self._executor)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._idle.set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def submit(self, coroutine: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Run a coroutine on the engine's loop, and return its future.

        Every thread except the engine's may wait for the future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until the engine is idle, for at most `timeout_s` seconds. Return whether the engine is idle.

        Threads that compute much call this method between short steps, because Python runs one thread at a time. The
        engine then reads the next answer at once, and requests follow without a delay."""
        return self._idle.wait(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Cancel the running tasks, and end the loop and the thread.

        This takes at most about twice `timeout_s`."""
        if not self.alive:
            return
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._finish(timeout_s)))
        self._thread.join(timeout_s + 1)
        # `shutdown` waits for every busy thread of the executor, which may take long. So another thread calls it.
        ending = threading.Thread(target=self._executor.shutdown, name="end of the engine", daemon=True)
        ending.start()
        ending.join(timeout_s)
        if not self.alive:
            self._loop.close()

    async def _finish(self, timeout_s: float) -> None:
        tasks = []
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                tasks.append(task)
        # Cancel tasks only once. A second cancellation would interrupt an MCP server's shutdown and leak its process.
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_s)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()


def _new_loop(idle: threading.Event) -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        # On Windows, only the proactor event loop can start processes. It has no selector that could clear `idle`, so
        # the engine always counts as idle.
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_IdleSelector(idle))
