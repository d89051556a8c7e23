"""The time limit of a run, and the recorder of a run's events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from workbench.trajectory.events import Event, EventPayload
from workbench.trajectory.fold import TrajectoryFold
from workbench.trajectory.trajectory import Round, Trajectory


class TimeLimit:
    """A context manager that raises TimeoutError after some seconds. Time inside `suspended` does not count."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> TimeLimit:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, traceback)

    def suspended(self) -> Suspension:
        """Return a context whose time does not count."""
        return Suspension(self._timeout)


class Suspension:
    """The context of `TimeLimit.suspended`. It is a class because a generator takes several times as long."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._left_s: float | None = None

    async def __aenter__(self) -> None:
        deadline_s = self._timeout.when()
        if deadline_s is not None:  # otherwise an outer context has suspended it already
            self._left_s = deadline_s - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    async def __aexit__(self, *_error: object) -> None:
        # A timeout that has expired cannot be rescheduled: asyncio raises RuntimeError.
        if self._left_s is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left_s)


Clock = Callable[[], float]
"""Returns monotonic seconds."""

EventListener = Callable[[Event], None]


class Recorder:
    """Makes the events of a run. Each event gets a number and a time, joins the trajectory, and is forwarded.

    The trajectory is the fold of exactly these events, so the shown events are also the graded events."""

    def __init__(self, run_id: str, clock: Clock, listener: EventListener) -> None:
        self.clock = clock
        self.run_id = run_id
        self._listener = listener
        self._began = clock()
        self._sequence = 0
        self._fold = TrajectoryFold()

    def emit(self, what: EventPayload) -> None:
        """Emit an event with the current time.

        Raises TrajectoryError if the event cannot follow the earlier events; it is then not emitted."""
        event = Event(self.run_id, self._sequence, self.ms_since(self._began), what)
        # The trajectory comes first: an event that it rejects must never reach the listener.
        self._fold.add(event)
        self._sequence += 1
        self._listener(event)

    def ms_since(self, moment_s: float) -> float:
        """Return the milliseconds since an earlier time of the clock."""
        return round((self.clock() - moment_s) * 1000, 3)

    @property
    def last(self) -> int:
        """The sequence number of the last event; -1 before the first."""
        return self._sequence - 1

    @property
    def last_round(self) -> Round:
        """The latest round of the trajectory, which must have one."""
        return self._fold.last_round

    @property
    def trajectory(self) -> Trajectory:
        return self._fold.trajectory
