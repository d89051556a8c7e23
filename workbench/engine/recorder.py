"""Stamps what happens in a run with its sequence number and time, adds it up, and passes it on."""

from __future__ import annotations

from collections.abc import Callable

from workbench.trajectory.events import Event, EventPayload
from workbench.trajectory.fold import TrajectoryFold
from workbench.trajectory.trajectory import Trajectory

Clock = Callable[[], float]
"""Monotonic seconds."""

EventListener = Callable[[Event], None]


class Recorder:
    """The one place where events are made, of what really happened. The trajectory is the fold of exactly what the
    listener was told."""

    def __init__(self, run_id: str, clock: Clock, listener: EventListener) -> None:
        self.clock = clock
        self.run_id = run_id
        self._listener = listener
        self._began = clock()
        self._sequence = 0
        self._fold = TrajectoryFold()

    def emit(self, what: EventPayload) -> None:
        """Make an event of something that happened just now; raises TrajectoryError, and tells nobody, when it cannot
        have happened."""
        event = Event(self.run_id, self._sequence, self.ms_since(self._began), what)
        self._fold.add(event)
        self._sequence += 1
        self._listener(event)

    def ms_since(self, moment_s: float) -> float:
        """Milliseconds since a moment on the clock."""
        return round((self.clock() - moment_s) * 1000, 3)

    @property
    def last(self) -> int:
        """The sequence number of the last event; -1 before the first."""
        return self._sequence - 1

    @property
    def trajectory(self) -> Trajectory:
        """What all events so far add up to."""
        return self._fold.trajectory
