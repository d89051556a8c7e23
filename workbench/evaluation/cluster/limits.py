"""What an endpoint allows, divided among the workers that ask it: each part is lent and comes back."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable

from workbench.config.models import ModelSpec
from workbench.limits import MAX_HOLD_SECONDS
from workbench.providers.http.leases import Lease

MARGIN_S = 1.0
"""A permit rests longer than its minute by this: two requests may be on their way for different times."""
MAX_PERMITS = 500
"""With a higher rate, a permit is good for several requests a minute."""
LOST_S = 12.0
"""How long after its worker was lost a part is not lent again: a worker that nobody asks any more stops within that
time, and so do its requests, but for the longest."""


class EndpointLimits:
    """What one model at one address allows to all workers together: `concurrency` requests at a time, `per_minute` in
    any minute. `clock` returns monotonic seconds."""

    def __init__(
        self,
        base_url: str,
        model: str,
        concurrency: int,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base_url = base_url
        self.model = model
        self.concurrency = concurrency
        self._clock = clock
        self._held_until_s = float("-inf")
        self._free = concurrency
        self._coming: list[tuple[float, int]] = []
        """What will be free again when: after a worker was lost."""
        self._permits: list[float] | None = None
        """When each permit may be used again, those that are lent apart: a heap."""
        self._all_permits = 0
        self._permit_s = 0.0
        if per_minute is not None:
            uses = max(1, int(-(-per_minute // MAX_PERMITS)))
            self._all_permits = max(1, int(per_minute // uses))
            self._permit_s = (60.0 + MARGIN_S) / uses if per_minute >= 1 else 60.0 / per_minute + MARGIN_S
            self._permits = [clock()] * self._all_permits

    @classmethod
    def of(cls, base_url: str, model: str, specs: Iterable[ModelSpec], concurrency: int) -> EndpointLimits:
        """The limits of an endpoint that is reached under several names: the smallest count. `concurrency` is for
        specs that say nothing."""
        specs = tuple(specs)
        rates = [spec.requests_per_minute for spec in specs if spec.requests_per_minute is not None]
        at_once = min((spec.concurrency or concurrency for spec in specs), default=concurrency)
        return cls(base_url, model, at_once, min(rates, default=None))

    @property
    def most_parts(self) -> int:
        """In how many parts it can be lent at a time."""
        return self.concurrency if self._permits is None else min(self.concurrency, self._all_permits)

    @property
    def held_s(self) -> float:
        """For how long the endpoint accepts no request."""
        return max(0.0, self._held_until_s - self._clock())

    def hold(self, seconds: float) -> None:
        """The endpoint has asked for a pause."""
        self._held_until_s = max(self._held_until_s, self._clock() + min(seconds, MAX_HOLD_SECONDS))

    def can_lend(self) -> bool:
        """Whether there is a part to be had now."""
        now_s = self._clock()
        while self._coming and self._coming[0][0] <= now_s:
            self._free += heapq.heappop(self._coming)[1]
        return self._free > 0 and (self._permits is None or bool(self._permits))

    def lend(self, parts: int) -> Lease:
        """One of so many parts. Only where `can_lend`."""
        at_once = min(self._free, -(-self.concurrency // parts))
        self._free -= at_once
        waits_s: tuple[float, ...] | None = None
        if self._permits is not None:
            now_s = self._clock()
            count = min(len(self._permits), -(-self._all_permits // parts))
            waits_s = tuple(max(0.0, heapq.heappop(self._permits) - now_s) for _ in range(count))
        return Lease(self.base_url, self.model, at_once, waits_s, self._permit_s)

    def take_back(self, lease: Lease, waits_s: Iterable[float]) -> None:
        """A part is free again; its permits in so many seconds."""
        self._free += lease.at_once
        self._add_permits(waits_s)

    def lost(self, lease: Lease) -> None:
        """The worker with a part of it is lost, which may be asking still, if there is anybody to ask."""
        rests_s = LOST_S if self.base_url else 0.0
        heapq.heappush(self._coming, (self._clock() + rests_s, lease.at_once))
        self._add_permits(LOST_S + self._permit_s for _ in lease.waits_s or ())

    def _add_permits(self, waits_s: Iterable[float]) -> None:
        if self._permits is not None:
            now_s = self._clock()
            for wait_s in waits_s:
                heapq.heappush(self._permits, now_s + wait_s)
