"""The rate limits of one model at one endpoint: concurrent requests, requests per minute, and the pauses it asks
for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from workbench.limits import MAX_HOLD_SECONDS

SPACING_S = 0.001
"""The least seconds between two requests: requests sent together are answered together, and then wait for this
program."""
TIMER_S = 0.0005
"""What event loops can tell apart, in seconds: who sleeps for less is woken at once, again and again."""


class RateLimiter:
    """Lets requests through in the order in which they came. `clock` returns monotonic seconds, `sleep` waits
    seconds. `on_hold` is called with the seconds of each pause that the endpoint asks for."""

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
        """Set the limits of a named model. Where several names mean the same model at the same endpoint, the smallest
        numbers apply. Requests per minute are spaced evenly."""
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
        """One request's turn, held while the request is going on. `on_pause` is called with the seconds for which the
        endpoint accepts no request, and again where that becomes longer."""
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
