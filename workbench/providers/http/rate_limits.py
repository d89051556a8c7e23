"""Rate limits of one model at one endpoint: concurrency, requests per minute, and pauses that it asks for."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from workbench.dataclasses import dataclass
from workbench.limits import MAX_HOLD_SECONDS

SPACING_S = 0.001
"""The least seconds between two requests: requests sent together are answered together, and then wait for this
program."""
TIMER_S = 0.0005
"""The resolution of event loops in seconds: a shorter sleep ends at once, again and again."""


class RateLimiter:
    """Lets requests through in the order in which they came.

    `clock` returns monotonic seconds, `sleep` waits seconds. `on_hold` is called with the seconds of each pause that
    the endpoint asks for."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_hold: Callable[[float], object] = lambda _seconds: None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._on_hold = on_hold
        self._limits: dict[str, tuple[int, float]] = {}
        self._concurrency = 1
        self._lowered: int | None = None
        self._interval_s = SPACING_S
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._door = asyncio.Lock()
        self._free_at_s = float("-inf")
        self._held_until_s = float("-inf")
        self._on_pauses: list[Callable[[float], object]] = []
        """Callbacks of waiting requests, called when a pause begins or grows."""

    def limit(self, name: str, concurrency: int, requests_per_minute: float | None) -> None:
        """Set the limits of a named model.

        Where several names mean the same model at the same endpoint, the smallest numbers apply. Requests per minute
        are spaced evenly."""
        self._limits[name] = (concurrency, 60.0 / requests_per_minute if requests_per_minute else SPACING_S)
        self._concurrency = min(at_once for at_once, _ in self._limits.values())
        self._interval_s = max(interval_s for _, interval_s in self._limits.values())
        self._admit()

    @property
    def allowed(self) -> int:
        """How many requests may be under way at a time."""
        return self._concurrency if self._lowered is None else min(self._concurrency, self._lowered)

    def lower_to(self, concurrency: int) -> None:
        """Let no more than this number of requests be under way from now on, whatever the settings allow."""
        self._lowered = concurrency

    def hold(self, seconds: float) -> None:
        """Let no further request through for this time, at most `MAX_HOLD_SECONDS`: the endpoint asks for it."""
        self._on_hold(seconds)
        self.hold_too(seconds)

    def hold_too(self, seconds: float) -> None:
        """As `hold`, because another process was asked to."""
        until_s = self._clock() + min(seconds, MAX_HOLD_SECONDS)
        if until_s > self._held_until_s:
            self._held_until_s = until_s
            for on_pause in self._on_pauses:
                on_pause(until_s - self._clock())

    @asynccontextmanager
    async def turn(self, on_pause: Callable[[float], object] = lambda _: None) -> AsyncGenerator[None]:
        """One request's turn, held while the request is going on.

        `on_pause` is called with the seconds for which the endpoint accepts no request, and again where that becomes
        longer."""
        if (pause_s := self._held_until_s - self._clock()) > 0:
            on_pause(pause_s)
        self._on_pauses.append(on_pause)
        try:
            await self._enter()
            try:
                await self._pass()
            except BaseException:
                self._leave()
                raise
        finally:
            self._on_pauses.remove(on_pause)
        try:
            yield
        finally:
            self._leave()

    async def _pass(self) -> None:
        async with self._door:
            while (wait_s := max(self._free_at_s, self._held_until_s) - self._clock()) > TIMER_S:
                await self._sleep(wait_s)
            # One that went a little early does not take the others with it.
            self._free_at_s = max(self._free_at_s, self._clock()) + self._interval_s

    def _leave(self) -> None:
        self._under_way -= 1
        self._admit()

    async def _enter(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # admitted and cancelled at once: the place goes to the next
                self._under_way -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.allowed:
            place = self._waiting.popleft()
            if not place.done():
                self._under_way += 1
                place.set_result(None)


# Parts of what endpoints allow, lent to this process for a while: what all processes have together is never more
# than the whole, whoever has it when.

LOOK_S = 0.02
"""How often is looked whether something came back that is lent elsewhere."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A part of the limits of a model at an address: requests at a time and, with a rate limit, permits.

    Each permit is good for one request every `permit_s` seconds. `waits_s` has the seconds until each is free, since
    another process may have used it just now."""

    base_url: str
    model: str
    at_once: int
    waits_s: tuple[float, ...] | None = None
    permit_s: float = 0.0


class LeasedLimiter(RateLimiter):
    """A rate limiter whose limits are leases, while they are `good`, in place of this machine's settings.

    A process that was frozen for a while may have lost its leases."""

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
        """Use a lease no longer, once no request needs it.

        Returns in how many seconds its permits are free."""
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
        """Return the permits among which the one is that is free first."""
        return min(self._permits.values(), key=lambda permits: permits[0], default=None)


class Leases:
    """The leases of this process, by numbers, and the limiters that they are for.

    Use it on one event loop. `on_hold` is called as that of `Endpoints`, `good` says whether the leases still are."""

    def __init__(self, on_hold: Callable[[str, str, float], object], good: Callable[[], bool]) -> None:
        self._on_hold = on_hold
        self._good = good
        self._limiters: dict[tuple[str, str], LeasedLimiter] = {}

    def limiter(self, base_url: str, model: str) -> LeasedLimiter:
        """Return the limiter of a model at an address."""
        key = base_url, model
        if key not in self._limiters:
            self._limiters[key] = LeasedLimiter(on_hold=partial(self._on_hold, *key), good=self._good)
        return self._limiters[key]

    def take(self, number: int, leases: tuple[Lease, ...]) -> None:
        """Use leases from now on; `number` stands for them."""
        for lease in leases:
            self.limiter(lease.base_url, lease.model).take(number, lease)

    async def give_back(self, number: int, leases: tuple[Lease, ...]) -> tuple[tuple[float, ...], ...]:
        """Use them no longer.

        Returns in how many seconds the permits of each are free."""
        limiters = []
        for lease in leases:
            limiters.append(self.limiter(lease.base_url, lease.model))
        return tuple(await asyncio.gather(*(limiter.give_back(number) for limiter in limiters)))
