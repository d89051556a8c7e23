"""The limits of an endpoint hold over all workers, also when some are lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.providers.http.test_rate_limiter import World
from workbench.evaluation.cluster.dask import SILENCE_TIMEOUT_S
from workbench.evaluation.cluster.endpoint_limits import LOST_LEASE_TIMEOUT_S, EndpointLimits
from workbench.evaluation.cluster_worker import RequestWatch
from workbench.limits import MAX_HOLD_SECONDS
from workbench.providers.http.rate_limits import LeasedLimiter


class Work(NamedTuple):
    """A portion: how many requests it makes, how long each takes, and whether its worker is lost after some."""

    requests: int
    takes_s: float
    lost_after: int | None


portions = st.lists(
    st.builds(Work, st.integers(1, 40), st.floats(0.01, 9.0), st.none() | st.integers(0, 5)), min_size=1, max_size=12
)


@settings(max_examples=examples(30))
@given(portions, st.integers(1, 9), st.none() | st.floats(0.5, 120.0), st.integers(1, 5))
def test_no_minute_has_more_requests_and_no_moment_more_at_a_time_than_the_endpoint_allows(
    works: list[Work], concurrency: int, per_minute: float | None, workers: int
) -> None:
    arrivals: list[float] = []
    under_way: list[int] = []

    async def run() -> None:
        world = World()
        limits = EndpointLimits("http://endpoint/v1", "model", concurrency, per_minute, world.clock)
        going: Counter[str] = Counter()

        async def request(limiter: LeasedLimiter, takes_s: float) -> None:
            async with limiter.turn():
                arrivals.append(world.now)
                going["on"] += 1
                under_way.append(going["on"])
                try:
                    await world.sleep(takes_s)
                finally:
                    going["on"] -= 1

        async def worker(mine: list[tuple[int, Work]]) -> None:
            limiter = LeasedLimiter(world.clock, world.sleep)
            for number, work in mine:
                while not limits.can_lend():
                    await world.sleep(0.3)
                lease = limits.lend(min(limits.most_parts, workers))
                limiter.add_lease(number, lease)
                requests = [asyncio.create_task(request(limiter, work.takes_s)) for _ in range(work.requests)]
                if work.lost_after is not None and work.lost_after < work.requests:
                    await requests[work.lost_after]
                    for each in requests:
                        each.cancel()
                    limits.lost(lease)
                    limiter = LeasedLimiter(world.clock, world.sleep)
                    continue
                await asyncio.gather(*requests)
                limits.return_lease(lease, await limiter.return_lease(number))

        numbered = list(enumerate(works))
        await world.run(*(asyncio.create_task(worker(numbered[first::workers])) for first in range(workers)))

    asyncio.run(run())
    assert max(under_way, default=0) <= concurrency
    if per_minute is not None:
        # A rate below one per minute determines the wait. A higher one is counted per minute.
        span_s, most = (60.0, int(per_minute)) if per_minute >= 1 else (60.0 / per_minute, 1)
        for first in arrivals:
            assert sum(first <= at < first + span_s for at in arrivals) <= most


def test_parts_are_fair_and_what_a_lost_worker_had_rests_before_it_is_lent_again() -> None:
    now = [100.0]
    limits = EndpointLimits("http://endpoint/v1", "model", 5, 1200.0, lambda: now[0])
    assert limits.most_parts == 5
    one, two = limits.lend(2), limits.lend(2)
    assert (one.concurrency, two.concurrency) == (3, 2) and not limits.can_lend()
    assert one.waits_s is not None and len(one.waits_s) == 200  # each good for three requests a minute
    limits.lost(two)
    now[0] += LOST_LEASE_TIMEOUT_S - 0.1
    assert not limits.can_lend()
    now[0] += 0.2
    assert limits.can_lend() and limits.lend(2).concurrency == 2
    limits.return_lease(one, (7.0,) * 200)
    again = limits.lend(2)
    limits.hold(9000.0)  # no longer than any worker waits for it
    assert limits.held_s == pytest.approx(MAX_HOLD_SECONDS)
    assert again.concurrency == 3 and again.waits_s is not None and min(again.waits_s) == 7.0


def test_a_worker_that_was_frozen_until_it_was_given_up_does_not_take_old_questions_for_news() -> None:
    now = [100.0]
    watch = RequestWatch(lambda: now[0])
    now[0] += 500.0  # the first question may take long: all others are asked, too
    assert watch.record_request() and not watch.is_silent
    now[0] += SILENCE_TIMEOUT_S - 0.1
    assert watch.record_request()
    now[0] += SILENCE_TIMEOUT_S + 0.1
    assert watch.is_silent and not watch.record_request() and watch.is_silent
