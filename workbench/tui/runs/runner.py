"""Between the engine's thread and the screen: starts and stops runs, and brings in what they report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from workbench.authoring.case_now import CaseKey
from workbench.batches.events import BatchEvent, BatchListener, BatchStarted, HistorySaid, Inbox
from workbench.tui.kit.stage import Stage
from workbench.tui.run_book.book import RunBook

if TYPE_CHECKING:
    from workbench.batches.recordings import Recordings
    from workbench.batches.serving import Serving
    from workbench.engine.breakpoints import Breakpoint
    from workbench.engine.checkpoint import Command
    from workbench.engine.stepping import Until
    from workbench.evaluation.approval import Approval
    from workbench.evaluation.plan import Plan


class RunSession(Protocol):
    """What the app needs of `workbench.evaluation.runtime.Runtime`."""

    def start(
        self, plan: Plan, approval: Approval, *, record: Recordings | None = None, until: Until = "end"
    ) -> str: ...
    def allow(self, run_id: str, call_id: str, allowed: bool) -> None: ...
    def go_on(self, run_id: str, until: Until, hold: int | None) -> Future[str | None]: ...
    def do(self, run_id: str, command: Command, hold: int) -> Future[str | None]: ...
    def hold_at(self, breakpoints: Sequence[Breakpoint]) -> None: ...
    @property
    def serving(self) -> Serving: ...
    def number_of(self, batch: str) -> int | None: ...
    def settle_history(self) -> None: ...
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
        stage: Stage,
        book: RunBook,
        open_session: OpenSession,
        delivered: Callable[[set[CaseKey], bool], None],
        interval_s: float,
        open_recordings: Callable[[], Recordings] | None = None,
    ) -> None:
        self.book = book
        self._stage = stage
        self._open_session = open_session
        self.on_delivery = delivered
        self._interval_s = interval_s
        self._open_recordings = open_recordings
        """Where the runs of one batch are recorded as they happen, if they are."""
        self._recordings: list[Recordings] = []
        """Those in which nothing has gone wrong so far."""
        self._history_said: list[str] = []
        self._session: RunSession | None = None
        self._closed: RunSession | None = None
        self._breakpoints: tuple[Breakpoint, ...] = ()
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_flush_s = 0.0
        self._inbox: Inbox[BatchEvent] = Inbox(self._wake)

    async def start(self, plan: Plan, approval: Approval, until: Until = "end") -> None:
        """Begin a batch. The first one opens the session, which imports the engine: off the loop, to keep it free.
        `until` is how far the runs go before they are held. Raises HistoryError as `Runtime.start` does."""
        session = await self._open()
        record = self._open_recordings() if self._open_recordings is not None else None
        if record is not None:
            self._recordings.append(record)
        # Off the loop, too: of thousands of runs the history stores a plan, for which suites are read.
        batch = await asyncio.to_thread(session.start, plan, approval, record=record, until=until)
        # Under way from now on, unless the engine's thread has said so already: a second key may come before that.
        self.book.apply(BatchStarted(batch, plan.runs))

    async def _open(self) -> RunSession:
        self._loop = asyncio.get_running_loop()
        async with self._opening:
            if self._session is None:
                self._session = await asyncio.to_thread(self._open_session, self._inbox.put)
                self._session.hold_at(self._breakpoints)
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

    async def go_on(self, run_id: str, until: Until, hold: int | None) -> str | None:
        """Let a run go on from the hold that is shown, or hold one that is not held at its next stop; says why not, if
        it cannot."""
        return await self._told(lambda session: session.go_on(run_id, until, hold))

    async def do(self, run_id: str, command: Command, hold: int) -> str | None:
        """Have something done to a run at the hold that is shown; says why not, if it cannot."""
        return await self._told(lambda session: session.do(run_id, command, hold))

    async def _told(self, tell: Callable[[RunSession], Future[str | None]]) -> str | None:
        return await asyncio.wrap_future(tell(self._session)) if self._session is not None else "nothing runs"

    def problems(self) -> list[str]:
        """What has gone wrong with recordings and the history since this was last asked."""
        said, self._history_said = self._history_said, []
        found = [record.problem for record in self._recordings if record.problem is not None]
        self._recordings = [record for record in self._recordings if record.problem is None]
        return [*said, *found]

    def settle_history(self) -> None:
        """Wait until the history holds what was run so far. Blocks, for a bounded time: call it off the loop."""
        if self._session is not None:
            self._session.settle_history()

    def hold_at(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Have runs held at these breakpoints and no others, those under way too."""
        self._breakpoints = tuple(breakpoints)
        if self._session is not None:
            self._session.hold_at(self._breakpoints)

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
            self._closed = session

    def number_of(self, batch: str) -> int | None:
        """How a batch is called in the history, after the end too; `None` where it is in none."""
        session = self._session or self._closed
        return session.number_of(batch) if session is not None else None

    @property
    def is_delivering(self) -> bool:
        """Whether events have come in that the screen does not show yet."""
        return self._inbox.is_waiting

    def _wake(self) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._arm)

    def _arm(self) -> None:
        assert self._loop is not None
        wait_s = max(self._last_flush_s + self._interval_s - self._loop.time(), 0.0)
        self._loop.call_later(wait_s, self._stage.call_later, self._flush)

    def _flush(self) -> None:
        assert self._loop is not None
        self._last_flush_s = self._loop.time()
        batches_before = self.book.progress().under_way
        cases: set[CaseKey] = set()
        began = False
        for event in self._inbox.take():
            if isinstance(event, HistorySaid):
                self._history_said.append(event.text)
                continue
            case = self.book.apply(event)
            if case is None:
                began = True
            else:
                cases.add(case)
        self.on_delivery(cases, began or batches_before != self.book.progress().under_way)
