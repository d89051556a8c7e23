"""The events of a batch, with the listeners and inboxes that receive them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun
from workbench.trajectory.events import Event, RetryScheduled

if TYPE_CHECKING:
    from workbench.engine.executor import PermissionQuestion
    from workbench.grading.grade import RunResult
    from workbench.history.packing import PackedRun
    from workbench.providers.model import HttpRequest
    from workbench.tools.listings import ListingChange


def steady_clock_ms() -> Callable[[], float]:
    """Return a clock of milliseconds since 1970 that is suitable for measuring durations.

    The clock starts at the system's time and ignores later changes of that time."""
    began_ms = time.time() * 1000 - _running_ms()
    return lambda: began_ms + _running_ms()


def _running_ms() -> float:
    # Linux stops its monotonic clock while the computer sleeps; the boot-time clock continues.
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000
    return time.monotonic() * 1000


@dataclass(frozen=True, slots=True)
class BatchStarted:
    """A batch begins; all its runs are waiting."""

    batch: str
    runs: tuple[PlannedRun, ...]


@dataclass(frozen=True, slots=True)
class RunEvent:
    event: Event


@dataclass(frozen=True, slots=True)
class StartUp:
    """The start-up of a server or a model begins or ends.

    Runs that need the server or the model wait for it, and the wait does not count as time of any run. An event with
    `took_ms` and the same `number` reports the end, after success or failure. If `downloads` is set, the start-up
    begins with a download. Another event of the same `number` reports the end of the download."""

    number: int
    what: str
    took_ms: float | None = None
    downloads: bool = False

    @property
    def words(self) -> str:
        """A description of the start-up, such as `starting server weather`."""
        doing = "starting"
        if self.downloads:
            doing = "downloading"
        return f"{doing} {self.what}"


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """A server has listed its tools, either at its start or because they changed.

    `change` holds the differences from the server's previous listing, if there are any."""

    suite_file: Path
    server: str
    change: ListingChange | None = None


@dataclass(frozen=True, slots=True)
class PermissionRequested:
    """A run waits for a person's permission to execute a call on its server.

    `Runtime.allow` gives the answer. Stopping the run also ends the wait."""

    question: PermissionQuestion


@dataclass(frozen=True, slots=True)
class CostLimitReached:
    """No further run of a batch fits within its cost limit.

    Runs that cost money wait until they are stopped, or until `Runtime.raise_cost_limit` raises the limit."""

    batch: str
    limit_usd: float
    spent_usd: float


@dataclass(frozen=True, slots=True)
class JudgeAsked:
    """A judge is asked about several values of a run.

    `values` is the number of these values. If `retry` is set, the request about one of them failed and is retried."""

    run_id: str
    judge: str
    values: int
    retry: RetryScheduled | None = None


@dataclass(frozen=True, slots=True)
class RequestDelayed:
    """A run waits at least `wait_s` seconds before its next request, because the endpoint told another run to wait.

    The next event of the run ends the wait. Recordings leave these events out."""

    run_id: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class RequestHeld:
    """A run is held before a request. The event has the redacted request, or the reason why the request cannot be sent.

    The event is sent again whenever a person adds a message to the request. Recordings leave these events out."""

    run_id: str
    request: HttpRequest | str


@dataclass(frozen=True, slots=True)
class RunDone:
    """A run has ended.

    The result is graded unless the run was stopped, was skipped or failed unexpectedly. `with_times` sets the run's
    beginning and end, in milliseconds since 1970. `row` is the run's row for the history, if another process made the
    run and packed its row."""

    result: RunResult
    began_ms: float | None = None
    ended_ms: float | None = None
    row: PackedRun | None = None


@dataclass(frozen=True, slots=True)
class BatchDone:
    """All runs of the batch have ended."""

    batch: str


@dataclass(frozen=True, slots=True)
class HistoryProblem:
    """The history cannot be written as planned; the runs continue.

    The history's own thread sends this event."""

    text: str


@dataclass(frozen=True, slots=True)
class EndpointNotice:
    """An endpoint gets fewer concurrent requests than the settings allow; `text` gives the reason.

    This event is sent once per endpoint."""

    text: str


@dataclass(frozen=True, slots=True)
class ClusterNotice:
    """A message about the workers of a cluster. With `ends_batch`, the batch cannot continue."""

    text: str
    ends_batch: bool = False


BatchEvent = (
    BatchStarted
    | StartUp
    | ToolsListed
    | RunEvent
    | PermissionRequested
    | CostLimitReached
    | JudgeAsked
    | RequestDelayed
    | RequestHeld
    | RunDone
    | BatchDone
    | HistoryProblem
    | ClusterNotice
    | EndpointNotice
)
BatchListener = Callable[[BatchEvent], None]


class StartUpReporter:
    """Reports the beginning and the end of start-ups to a listener."""

    def __init__(self, listener: BatchListener, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener = listener
        self._clock = clock
        self._numbers = count(1)

    @contextmanager
    def watch(self, description: str, *, downloads: bool = False) -> Iterator[Callable[[], None]]:
        """Report a start-up, described as "server weather" for example, around the body of the context.

        With `downloads`, the body calls the yielded function after the download."""
        # Start-ups overlap, so each end is matched to its beginning by a number.
        number, began = next(self._numbers), self._clock()
        self._listener(StartUp(number, description, downloads=downloads))

        def downloaded() -> None:
            if downloads:
                self._listener(StartUp(number, description))

        try:
            yield downloaded
        finally:
            self._listener(StartUp(number, description, round((self._clock() - began) * 1000, 3)))


def combined_listener(*listeners: BatchListener) -> BatchListener:
    """Return a listener that passes each event to all of these listeners in order.

    If one listener raises an error, the later ones do not receive the event."""

    def forward(event: BatchEvent) -> None:
        for listener in listeners:
            listener(event)

    return forward


def with_times(listener: BatchListener, now_ms: Callable[[], float] | None = None) -> BatchListener:
    """Return a listener that adds begin and end times to each `RunDone`.

    A run begins with its first event. Other events pass unchanged. `now_ms` returns milliseconds since 1970; without
    it, each run has its own steady clock. A run that was timed in another process keeps its times."""
    # This listener must be called first, on the engine's thread. Otherwise a slow screen or disk would lengthen the
    # measured time.
    began: dict[str, tuple[float, Callable[[], float]]] = {}

    def forward(event: BatchEvent) -> None:
        if isinstance(event, RunEvent):  # tested first, because most events are of this kind
            if event.event.run_id not in began:
                clock = now_ms or steady_clock_ms()
                began[event.event.run_id] = clock(), clock
        elif isinstance(event, RunDone) and event.began_ms is not None:
            began.pop(event.result.run_id, None)
        elif isinstance(event, RunDone):
            # A run without events, such as a skipped run, gets the same time as its beginning and its end.
            clock = now_ms or steady_clock_ms()
            began_ms, clock = began.pop(event.result.run_id, (clock(), clock))
            event = RunDone(event.result, began_ms, clock(), event.row)
        listener(event)

    return forward


_Item = TypeVar("_Item")


class Inbox(Generic[_Item]):
    """Collects items from any thread for one reader.

    `wake` is called when the first item after a `take_all` is added, on the thread that adds the item."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._items: list[_Item] = []
        self._awake = False

    @property
    def is_waiting(self) -> bool:
        """Whether the inbox holds any items."""
        return self._awake

    def put(self, item: _Item) -> None:
        with self._lock:
            self._items.append(item)
            first, self._awake = not self._awake, True
        # Call `wake` outside the lock, because the reader may take the lock at once.
        if first:
            self._wake()

    def take_all(self) -> list[_Item]:
        """Return all collected items, in their order, and empty the inbox."""
        with self._lock:
            items, self._items = self._items, []
            self._awake = False
        return items
