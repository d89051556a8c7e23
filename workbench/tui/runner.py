"""Between the engine's thread and the screen: starts and stops runs, and brings in what they report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from textual.app import App

from workbench.batches.events import BatchEvent, BatchListener, BatchStarted
from workbench.batches.plan import PlannedRun
from workbench.tui.state.drain import Drain
from workbench.tui.state.run_record import CaseKey
from workbench.tui.state.runs import RunBook

if TYPE_CHECKING:
    from workbench.batches.serving import Serving
    from workbench.batches.single import Execution


class RunSession(Protocol):
    """What the app needs of `workbench.batches.session.Session`."""

    def start(self, runs: Sequence[PlannedRun], *, execution: Execution, trusted: Callable[[Path], bool]) -> str: ...
    def allow(self, run_id: str, call_id: str, allowed: bool) -> None: ...
    @property
    def serving(self) -> Serving: ...
    def stop(self, run_id: str) -> None: ...
    def stop_all(self) -> None: ...
    def close(self) -> None: ...


OpenSession = Callable[[BatchListener], RunSession]


class Runner:
    """The session, opened when it is first needed, and the book of what its runs said.

    `delivered` is called on the app's loop after events were taken over, with the cases they are about, and whether
    batches began or ended among them.
    """

    def __init__(
        self,
        app: App[int],
        book: RunBook,
        open_session: OpenSession,
        delivered: Callable[[set[CaseKey], bool], None],
        interval_s: float,
    ) -> None:
        self.book = book
        self._app = app
        self._open_session = open_session
        self.on_delivery = delivered
        self._interval_s = interval_s
        self._session: RunSession | None = None
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_flush_s = 0.0
        self._drain: Drain[BatchEvent] = Drain(self._wake)

    async def start(self, runs: Sequence[PlannedRun], trusted: frozenset[Path], exempt: Callable[[Path], bool]) -> None:
        """Begin a batch. The first one opens the session, which imports the engine: off the loop, to keep it free.
        Real executions for `exempt` suites are not asked about."""
        session = await self._open()
        from workbench.batches.single import Execution

        batch = session.start(runs, execution=Execution(exempt=exempt), trusted=trusted.__contains__)
        # Under way from now on: what the engine's thread says comes later, and a second key may come before it.
        self.book.apply(BatchStarted(batch, tuple(runs)))

    async def _open(self) -> RunSession:
        self._loop = asyncio.get_running_loop()
        async with self._opening:
            if self._session is None:
                self._session = await asyncio.to_thread(self._open_session, self._drain.put)
            return self._session

    @property
    def serving(self) -> Serving | None:
        """The servers by hand; `None` while there is no session, and so no server."""
        return self._session.serving if self._session is not None else None

    async def open_serving(self) -> Serving:
        """The servers by hand, opening the session if need be."""
        return (await self._open()).serving

    def allow(self, run_id: str, call_id: str, allowed: bool) -> None:
        """Answer what a held run asks."""
        if self._session is not None:
            self._session.allow(run_id, call_id, allowed)

    def stop(self, run_ids: Sequence[str]) -> None:
        """Stop some runs."""
        if self._session is not None:
            for run_id in run_ids:
                self._session.stop(run_id)

    def stop_all(self) -> None:
        """Stop every run."""
        if self._session is not None:
            self._session.stop_all()

    def close(self) -> None:
        """End everything that runs. Blocks, for a bounded time: call it off the loop."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    @property
    def is_delivering(self) -> bool:
        """Whether events have come in that the screen does not show yet."""
        return self._drain.is_waiting

    def _wake(self) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._arm)

    def _arm(self) -> None:
        assert self._loop is not None
        wait_s = max(self._last_flush_s + self._interval_s - self._loop.time(), 0.0)
        self._loop.call_later(wait_s, self._app.call_later, self._flush)

    def _flush(self) -> None:
        assert self._loop is not None
        self._last_flush_s = self._loop.time()
        batches_before = self.book.progress().under_way
        cases: set[CaseKey] = set()
        began = False
        for event in self._drain.take():
            case = self.book.apply(event)
            if case is None:
                began = True
            else:
                cases.add(case)
        self.on_delivery(cases, began or batches_before != self.book.progress().under_way)
