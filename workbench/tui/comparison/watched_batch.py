"""Observes a batch that another process runs. Its events arrive over a socket of that process."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from workbench.authoring.case_list import CaseKey
from workbench.engine.events import Inbox, RequestDelayed, RunDone, RunEvent
from workbench.history.records import RunRow
from workbench.remote.records import AttachError
from workbench.remote.viewer import BatchEnded, BatchView, ConnectionEndedError, OutputLine, ViewedEvent
from workbench.tui.run_book.record import RunRecord

_logger = logging.getLogger(__name__)

INTERVAL_S = 0.1
"""The minimum time in seconds between two deliveries."""

REATTACH_INTERVAL_S = 1.0
"""The minimum time in seconds before attaching again."""

MAX_ATTACH_SHARE = 0.1
"""The maximum share of time for attaching again. Each attaching reads the plan of the batch."""


class WatchedBatch:
    """The active runs of a batch of another process.

    A thread reads the events. Everything else happens on the app's event loop. `on_change` is called with the changed
    cases, `announce` with the notices of the other process. `reopen` reconnects after a lost connection, and returns
    `None` if the process has ended."""

    def __init__(
        self, viewing: BatchView, on_change: Callable[[set[CaseKey]], None], reopen: Callable[[], BatchView | None]
    ) -> None:
        self.number = viewing.known.batch
        self.ended_runs = 0
        """A counter that grows when runs end."""
        self.end_message = ""
        """The notice on how the observation ended, "" until then."""
        self.announce: Callable[[str], object] = lambda _text: None
        self._viewing = viewing
        self._on_change = on_change
        self._reopen = reopen
        self._closed = threading.Event()
        self._records: dict[int, RunRecord] = {}
        self._inbox: Inbox[ViewedEvent | BatchView | Exception] = Inbox(self._wake)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.Context()
        self._notified_at_s = 0.0

    def begin(self) -> None:
        # Textual finds the active app in a context variable. The new thread needs a copy of the context.
        self._loop, self._context = asyncio.get_running_loop(), contextvars.copy_context()
        threading.Thread(target=self._read, name="watched batch", daemon=True).start()

    def close_unless_begun(self) -> None:
        """Disconnect if no screen reads the events, because the user left before the screen appeared."""
        if self._loop is None:
            self.close()

    def close(self) -> None:
        """Disconnect from the process. No callback is called afterwards."""
        self._loop = None
        self._closed.set()
        self._viewing.close()

    def active_record(self, row: RunRow) -> RunRecord | None:
        """Return the record of a run that is active, or that ended but is not stored yet.

        Return `None` if no event of the run has arrived."""
        return self._records.get(row.place)

    def stored(self, rows: Iterable[RunRow]) -> None:
        """Drop the records of runs that have ended. `rows` are the runs in the history.

        If a run is not in `rows`, its record tells whether it has ended."""
        over = {row.place: row.figures is not None for row in rows}
        for place, record in [*self._records.items()]:
            if over.get(place, record.stage == "done"):
                del self._records[place]

    def _read(self) -> None:
        viewing, wait_s = self._viewing, REATTACH_INTERVAL_S
        try:
            while True:
                try:
                    for seen in viewing:
                        self._inbox.put(seen)
                    return
                except ConnectionEndedError:
                    began_s = time.monotonic()
                    if self._closed.wait(wait_s) or (attached := self._reopen()) is None:
                        raise
                    viewing = self._viewing = attached
                    wait_s = max(REATTACH_INTERVAL_S, (time.monotonic() - began_s - wait_s) / MAX_ATTACH_SHARE)
                    self._inbox.put(viewing)
                    # If `close` was called during the reconnection, it has closed only the old connection.
                    if self._closed.is_set():
                        viewing.close()
        # Any error ends the observation and is announced on the app's loop.
        except Exception as error:  # noqa: BLE001
            self._inbox.put(error)

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._schedule_notification, context=self._context)

    def _schedule_notification(self) -> None:
        if self._loop is not None:
            self._loop.call_later(max(self._notified_at_s + INTERVAL_S - self._loop.time(), 0.0), self._deliver)

    def _deliver(self) -> None:
        if self._loop is None:
            return
        self._notified_at_s = self._loop.time()
        cases: set[CaseKey] = set()
        for seen in self._inbox.take_all():
            record = self._process(seen)
            if record is not None:
                cases.add(record.case_key)
        self._on_change(cases)

    def _process(self, viewed: ViewedEvent | BatchView | Exception) -> RunRecord | None:
        match viewed:
            case RunEvent(event=event):
                record = self._record(event.run_id)
                # After a reconnection, the process sends all events of its runs again. Known events are skipped.
                if record.events and event.sequence <= record.events[-1].sequence:
                    return None
                if not record.started_at:
                    ago = timedelta(milliseconds=self._viewing.begun_ago_ms.get(int(event.run_id), 0.0))
                    record.started_at = (datetime.now(UTC) - ago).isoformat(timespec="milliseconds")
                record.add(event)
                record.stage = "running"
                return record
            case RequestDelayed(run_id=run_id, wait_s=wait_s):
                record = self._record(run_id)
                record.delay_until(datetime.now(UTC) + timedelta(seconds=wait_s))
                return record
            case RunDone(result=result):
                record = self._record(result.run_id)
                record.finish(result, viewed.began_ms, viewed.ended_ms)
                self.ended_runs += 1
                return record
            case BatchView():
                # Runs may have ended while the connection was lost.
                self.ended_runs += 1
            case OutputLine(text=text):
                self.announce(text)
            case BatchEnded(exit_code=code):
                self.end_message = f"batch {self.number} has ended, with exit code {code}"
            case ConnectionEndedError():
                self.end_message = f"batch {self.number} is no longer observed: {viewed}; F5 reloads it"
            case AttachError():
                self.end_message = str(viewed)
            case Exception():
                _logger.error("observing batch %d", self.number, exc_info=viewed)
                self.end_message = f"observing batch {self.number} failed, the log has the reason; F5 reloads it"
            case _:
                pass
        return None

    def _record(self, run_id: str) -> RunRecord:
        place = int(run_id)
        record = self._records.get(place)
        if record is None:
            record = self._records[place] = RunRecord(self._viewing.plan[place])
        return record
