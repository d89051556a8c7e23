"""The link between the engine's thread and the screen: starts and stops runs, and delivers their events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from workbench.authoring.case_list import CaseKey
from workbench.engine.events import (
    BatchEvent,
    BatchListener,
    BatchStarted,
    EndpointNotice,
    HistoryProblem,
    Inbox,
    ToolsListed,
)
from workbench.tui.run_book.book import RunBook

if TYPE_CHECKING:
    from workbench.engine.breakpoints import Breakpoint
    from workbench.engine.checkpoint import Command
    from workbench.engine.executor import PermissionAnswer
    from workbench.engine.recordings import Recordings
    from workbench.engine.server_calls import ServerControl
    from workbench.engine.stepper import StepTarget
    from workbench.evaluation.approval import Approval
    from workbench.evaluation.plan import Plan
    from workbench.tui.shell.workbench import Workbench


class AppRuntime(Protocol):
    """The part of `workbench.evaluation.runtime.Runtime` used by the app."""

    def start(
        self, plan: Plan, approval: Approval, *, recordings: Recordings | None = None, until: StepTarget = "end"
    ) -> str: ...
    def allow(self, run_id: str, call_id: str, answer: PermissionAnswer) -> None: ...
    def raise_cost_limit(self, batch: str, usd: float | None) -> None: ...
    def continue_run(self, run_id: str, until: StepTarget, hold: int | None) -> Future[str | None]: ...
    def apply_command(self, run_id: str, command: Command, hold: int) -> Future[str | None]: ...
    def set_breakpoints(self, breakpoints: Sequence[Breakpoint]) -> None: ...
    @property
    def serving(self) -> ServerControl: ...
    def batch_number(self, batch: str) -> int | None: ...
    def flush_history(self) -> None: ...
    def stop(self, run_id: str) -> None: ...
    def stop_all(self) -> None: ...
    def close(self) -> None: ...


OpenRuntime = Callable[[BatchListener], AppRuntime]


class Runner:
    """Starts and stops runs through the runtime, and applies their events to the book.

    The runtime is opened on first use. `delivered` is called on the app's loop after events were applied, at most once
    in `interval_s` seconds. It gets the cases of the events, and whether batches began or ended."""

    def __init__(
        self,
        app: Workbench,
        book: RunBook,
        open_runtime: OpenRuntime,
        delivered: Callable[[set[CaseKey], bool], None],
        interval_s: float,
        open_recordings: Callable[[], Recordings] | None = None,
    ) -> None:
        self.book = book
        self._app = app
        self._open_runtime = open_runtime
        self.on_delivery = delivered
        self.on_endpoint: Callable[[str], object] = lambda _text: None
        """Called with each notice about an endpoint."""
        self.on_listing: Callable[[Sequence[ToolsListed]], object] = lambda _listed: None
        """Called when servers have listed their tools, before `on_delivery`."""
        self._interval_s = interval_s
        self._open_recordings = open_recordings
        """Returns the recordings of a new batch, `None` if runs are not recorded."""
        self._recordings: list[Recordings] = []
        """The recordings of batches without problems so far."""
        self._history_problems: list[str] = []
        self._runtime: AppRuntime | None = None
        self._closed: AppRuntime | None = None
        self._breakpoints: tuple[Breakpoint, ...] = ()
        self._open_lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_flush_s = 0.0
        self._inbox: Inbox[BatchEvent] = Inbox(self._wake)

    async def start(self, plan: Plan, approval: Approval, until: StepTarget = "end") -> None:
        """Start a batch. Its runs are held once they reach `until`.

        The first batch opens the runtime, and a thread imports the engine. Raises HistoryError like `Runtime.start`."""
        runtime = await self._open()
        record = None
        if self._open_recordings is not None:
            record = self._open_recordings()
        if record is not None:
            self._recordings.append(record)
        # Storing the plan in the history reads the suites of thousands of runs, so this also runs in a thread.
        batch = await asyncio.to_thread(runtime.start, plan, approval, recordings=record, until=until)
        # The batch is entered in the book now, because the user may press another key before the engine's event
        # arrives.
        self.book.apply(BatchStarted(batch, plan.runs))

    async def _open(self) -> AppRuntime:
        self._loop = asyncio.get_running_loop()
        # Two starts at the same time share one runtime. Opening it imports the engine, which is slow, so a thread does
        # it.
        async with self._open_lock:
            if self._runtime is None:
                self._runtime = await asyncio.to_thread(self._open_runtime, self._inbox.put)
                self._runtime.set_breakpoints(self._breakpoints)
            return self._runtime

    @property
    def serving(self) -> ServerControl | None:
        """The MCP servers whose tools the user may call, `None` if the runtime is not open."""
        if self._runtime is not None:
            return self._runtime.serving
        return None

    async def open_serving(self) -> ServerControl:
        """Return the MCP servers whose tools the user may call. Open the runtime if necessary."""
        return (await self._open()).serving

    def allow(self, run_id: str, call_id: str, answer: PermissionAnswer) -> None:
        """Answer a run's question for permission to execute a call."""
        if self._runtime is not None:
            self._runtime.allow(run_id, call_id, answer)

    def raise_cost_limit(self, batch: str, usd: float | None) -> None:
        """Set a new limit for a batch that has reached its cost limit. With `None`, the batch starts no more runs."""
        if self._runtime is not None:
            self._runtime.raise_cost_limit(batch, usd)

    async def continue_run(self, run_id: str, until: StepTarget, hold: int | None) -> str | None:
        """Continue a run from the displayed hold, or hold an active run. Return why that is impossible, or `None`."""
        return await self._send(lambda runtime: runtime.continue_run(run_id, until, hold))

    async def apply_command(self, run_id: str, command: Command, hold: int) -> str | None:
        """Apply a command to a run at the displayed hold. Return why that is impossible, or `None`."""
        return await self._send(lambda runtime: runtime.apply_command(run_id, command, hold))

    async def _send(self, send: Callable[[AppRuntime], Future[str | None]]) -> str | None:
        if self._runtime is not None:
            return await asyncio.wrap_future(send(self._runtime))
        return "nothing runs"

    def problems(self) -> list[str]:
        """Return problems with recordings and the history since the last call."""
        problems, self._history_problems = self._history_problems, []
        sound: list[Recordings] = []
        for record in self._recordings:
            if record.problem is not None:
                problems.append(record.problem)
            else:
                sound.append(record)
        # A problem with a batch's recordings is reported only once.
        self._recordings = sound
        return problems

    def flush_history(self) -> None:
        """Wait until the history has stored all events so far.

        Blocks for a limited time, so call it in a thread."""
        if self._runtime is not None:
            self._runtime.flush_history()

    def set_breakpoints(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Set the breakpoints, also for active runs."""
        self._breakpoints = tuple(breakpoints)
        if self._runtime is not None:
            self._runtime.set_breakpoints(self._breakpoints)

    def stop(self, run_ids: Sequence[str]) -> None:
        if self._runtime is not None:
            for run_id in run_ids:
                self._runtime.stop(run_id)

    def stop_all(self) -> None:
        if self._runtime is not None:
            self._runtime.stop_all()

    def close(self) -> None:
        """Stop everything. Blocks for a limited time, so call it in a thread."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            runtime.close()
            # `batch_number` still needs the runtime.
            self._closed = runtime

    def batch_number(self, batch: str) -> int | None:
        """Return the number of a batch in the history, even after its end. Return `None` if it has no number."""
        runtime = self._runtime or self._closed
        if runtime is not None:
            return runtime.batch_number(batch)
        return None

    @property
    def is_delivering(self) -> bool:
        """Whether events wait to be delivered."""
        return self._inbox.is_waiting

    def _wake(self) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._schedule_delivery)

    def _schedule_delivery(self) -> None:
        assert self._loop is not None
        # The screen is drawn at most once per interval, even if many events arrive.
        wait_s = max(self._last_flush_s + self._interval_s - self._loop.time(), 0.0)
        self._loop.call_later(wait_s, self._app.call_later, self._flush)

    def _flush(self) -> None:
        assert self._loop is not None
        self._last_flush_s = self._loop.time()
        batches_before = self.book.progress().is_active
        cases: set[CaseKey] = set()
        began = False
        listed: list[ToolsListed] = []
        for event in self._inbox.take_all():
            if isinstance(event, ToolsListed):
                listed.append(event)
            if isinstance(event, EndpointNotice):
                self.on_endpoint(event.text)
                continue
            if isinstance(event, HistoryProblem):
                self._history_problems.append(event.text)
                continue
            case = self.book.apply(event)
            if case is None:
                began = True
            else:
                cases.add(case)
        if listed:
            self.on_listing(listed)
        self.on_delivery(cases, began or batches_before != self.book.progress().is_active)
