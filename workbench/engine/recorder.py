"""Stamps the events of a run with sequence number and time, folds them, and passes them on."""

from __future__ import annotations

from collections.abc import Callable

from workbench.trajectory.events import Event, EventPayload
from workbench.trajectory.trajectory import Round, Trajectory, TrajectoryFold

Clock = Callable[[], float]
"""Returns monotonic seconds."""

EventListener = Callable[[Event], None]


class Recorder:
    """The only place where events are made, and only from what really happened. The trajectory is the fold of exactly
    the events that the listener received."""

    def __init__(self, run_id: str, clock: Clock, listener: EventListener) -> None:
        self.clock = clock
        self.run_id = run_id
        self._listener = listener
        self._began = clock()
        self._sequence = 0
        self._fold = TrajectoryFold()

    def emit(self, what: EventPayload) -> None:
        """Emit an event with the current time. Raises TrajectoryError, without emitting it, when it cannot follow the
        events before it."""
        event = Event(self.run_id, self._sequence, self.ms_since(self._began), what)
        self._fold.add(event)
        self._sequence += 1
        self._listener(event)

    def ms_since(self, moment_s: float) -> float:
        """Returns the milliseconds since an earlier time of the clock."""
        return round((self.clock() - moment_s) * 1000, 3)

    @property
    def last(self) -> int:
        """The sequence number of the last event; -1 before the first."""
        return self._sequence - 1

    @property
    def last_round(self) -> Round:
        """The latest round of the trajectory; there must be one."""
        return self._fold.last_round

    @property
    def trajectory(self) -> Trajectory:
        """The fold of all events so far."""
        return self._fold.trajectory
