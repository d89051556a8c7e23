"""The time limit of a run, and the recorder of a run's events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from workbench.trajectory.events import Event, EventPayload
from workbench.trajectory.fold import TrajectoryFold
from workbench.trajectory.trajectory import Round, Trajectory


class TimeLimit:
    """A context manager that raises TimeoutError after some seconds. Time inside `suspended` does not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)
        self._loop = asyncio.get_running_loop()
        self._deadline_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._suspensions = 0
        self._suspended_s = 0.0
        self._suspension = Suspension(self)

    async def __aenter__(self) -> TimeLimit:
        await self._timeout.__aenter__()
        self._deadline_s = self._loop.time() + self._seconds
        self._check_deadline()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, traceback)

    def suspended(self) -> Suspension:
        """Return a context during which the time limit is suspended."""
        return self._suspension

    def before(self, context: AbstractAsyncContextManager[object]) -> Unlimited:
        """Return a context that enters and leaves `context`.

        The time to enter `context` does not count towards the limit."""
        return Unlimited(self._suspension, context)

    def suspend(self) -> None:
        """Suspend the time limit until `resume` has been called as often as this method."""
        self._suspensions += 1
        if self._suspensions == 1:
            self._suspended_s = self._loop.time()

    def resume(self) -> None:
        """Continue the time limit after `suspend`."""
        self._suspensions -= 1
        if self._suspensions == 0:
            self._deadline_s += self._loop.time() - self._suspended_s
            if self._timer is None and not self._timeout.expired():
                self._check_deadline()

    def _check_deadline(self) -> None:
        """Raise TimeoutError in the limited task if the deadline has passed; otherwise check again at the deadline."""
        # The timer is not cancelled during a suspension, because most suspensions end long before the deadline.
        self._timer = None
        if self._suspensions == 0:
            if self._loop.time() < self._deadline_s:
                self._timer = self._loop.call_at(self._deadline_s, self._check_deadline)
            else:
                self._timeout.reschedule(self._loop.time())


class Suspension:
    """The context of `TimeLimit.suspended`.

    This is a class because a context manager made from a generator is several times slower."""

    def __init__(self, limit: TimeLimit) -> None:
        self._limit = limit

    async def __aenter__(self) -> None:
        self._limit.suspend()

    async def __aexit__(self, *_error: object) -> None:
        self._limit.resume()


class Unlimited:
    """The context of `TimeLimit.before`."""

    def __init__(self, suspension: Suspension, context: AbstractAsyncContextManager[object]) -> None:
        self._suspension = suspension
        self._context = context

    async def __aenter__(self) -> None:
        async with self._suspension:
            await self._context.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._context.__aexit__(kind, error, traceback)


Clock = Callable[[], float]
"""Returns monotonic seconds."""

EventListener = Callable[[Event], None]


class Recorder:
    """Makes the events of a run.

    Each event gets a number and a time, is added to the trajectory, and is passed to the listener. The listener gets
    exactly the events that make up the trajectory, so a run is graded as it was shown."""

    def __init__(self, run_id: str, clock: Clock, listener: EventListener) -> None:
        self.clock = clock
        self.run_id = run_id
        self._listener = listener
        self._began = clock()
        self._sequence = 0
        self._fold = TrajectoryFold()

    def emit(self, payload: EventPayload) -> None:
        """Emit an event with the current time.

        Raises TrajectoryError if the event cannot follow the earlier events; it is then not emitted."""
        event = Event(self.run_id, self._sequence, self.ms_since(self._began), payload)
        # The trajectory comes first: an event that it rejects must never reach the listener.
        self._fold.add(event)
        self._sequence += 1
        self._listener(event)

    def ms_since(self, moment_s: float) -> float:
        """Return the milliseconds since an earlier time of the clock."""
        # Rounding to whole microseconds takes a third of the time of rounding to three decimals.
        return round((self.clock() - moment_s) * 1_000_000) / 1000

    @property
    def last(self) -> int:
        """The sequence number of the last event, or -1 before the first."""
        return self._sequence - 1

    @property
    def last_round(self) -> Round:
        """The latest round of the trajectory. The run must have begun a round."""
        return self._fold.last_round

    @property
    def trajectory(self) -> Trajectory:
        return self._fold.trajectory
