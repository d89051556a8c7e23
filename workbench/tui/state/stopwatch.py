"""A clock that can be made to stand."""

from __future__ import annotations

from collections.abc import Callable


class Stopwatch:
    """Seconds of a clock, but for those in which it was made to stand."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stood_s = 0.0
        self._stands_since: float | None = None

    def __call__(self) -> float:
        return (self._clock() if self._stands_since is None else self._stands_since) - self._stood_s

    def stand(self, stands: bool) -> None:
        """Stand from now on, or go."""
        if stands and self._stands_since is None:
            self._stands_since = self._clock()
        elif not stands and self._stands_since is not None:
            self._stood_s += self._clock() - self._stands_since
            self._stands_since = None
