"""A session: the engine's thread with the models and servers that live as long as the program, and its batches.

The command line and the app both start runs here. The listener is called on the engine's thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path

from workbench.batches.batch import Batch
from workbench.batches.events import BatchListener
from workbench.batches.plan import PlannedRun
from workbench.batches.single import Surroundings
from workbench.config.defaults import DEFAULT_CONCURRENCY
from workbench.engine.thread import EngineThread
from workbench.providers.model import Model
from workbench.providers.registry import open_model
from workbench.tools.toolbox import ServerPool

_logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 8.0


class Session:
    """Runs batches on the engine's thread until it is closed.

    `pace_ms` slows the offline model down to something an eye can follow; 0 is as fast as it goes.
    """

    def __init__(
        self,
        listener: BatchListener,
        *,
        server_logs: Path,
        environment: Mapping[str, str] | None = None,
        pace_ms: float = 0,
    ) -> None:
        self._listener = listener
        self._pace_ms = pace_ms
        self._models: dict[str, Model] = {}
        self._batches: dict[Batch, asyncio.Task[None]] = {}
        self._batch_numbers = count(1)
        self._servers = ServerPool(server_logs, os.environ if environment is None else environment)
        self._engine = EngineThread()

    def start(
        self,
        runs: Sequence[PlannedRun],
        *,
        execute: bool | None = None,
        concurrency: int = DEFAULT_CONCURRENCY,
        trusted: Callable[[Path], bool],
    ) -> str:
        """Begin a batch and return its name at once. Each run ends in one `RunDone`, the batch in one `BatchDone`."""
        name = f"batch-{next(self._batch_numbers)}"
        surroundings = Surroundings(self._listener, self._servers, self._open_model, trusted, execute)
        self._engine.submit(self._run(Batch(name, runs, concurrency, surroundings)))
        return name

    def stop(self, run_id: str) -> None:
        """Stop one run; it ends as `stopped`. Returns at once."""
        self._stop_soon(run_id)

    def stop_all(self) -> None:
        """Stop every run of every batch. Returns at once."""
        self._stop_soon(None)

    def _stop_soon(self, run_id: str | None) -> None:
        if self._engine.alive:
            self._engine.submit(self._stop(run_id))

    def close(self) -> None:
        """Stop all runs, close all servers and models, end the thread. Blocks, for at most about eight seconds; may be
        called more than once, and nothing can be started afterwards."""
        if not self._engine.alive:
            return
        try:
            self._engine.submit(self._close()).result(CLOSE_TIMEOUT_S)
        except concurrent.futures.TimeoutError:
            _logger.error("closing took longer than %g s", CLOSE_TIMEOUT_S)
        finally:
            self._engine.close(timeout_s=1.0)

    async def _run(self, batch: Batch) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._batches[batch] = task
        try:
            await batch.run()
        except Exception:
            # A listener that raises: nobody waits for this task, and closing must still come to the servers.
            _logger.exception("%s broke", batch.name)
        finally:
            del self._batches[batch]

    async def _stop(self, run_id: str | None) -> None:
        for batch in tuple(self._batches):
            batch.stop(run_id)

    async def _close(self) -> None:
        await self._stop(None)
        await asyncio.gather(*self._batches.values())
        await self._servers.close()
        for model in self._models.values():
            await model.close()

    def _open_model(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = open_model(name, pace_ms=self._pace_ms)
        return self._models[name]
