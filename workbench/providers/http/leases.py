"""Parts of what endpoints allow, lent to this process for a while: what all processes have together is never more than
the whole, whoever has it when."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable
from functools import partial

from workbench.dataclasses import dataclass
from workbench.providers.http.rate_limiter import SPACING_S, TIMER_S, RateLimiter

LOOK_S = 0.02
"""How often is looked whether something came back that is lent elsewhere."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A part of what a model at an address allows: so many requests at a time and, where requests per minute are
    limited, permits. Each is good for one request every `permit_s` seconds; `waits_s` says in how many seconds each is
    free, since somebody else may have used it just now."""

    base_url: str
    model: str
    at_once: int
    waits_s: tuple[float, ...] | None = None
    permit_s: float = 0.0


class LeasedLimiter(RateLimiter):
    """Lets requests through as far as leases allow, and as long as they are `good`: who was frozen for a while may have
    lost them. What the settings of this machine say does not count."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_hold: Callable[[float], object] = lambda _seconds: None,
        good: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(clock, sleep, on_hold)
        self._good = good
        self._concurrency = 0
        self._leases: dict[int, int] = {}
        self._permits: dict[int, list[float]] = {}
        """When each permit is free, by its lease: heaps."""
        self._permit_s: float | None = None

    def limit(self, name: str, concurrency: int, requests_per_minute: float | None) -> None:
        """Nothing: leases say it."""

    def take(self, number: int, lease: Lease) -> None:
        """Use a lease from now on."""
        self._leases[number] = lease.at_once
        if lease.waits_s is not None:
            now_s = self._clock()
            self._permits[number] = sorted(now_s + wait_s for wait_s in lease.waits_s)
            self._permit_s = lease.permit_s
        self._changed()

    async def give_back(self, number: int) -> tuple[float, ...]:
        """Use a lease no longer, once no request needs it. Returns in how many seconds its permits are free."""
        del self._leases[number]
        permits = self._permits.pop(number, [])
        self._changed()
        while self._under_way > self._concurrency:
            await self._sleep(LOOK_S)
        now_s = self._clock()
        return tuple(max(0.0, free_s - now_s) for free_s in permits)

    def _changed(self) -> None:
        self._concurrency = sum(self._leases.values())
        permits = sum(map(len, self._permits.values()))
        self._interval_s = self._permit_s / permits if self._permit_s is not None and permits else SPACING_S
        # What was waited for with few permits is too long with many; each permit has its own time besides.
        self._free_at_s = min(self._free_at_s, self._clock() + self._interval_s)
        self._admit()

    async def _pass(self) -> None:
        async with self._door:
            while (wait_s := self._wait_s()) > TIMER_S:
                await self._sleep(wait_s)
            now_s = self._clock()
            self._free_at_s = max(self._free_at_s, now_s) + self._interval_s
            if (permits := self._next()) is not None and self._permit_s is not None:
                heapq.heapreplace(permits, max(now_s, permits[0]) + self._permit_s)

    def _wait_s(self) -> float:
        if not self._good():
            return LOOK_S
        free_s = max(self._free_at_s, self._held_until_s)
        if self._permit_s is not None:
            permits = self._next()
            if permits is None:
                return LOOK_S
            free_s = max(free_s, permits[0])
        return free_s - self._clock()

    def _next(self) -> list[float] | None:
        """The permits among which the one is that is free first."""
        return min(self._permits.values(), key=lambda permits: permits[0], default=None)


class Leases:
    """The leases of this process, by numbers, and the limiters that they are for. Use it on one event loop. `on_hold`
    is called as that of `Endpoints`, `good` says whether the leases still are."""

    def __init__(self, on_hold: Callable[[str, str, float], object], good: Callable[[], bool]) -> None:
        self._on_hold = on_hold
        self._good = good
        self._limiters: dict[tuple[str, str], LeasedLimiter] = {}

    def limiter(self, base_url: str, model: str) -> LeasedLimiter:
        """The limiter of a model at an address."""
        key = base_url, model
        if key not in self._limiters:
            self._limiters[key] = LeasedLimiter(on_hold=partial(self._on_hold, *key), good=self._good)
        return self._limiters[key]

    def take(self, number: int, leases: tuple[Lease, ...]) -> None:
        """Use leases from now on; `number` stands for them."""
        for lease in leases:
            self.limiter(lease.base_url, lease.model).take(number, lease)

    async def give_back(self, number: int, leases: tuple[Lease, ...]) -> tuple[tuple[float, ...], ...]:
        """Use them no longer. Returns in how many seconds the permits of each are free."""
        limiters = [self.limiter(lease.base_url, lease.model) for lease in leases]
        return tuple(await asyncio.gather(*(limiter.give_back(number) for limiter in limiters)))
