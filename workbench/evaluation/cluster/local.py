"""Workers of this machine, processes that are started for one batch: each is started again, however it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

_logger = logging.getLogger(__name__)

START_TIMEOUT_S = 60.0
"""How long a worker may take to start."""
START_ATTEMPTS = 3
"""How often is tried to start a worker for the first time. One that was there is started again without end."""
AGAIN_S = 1.0
LOOK_S = 0.5
DEAD_LOOKS = 60
"""After so many looks at a dead process, whoever should have started another one is not waited for any more."""
END_TIMEOUT_S = 1.5


class LocalWorkers:
    """So many workers of the scheduler at an address. dask's nannies start the next process when one dies, but give up
    where that fails: then there is another nanny. Use it on one event loop, which signals that are not for the workers
    do not reach."""

    def __init__(self, scheduler: str, workers: int, config: Mapping[str, object], **options: Any) -> None:
        self._scheduler = scheduler
        self._config = config
        self._options = options
        self._workers = workers
        self._keeping: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> LocalWorkers:
        """Start all. Raises RuntimeError where one cannot be started."""
        first = [asyncio.get_running_loop().create_future() for _ in range(self._workers)]
        self._keeping = [asyncio.create_task(self._keep(place, started)) for place, started in enumerate(first)]
        try:
            await asyncio.gather(*first)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)

    async def _keep(self, place: int, first: asyncio.Future[None]) -> None:
        """Have a worker there, from now on. `first` comes to whether one could be started."""
        from distributed.core import Status

        for attempt in count(1):
            nanny = self._nanny(place)
            try:
                async with asyncio.timeout(START_TIMEOUT_S):
                    await nanny
                if not first.done():
                    first.set_result(None)
                dead = 0
                while nanny.status == Status.running and dead < DEAD_LOOKS:
                    await asyncio.sleep(LOOK_S)
                    dead = 0 if nanny.is_alive() else dead + 1
                _logger.warning("worker %d of this machine: nobody watches it any more; another one is started", place)
            except Exception as error:  # whatever happens while a process starts
                _logger.warning("worker %d of this machine could not be started", place, exc_info=True)
                if not first.done() and attempt == START_ATTEMPTS:
                    first.set_exception(RuntimeError(f"a worker did not start, tried {attempt} times: {_why(error)}"))
                    return
            finally:
                await _ended(nanny)
            await asyncio.sleep(AGAIN_S)

    def _nanny(self, place: int) -> Any:
        import dask
        from distributed import Nanny

        with dask.config.set(self._config):
            return Nanny(self._scheduler, name=place, nthreads=1, memory_limit=0, **self._options)


def _why(error: Exception) -> str:
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return f"it was not there within {START_TIMEOUT_S:g} s"
    return f"{type(error).__name__}: {error}"


async def _ended(nanny: Any) -> None:
    """End a worker with what watches it, also in the middle of a start."""
    process = nanny.process
    try:
        await nanny.close(timeout=END_TIMEOUT_S)
    except Exception:  # dask does not expect to be interrupted while a process starts
        _logger.info("ending a worker of this machine", exc_info=True)
    finally:
        if process is not None and (pid := process.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
