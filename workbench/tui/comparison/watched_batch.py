"""A batch of another process on the screen: its runs under way, told over its socket while the screen is open."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from workbench.authoring.case_list import CaseKey
from workbench.engine.events import Inbox, RequestPutOff, RunDone, RunEvent
from workbench.history.records import RunRow
from workbench.remote.records import AttachError
from workbench.remote.viewer import Ended, GoneError, Said, Seen, Viewing
from workbench.tui.run_book.record import RunRecord

_logger = logging.getLogger(__name__)

INTERVAL_S = 0.1
"""The shortest time between two deliveries."""

AGAIN_S = 1.0
"""The shortest wait before attaching again."""

ATTACHING_SHARE = 0.1
"""Attaching again takes at most this share of the time: it reads the plan of the batch."""


class WatchedBatch:
    """The runs under way of a batch.

    To be used on the app's loop; a thread of its own reads.

    `tell` is called with the cases in which something happened, `announce` with what the batch's process says. `again`
    attaches again where it let this viewer go: `None` if it is gone.
    """

    def __init__(
        self, viewing: Viewing, tell: Callable[[set[CaseKey]], None], again: Callable[[], Viewing | None]
    ) -> None:
        self.number = viewing.known.batch
        self.over = 0
        """How many runs have ended since it began, at least: it only grows."""
        self.ending = ""
        """How it ended, once it has."""
        self.announce: Callable[[str], object] = lambda _text: None
        self._viewing = viewing
        self._tell = tell
        self._again = again
        self._left = threading.Event()
        self._records: dict[int, RunRecord] = {}
        self._inbox: Inbox[Seen | Viewing | Exception] = Inbox(self._wake)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.Context()
        self._told_at_s = 0.0

    def begin(self) -> None:
        """Begin to read."""
        self._loop, self._context = asyncio.get_running_loop(), contextvars.copy_context()
        threading.Thread(target=self._read, name="watched batch", daemon=True).start()

    def close_unless_begun(self) -> None:
        """Look on no longer if no screen does: the user went elsewhere before it was shown."""
        if self._loop is None:
            self.close()

    def close(self) -> None:
        """Look on no longer."""
        self._loop = None
        self._left.set()
        self._viewing.close()

    def under_way(self, row: RunRow) -> RunRecord | None:
        """Return a run of the batch that is under way, or has ended a moment ago."""
        return self._records.get(row.place)

    def stored(self, rows: Iterable[RunRow]) -> None:
        """Forget runs that are read from the history from now on, and those that are over and not shown."""
        over = {row.place: row.figures is not None for row in rows}
        for place, record in [*self._records.items()]:
            if over.get(place, record.stage == "done"):
                del self._records[place]

    def _read(self) -> None:
        viewing, wait_s = self._viewing, AGAIN_S
        try:
            while True:
                try:
                    for seen in viewing:
                        self._inbox.put(seen)
                    return
                except GoneError:
                    began_s = time.monotonic()
                    if self._left.wait(wait_s) or (attached := self._again()) is None:
                        raise
                    viewing = self._viewing = attached
                    wait_s = max(AGAIN_S, (time.monotonic() - began_s - wait_s) / ATTACHING_SHARE)
                    self._inbox.put(viewing)
                    if self._left.is_set():
                        viewing.close()
        except Exception as error:  # noqa: BLE001 (told on the app's loop)
            self._inbox.put(error)

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._arm, context=self._context)  # Textual's timers need the app's

    def _arm(self) -> None:
        if self._loop is not None:
            self._loop.call_later(max(self._told_at_s + INTERVAL_S - self._loop.time(), 0.0), self._deliver)

    def _deliver(self) -> None:
        if self._loop is None:
            return
        self._told_at_s = self._loop.time()
        cases: set[CaseKey] = set()
        for seen in self._inbox.take():
            record = self._take(seen)
            if record is not None:
                cases.add((record.path, record.case_id))
        self._tell(cases)

    def _take(self, seen: Seen | Viewing | Exception) -> RunRecord | None:
        match seen:
            case RunEvent(event=event):
                record = self._record(event.run_id)
                if record.events and event.sequence <= record.events[-1].sequence:
                    return None  # told again after attaching again
                if not record.started_at:
                    ago = timedelta(milliseconds=self._viewing.begun_ago_ms.get(int(event.run_id), 0.0))
                    record.started_at = (datetime.now(UTC) - ago).isoformat(timespec="milliseconds")
                record.add(event)
                record.stage = "running"
                return record
            case RequestPutOff(run_id=run_id, wait_s=wait_s):
                record = self._record(run_id)
                record.put_off(datetime.now(UTC) + timedelta(seconds=wait_s))
                return record
            case RunDone(result=result):
                record = self._record(result.run_id)
                record.finish(result, seen.began_ms, seen.ended_ms)
                self.over += 1
                return record
            case Viewing():
                self.over += 1  # runs may have ended meanwhile
            case Said(text=text):
                self.announce(text)
            case Ended(exit_code=code):
                self.ending = f"batch {self.number} has ended, with exit code {code}"
            case GoneError():
                self.ending = f"batch {self.number} is shown no further: {seen}; F5 reloads it"
            case AttachError():
                self.ending = str(seen)
            case Exception():
                _logger.error("looking on at batch %d", self.number, exc_info=seen)
                self.ending = f"looking on at batch {self.number} failed: the log says why; F5 reloads it"
            case _:
                pass
        return None

    def _record(self, run_id: str) -> RunRecord:
        place = int(run_id)
        record = self._records.get(place)
        if record is None:
            record = self._records[place] = RunRecord(self._viewing.plan[place])
        return record
