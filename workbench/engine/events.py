"""The events of a batch."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun
from workbench.trajectory.events import Event, RetryScheduled

if TYPE_CHECKING:
    from workbench.engine.agent_loop import ExecutionQuestion
    from workbench.grading.grade import RunResult
    from workbench.history.packing import PackedRun
    from workbench.providers.model import HttpRequest
    from workbench.tools.listings import ListingChange

# Times of day whose differences are durations.


def steady_clock_ms() -> Callable[[], float]:
    """Return a clock of milliseconds since 1970 that agrees with the system's now, and is not set by anybody later."""
    began_ms = time.time() * 1000 - _running_ms()
    return lambda: began_ms + _running_ms()


def _running_ms() -> float:
    """Milliseconds that no change of the time of day moves, and that go on while the machine sleeps, where it can."""
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
    """Something happened in a run."""

    event: Event


@dataclass(frozen=True, slots=True)
class StartUp:
    """A server or a model starts up.

    The runs that need it have not begun, so no run's duration or limit has this time in it. A second event of the same
    `number`, with `took_ms`, follows when it has started or failed."""

    number: int
    what: str
    took_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """A server has listed its tools, which are remembered now: when it started, or since they changed (`change`)."""

    suite_file: Path
    server: str
    change: ListingChange | None = None


@dataclass(frozen=True, slots=True)
class ExecutionAsked:
    """A run is held until `Runtime.allow` answers whether a call may really be executed, or the run is stopped."""

    question: ExecutionQuestion


@dataclass(frozen=True, slots=True)
class CostLimitReached:
    """No further run of a batch fits its limit on cost.

    Runs that cost something wait until `Runtime.raise_cost_limit` answers, or they are stopped."""

    batch: str
    limit_usd: float
    spent_usd: float


@dataclass(frozen=True, slots=True)
class JudgeAsked:
    """A judge is asked about `values` values of a run.

    With `again`, the request about one of them failed and is retried."""

    run_id: str
    judge: str
    values: int
    again: RetryScheduled | None = None


@dataclass(frozen=True, slots=True)
class RequestPutOff:
    """A run makes its next request in `wait_s` seconds at the earliest, because its endpoint told another run to wait.

    The next event of the run ends this. It is not an event of the run itself, and in no recording."""

    run_id: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class RequestHeld:
    """A run is held before a request: its content, secrets in the conversation included, or why it cannot be sent.

    Comes again when a message is added. It is not an event of the run itself, and in no recording."""

    run_id: str
    request: HttpRequest | str


@dataclass(frozen=True, slots=True)
class RunDone:
    """A run is over and, unless it was stopped, skipped or broke, graded.

    `timed` gives its beginning and end, in milliseconds since 1970, the same to all listeners. `row` is the
    history's row, where it was packed already."""

    result: RunResult
    began_ms: float | None = None
    ended_ms: float | None = None
    row: PackedRun | None = None


@dataclass(frozen=True, slots=True)
class BatchDone:
    """Every run of the batch is over."""

    batch: str


@dataclass(frozen=True, slots=True)
class HistorySaid:
    """Something is wrong with the history; the runs go on.

    Comes on a thread of its own."""

    text: str


@dataclass(frozen=True, slots=True)
class EndpointSaid:
    """An endpoint is sent fewer requests at a time than the settings allow, and why; comes once."""

    text: str


@dataclass(frozen=True, slots=True)
class ClusterSaid:
    """Something happened to the workers of a cluster.

    The runs go on, as far as there are any, unless that `ends` the batch."""

    text: str
    ends: bool = False


BatchEvent = (
    BatchStarted
    | StartUp
    | ToolsListed
    | RunEvent
    | ExecutionAsked
    | CostLimitReached
    | JudgeAsked
    | RequestPutOff
    | RequestHeld
    | RunDone
    | BatchDone
    | HistorySaid
    | ClusterSaid
    | EndpointSaid
)
BatchListener = Callable[[BatchEvent], None]


class StartUps:
    """Reports each start-up to a listener, when it begins and when it is over."""

    def __init__(self, listener: BatchListener, clock: Callable[[], float] = time.monotonic) -> None:
        self._listener = listener
        self._clock = clock
        self._numbers = count(1)

    @contextmanager
    def watch(self, what: str) -> Iterator[None]:
        """Report the start-up of `what`, such as "server weather", around its body."""
        number, began = next(self._numbers), self._clock()
        self._listener(StartUp(number, what))
        try:
            yield
        finally:
            self._listener(StartUp(number, what, round((self._clock() - began) * 1000, 3)))


def in_turn(*listeners: BatchListener) -> BatchListener:
    """Return a listener that hands each event to all of these, in their order.

    One that raises keeps it from the next."""

    def tell(event: BatchEvent) -> None:
        for listener in listeners:
            listener(event)

    return tell


def timed(listener: BatchListener, now_ms: Callable[[], float] | None = None) -> BatchListener:
    """Return a listener that adds to each `RunDone` the times of the run's first event and of its end.

    It passes every other event on. `now_ms` is the time since 1970; without it, each run has a steady clock of its own.
    Put it before all other listeners, on the engine's thread, so that neither a slow screen nor a slow disk counts. A
    run that was timed in another process keeps its times."""
    began: dict[str, tuple[float, Callable[[], float]]] = {}

    def tell(event: BatchEvent) -> None:
        if isinstance(event, RunDone) and event.began_ms is not None:
            began.pop(event.result.run_id, None)
        elif isinstance(event, RunEvent):
            if event.event.run_id not in began:
                clock = now_ms or steady_clock_ms()
                began[event.event.run_id] = clock(), clock
        elif isinstance(event, RunDone):
            clock = now_ms or steady_clock_ms()
            began_ms, clock = began.pop(event.result.run_id, (clock(), clock))
            event = replace(event, began_ms=began_ms, ended_ms=clock())
        listener(event)

    return tell


_Item = TypeVar("_Item")


class Inbox(Generic[_Item]):
    """Collects items from any thread.

    Calls `wake`, on the putting thread, when the first one comes in."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._items: list[_Item] = []
        self._awake = False

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to take."""
        return self._awake

    def put(self, item: _Item) -> None:
        """Add one item."""
        with self._lock:
            self._items.append(item)
            first, self._awake = not self._awake, True
        if first:
            self._wake()

    def take(self) -> list[_Item]:
        """Return everything collected, in order.

        The next item wakes again."""
        with self._lock:
            items, self._items = self._items, []
            self._awake = False
        return items
