from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from itertools import count, pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench.limits import MAX_HOLD_SECONDS
from workbench.providers.http.rate_limits import MIN_SPACING_S, TIMER_RESOLUTION_S, RateLimiter


class World:
    """Time that passes only when everybody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0, "a wait of nothing would be a busy loop"
        awake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), awake))
        await awake

    async def settle(self) -> None:
        """Let all tasks run until each waits for time."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def run(self, *work: asyncio.Task[None]) -> None:
        """Let time pass until the work is done."""
        await self.settle()
        while not all(task.done() for task in work):
            assert self._sleepers, "everybody waits for nothing"
            self.now, _, awake = heapq.heappop(self._sleepers)
            if not awake.done():
                awake.set_result(None)
            await self.settle()
        await asyncio.gather(*work, return_exceptions=True)


class Traffic:
    """Requests at a limiter: their start times, and how many were in progress at a time."""

    def __init__(self, limiter: RateLimiter, world: World) -> None:
        self.limiter = limiter
        self.world = world
        self.began: list[tuple[int, float]] = []
        self.under_way = 0
        self.most = 0

    async def request(self, name: int, takes_s: float) -> None:
        async with self.limiter.turn():
            self.began.append((name, round(self.world.now, 2)))
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            try:
                await self.world.sleep(takes_s)
            finally:
                self.under_way -= 1


def in_a_world(test: Callable[[World, RateLimiter, Traffic], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        world = World()
        limiter = RateLimiter(world.clock, world.sleep)
        await test(world, limiter, Traffic(limiter, world))

    asyncio.run(run())


durations = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=15)


@given(durations, st.integers(1, 4), st.none() | st.floats(1, 600), st.sets(st.integers(0, 14)), st.data())
def test_limits_hold_and_turns_come_in_order_whoever_is_cancelled(
    takes: list[float], concurrency: int, per_minute: float | None, leave: set[int], data: st.DataObject
) -> None:
    async def test(world: World, limiter: RateLimiter, traffic: Traffic) -> None:
        limiter.set_limits("model", concurrency, per_minute)
        tasks = [asyncio.create_task(traffic.request(name, seconds)) for name, seconds in enumerate(takes)]
        leaving = {name for name in leave if name < len(tasks)}
        for name in sorted(leaving):
            for _ in range(data.draw(st.integers(0, 6))):
                await asyncio.sleep(0)
            tasks[name].cancel()
        await world.run(*tasks)
        names = [name for name, _ in traffic.began]
        assert names == sorted(names)
        assert set(range(len(tasks))) - leaving <= set(names)
        assert traffic.most <= concurrency
        if per_minute is not None:
            moments = [moment for _, moment in traffic.began]
            gaps = [later - earlier for earlier, later in pairwise(moments)]
            assert all(gap >= 60 / per_minute - 0.02 for gap in gaps)
        # No place is lost: as many as before are admitted at once.
        traffic.most = 0
        limiter.set_limits("model", concurrency, None)
        world.now += 1000
        await world.run(*(asyncio.create_task(traffic.request(99, 1.0)) for _ in range(concurrency)))
        assert traffic.most == concurrency

    in_a_world(test)


def test_an_endpoint_that_asks_for_a_pause_gets_it_from_everybody() -> None:
    async def test(world: World, limiter: RateLimiter, traffic: Traffic) -> None:
        limiter.set_limits("model", 2, None)
        first = asyncio.create_task(traffic.request(0, 5.0))
        await world.settle()
        limiter.pause(30.0)
        limiter.pause(10.0)
        others = [asyncio.create_task(traffic.request(name, 1.0)) for name in (1, 2)]
        await world.run(first, *others)
        assert traffic.began == [(0, 0.0), (1, 30.0), (2, 30.0)]

    in_a_world(test)


def test_a_pause_that_is_asked_for_during_one_prolongs_it() -> None:
    async def test(world: World, limiter: RateLimiter, traffic: Traffic) -> None:
        limiter.set_limits("model", 1, None)
        limiter.pause(5.0)
        waiting = asyncio.create_task(traffic.request(0, 1.0))
        await world.settle()
        limiter.pause(20.0)
        await world.run(waiting)
        assert traffic.began == [(0, 20.0)]

    in_a_world(test)


def test_who_waits_is_told_for_how_long_when_a_pause_begins_becomes_longer_and_is_come_into() -> None:
    async def test(world: World, limiter: RateLimiter, traffic: Traffic) -> None:
        limiter.set_limits("model", 1, None)
        told: list[tuple[str, float]] = []

        async def request(name: str) -> None:
            async with limiter.turn(lambda wait_s: told.append((name, round(world.now + wait_s)))):
                await world.sleep(3.0)

        under_way = asyncio.create_task(request("under way"))
        await world.settle()
        waiting = asyncio.create_task(request("waiting"))
        await world.settle()
        assert told == []
        limiter.pause(20.0)
        limiter.pause(10.0)
        assert told == [("waiting", 20)]
        late = asyncio.create_task(request("late"))
        await world.settle()
        limiter.pause(30.0)
        assert told[1:] == [("late", 20), ("waiting", 30), ("late", 30)]
        late.cancel()
        await world.settle()
        limiter.pause(40.0)
        assert told[4:] == [("waiting", 40)]
        await world.run(under_way, waiting)
        limiter.pause(50.0)
        assert len(told) == 5

    in_a_world(test)


def test_nobody_is_made_to_wait_for_longer_than_a_minute() -> None:
    async def test(world: World, limiter: RateLimiter, traffic: Traffic) -> None:
        limiter.set_limits("model", 1, None)
        limiter.pause(86400.0)
        await world.run(asyncio.create_task(traffic.request(0, 1.0)))
        assert traffic.began == [(0, MAX_HOLD_SECONDS)]

    in_a_world(test)


def test_of_several_models_behind_an_endpoint_the_smallest_limits_hold() -> None:
    async def test(world: World, limiter: RateLimiter, traffic: Traffic) -> None:
        limiter.set_limits("small", 1, None)
        limiter.set_limits("slow", 8, 60.0)
        limiter.set_limits("small", 2, None)
        await world.run(*(asyncio.create_task(traffic.request(name, 10.0)) for name in range(3)))
        assert traffic.began == [(0, 0.0), (1, 1.0), (2, 10.0)]

    in_a_world(test)


def test_timers_that_wake_a_little_early_wake_each_request_once_and_keep_the_pace() -> None:
    now, waits = 0.0, 0

    async def sleep(seconds: float) -> None:
        nonlocal now, waits
        now += seconds - 0.0004
        waits += 1

    async def run() -> None:
        limiter = RateLimiter(lambda: now, sleep)
        limiter.set_limits("model", 1, None)
        for _ in range(101):
            async with limiter.turn():
                pass

    asyncio.run(run())
    assert waits == 100
    assert now >= 100 * MIN_SPACING_S - TIMER_RESOLUTION_S
