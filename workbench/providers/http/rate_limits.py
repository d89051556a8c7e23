"""Rate limits of a model at an endpoint: concurrency, requests per minute, and pauses that the endpoint asks for."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from workbench.dataclasses import dataclass
from workbench.limits import MAX_HOLD_SECONDS

MIN_SPACING_S = 0.001
"""The least time between two requests.

Otherwise many answers would arrive at the same moment, and wait for this program."""
TIMER_RESOLUTION_S = 0.0005
"""The resolution of event loops: a shorter sleep ends at once, and would be repeated many times."""


class RequestTurn:
    # This is a class, because a generator with `asynccontextmanager` takes several times as long.

    def __init__(self, begin: Callable[[], Awaitable[None]], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end

    async def __aenter__(self) -> None:
        await self._begin()

    async def __aexit__(self, *_error: object) -> None:
        self._end()


class RateLimiter:
    """Lets requests to a model pass in order, within the model's limits.

    `clock` returns monotonic seconds, `sleep` waits seconds. `on_endpoint_pause` is called with the length in seconds
    of each pause that the endpoint asks for."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_endpoint_pause: Callable[[float], object] = lambda _seconds: None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._on_endpoint_pause = on_endpoint_pause
        self._limits: dict[str, tuple[int, float]] = {}
        self._concurrency = 1
        self._lowered: int | None = None
        self._interval_s = MIN_SPACING_S
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._passing = asyncio.Lock()
        self._free_at_s = float("-inf")
        self._held_until_s = float("-inf")
        self._on_pauses: list[Callable[[float], object]] = []
        """Callbacks of waiting requests, called when a pause begins or grows."""

    def set_limits(self, name: str, concurrency: int, requests_per_minute: float | None) -> None:
        """Set the limits that the settings have for one name of the model.

        If a model has several names in the settings, the smallest limits apply. Requests per minute are spaced
        evenly."""
        interval_s = 60.0 / requests_per_minute if requests_per_minute else MIN_SPACING_S
        self._limits[name] = (concurrency, interval_s)
        self._concurrency = min(at_once for at_once, _ in self._limits.values())
        self._interval_s = max(interval_s for _, interval_s in self._limits.values())
        self._admit()

    @property
    def allowed(self) -> int:
        """The number of requests that may be in progress at a time."""
        if self._lowered is None:
            return self._concurrency
        return min(self._concurrency, self._lowered)

    def lower_to(self, concurrency: int) -> None:
        """Lower the number of requests that may be in progress at a time. `set_limits` cannot raise it again."""
        self._lowered = concurrency

    def pause(self, seconds: float) -> None:
        """Let no request pass for `seconds`, at most `MAX_HOLD_SECONDS`, and call `on_endpoint_pause`."""
        self._on_endpoint_pause(seconds)
        self.pause_silently(seconds)

    def pause_silently(self, seconds: float) -> None:
        """Let no request pass for `seconds`, without calling `on_endpoint_pause`.

        Use it for a pause that the endpoint asked of another process."""
        until_s = self._clock() + min(seconds, MAX_HOLD_SECONDS)
        if until_s > self._held_until_s:
            self._held_until_s = until_s
            for on_pause in self._on_pauses:
                on_pause(until_s - self._clock())

    def turn(self, on_pause: Callable[[float], object] = lambda _: None) -> RequestTurn:
        """Return the context in which one request is made. Entering it waits until the limits allow the request.

        `on_pause` is called with the length in seconds of each pause that delays the request, and again if the pause
        becomes longer."""
        return RequestTurn(partial(self._begin, on_pause), self._leave)

    async def _begin(self, on_pause: Callable[[float], object]) -> None:
        if (pause_s := self._held_until_s - self._clock()) > 0:
            on_pause(pause_s)
        self._on_pauses.append(on_pause)
        try:
            await self._enter()
            # The request already counts as in progress. If it is cancelled while it waits, the next request takes its
            # place.
            try:
                await self._pass()
            except BaseException:
                self._leave()
                raise
        finally:
            self._on_pauses.remove(on_pause)

    async def _pass(self) -> None:
        async with self._passing:
            while (wait_s := max(self._free_at_s, self._held_until_s) - self._clock()) > TIMER_RESOLUTION_S:
                await self._sleep(wait_s)
            # The next free moment is computed from the planned time, not from the current time. So a request that is
            # early by less than the timer's resolution does not shift the following requests.
            self._free_at_s = max(self._free_at_s, self._clock()) + self._interval_s

    def _leave(self) -> None:
        self._under_way -= 1
        self._admit()

    async def _enter(self) -> None:
        if not self._waiting and self._under_way < self.allowed:
            self._under_way += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # admitted and cancelled at the same time: admit the next request
                self._under_way -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.allowed:
            place = self._waiting.popleft()
            if not place.done():
                self._under_way += 1
                place.set_result(None)


# Several processes share an endpoint's limits: each process gets a part of them as leases. The sum of the leases never
# exceeds the limits.

POLL_INTERVAL_S = 0.02
"""The interval at which a process checks leases that another process holds or requests still use, in seconds."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A share of a model's limits at an endpoint, which one of several processes may use.

    `concurrency` is the number of requests at a time. If the model has a rate limit, the share also has permits, each
    for one request every `permit_s` seconds. `waits_s` has the seconds until each permit is free, because another
    process may have just used it."""

    endpoint: str
    model: str
    concurrency: int
    waits_s: tuple[float, ...] | None = None
    permit_s: float = 0.0


class LeasedLimiter(RateLimiter):
    """A rate limiter whose limits are the sum of this process's leases, not the settings.

    Requests pass only while `good` returns True, because a process that was suspended for a while may have lost its
    leases."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_endpoint_pause: Callable[[float], object] = lambda _seconds: None,
        is_good: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(clock, sleep, on_endpoint_pause)
        self._good = is_good
        self._concurrency = 0
        self._leases: dict[int, int] = {}
        self._permits: dict[int, list[float]] = {}
        """The times at which the permits of each lease are free, as heaps."""
        self._permit_s: float | None = None

    def set_limits(self, name: str, concurrency: int, requests_per_minute: float | None) -> None:
        """Do nothing, because the leases are the limits."""

    def add_lease(self, number: int, lease: Lease) -> None:
        self._leases[number] = lease.concurrency
        if lease.waits_s is not None:
            now_s = self._clock()
            self._permits[number] = sorted(now_s + wait_s for wait_s in lease.waits_s)
            self._permit_s = lease.permit_s
        self._changed()

    async def return_lease(self, number: int) -> tuple[float, ...]:
        """Stop using a lease, and return the seconds until each of its permits is free.

        Waits until the requests in progress fit into the remaining leases."""
        del self._leases[number]
        permits = self._permits.pop(number, [])
        self._changed()
        while self._under_way > self._concurrency:
            await self._sleep(POLL_INTERVAL_S)
        now_s = self._clock()
        return tuple(max(0.0, free_s - now_s) for free_s in permits)

    def _changed(self) -> None:
        self._concurrency = sum(self._leases.values())
        permits = sum(map(len, self._permits.values()))
        self._interval_s = MIN_SPACING_S
        if self._permit_s is not None and permits:
            self._interval_s = self._permit_s / permits
        # The next free moment may now be earlier, because a wait that was computed for few permits is too long for
        # many.
        self._free_at_s = min(self._free_at_s, self._clock() + self._interval_s)
        self._admit()

    async def _pass(self) -> None:
        async with self._passing:
            while (wait_s := self._wait_s()) > TIMER_RESOLUTION_S:
                await self._sleep(wait_s)
            now_s = self._clock()
            self._free_at_s = max(self._free_at_s, now_s) + self._interval_s
            if (permits := self._next()) is not None and self._permit_s is not None:
                heapq.heapreplace(permits, max(now_s, permits[0]) + self._permit_s)

    def _wait_s(self) -> float:
        if not self._good():
            return POLL_INTERVAL_S
        free_s = max(self._free_at_s, self._held_until_s)
        if self._permit_s is not None:
            permits = self._next()
            if permits is None:
                return POLL_INTERVAL_S
            free_s = max(free_s, permits[0])
        return free_s - self._clock()

    def _next(self) -> list[float] | None:
        return min(self._permits.values(), key=lambda permits: permits[0], default=None)


class Leases:
    """The leases of this process and their limiters, for one event loop.

    `on_endpoint_pause` is called with endpoint, model and seconds when an endpoint asks for a pause. `good` returns
    whether the leases are still valid."""

    def __init__(self, on_endpoint_pause: Callable[[str, str, float], object], is_good: Callable[[], bool]) -> None:
        self._on_endpoint_pause = on_endpoint_pause
        self._good = is_good
        self._limiters: dict[tuple[str, str], LeasedLimiter] = {}

    def limiter(self, endpoint: str, model: str) -> LeasedLimiter:
        key = endpoint, model
        if key not in self._limiters:
            self._limiters[key] = LeasedLimiter(
                on_endpoint_pause=partial(self._on_endpoint_pause, *key), is_good=self._good
            )
        return self._limiters[key]

    def add(self, number: int, leases: tuple[Lease, ...]) -> None:
        """Start using leases. `number` identifies them in `return_leases`."""
        for lease in leases:
            self.limiter(lease.endpoint, lease.model).add_lease(number, lease)

    async def return_leases(self, number: int, leases: tuple[Lease, ...]) -> tuple[tuple[float, ...], ...]:
        """Stop using leases, and return for each lease the seconds until each of its permits is free."""
        limiters = [self.limiter(lease.endpoint, lease.model) for lease in leases]
        return tuple(await asyncio.gather(*(limiter.return_lease(number) for limiter in limiters)))
