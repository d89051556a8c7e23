"""Retries of requests: for which failures, how often, after which wait, and what they leave out of the figures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.engine.making import CALL, Clock, finish_of, make
from tests.engine.scripted import Cut, Fail, Say, ScriptedModel
from workbench.engine.recorder import TimeLimit
from workbench.providers.model import ModelError, RetryPolicy
from workbench.trajectory.events import RequestFailed, RequestStarted, RetryScheduled, RunFinished

BUSY = ModelError("busy", retryable=True)


@dataclass
class Waits:
    """Takes note of waits instead of waiting."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def policy(self, attempts: int = 3) -> RetryPolicy:
        return RetryPolicy(attempts=attempts, sleep=self, spread=lambda: 0.0)


async def test_a_passing_failure_is_tried_again_and_seen() -> None:
    waits = Waits()
    made = await make(ScriptedModel([Fail(BUSY), Say("Rain.")]), waits.policy())
    assert finish_of(made) == RunFinished("answered")
    kinds = [type(event.payload) for event in made.events]
    first = kinds.index(RequestStarted)
    assert kinds[first : first + 4] == [RequestStarted, RequestFailed, RetryScheduled, RequestStarted]
    assert RetryScheduled(1, 2, 500.0, "busy") in [event.payload for event in made.events]
    assert made.trajectory.rounds[0].errors == ("busy",)
    assert waits.seconds == [0.5]


async def test_what_a_failed_attempt_had_answered_is_void() -> None:
    whole = Say("Rain.", calls=[CALL])
    made = await make(ScriptedModel([Cut(whole, BUSY), whole, Say("Done.")]), Waits().policy())
    assert finish_of(made) == RunFinished("answered")
    assert [call.call.id for call in made.trajectory.calls] == ["call-0"]
    assert made.trajectory.rounds[0].text == "Rain."
    assert made.trajectory.rounds[0].errors == ("busy",)


async def test_the_latency_is_that_of_the_attempt_that_succeeded() -> None:
    clock = Clock()

    async def wait(seconds: float) -> None:
        clock.now += seconds

    policy = RetryPolicy(sleep=wait)
    model = ScriptedModel([Fail(ModelError("busy", retryable=True, retry_after_s=30)), Say("Rain.")])
    made = await make(model, policy, clock)
    assert made.trajectory.duration_ms > 30_000
    assert made.trajectory.model_latency_ms < 100
    assert 30_000 < made.trajectory.loop_ms < 30_100, "a client that retries by itself counts its waits"


class Queued(ScriptedModel):
    """A model whose turn takes as long as the test likes."""

    turns: asyncio.Event

    def turn(self) -> AbstractAsyncContextManager[None]:
        return self._turn()

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        await self.turns.wait()
        yield


async def test_waiting_for_a_turn_or_a_retry_does_not_count_towards_the_time_limit() -> None:
    model = Queued([Say("Rain.")])
    model.turns = asyncio.Event()
    run = asyncio.create_task(make(model, limits={"timeout_s": 0.01}))
    await asyncio.wait([run], timeout=0.1)
    assert not run.done()
    model.turns.set()
    assert finish_of(await run) == RunFinished("answered")


async def test_a_time_limit_counts_only_what_is_not_suspended() -> None:
    never = asyncio.Event()
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.02) as limit:
            async with limit.suspended(), limit.suspended():
                await asyncio.wait([asyncio.create_task(never.wait())], timeout=0.05)
            await never.wait()


async def test_a_run_can_be_stopped_while_it_waits_for_its_turn() -> None:
    model = Queued([Say("Rain.")])
    model.turns = asyncio.Event()
    run = asyncio.create_task(make(model))
    await asyncio.wait([run], timeout=0.01)
    run.cancel()
    assert finish_of(await run) == RunFinished("stopped")


async def test_the_last_attempt_ends_the_run_and_says_how_often_it_was_tried() -> None:
    waits = Waits()
    made = await make(ScriptedModel([Fail(BUSY)] * 3), waits.policy(attempts=3))
    assert finish_of(made) == RunFinished("error", "busy; tried 3 times")
    assert waits.seconds == [0.5, 1.0]


async def test_a_lasting_failure_is_not_tried_again() -> None:
    made = await make(ScriptedModel([Fail(ModelError("wrong key"))]), Waits().policy())
    assert finish_of(made) == RunFinished("error", "wrong key")


@pytest.mark.parametrize(("asked", "waited"), [(3.0, 3.0), (0.0, 0.0), (86400.0, 60.0), (-5.0, 0.0)])
async def test_an_endpoint_that_asks_for_a_wait_gets_it_up_to_a_minute(asked: float, waited: float) -> None:
    waits = Waits()
    busy = ModelError("busy", retryable=True, retry_after_s=asked)
    await make(ScriptedModel([Fail(busy), Say("Rain.")]), waits.policy())
    assert waits.seconds == [waited]


def test_waits_double_up_to_a_limit_and_spread_by_at_most_a_quarter() -> None:
    policy = RetryPolicy(attempts=9, spread=lambda: 1.0)
    assert [policy.wait_s(attempt, None) for attempt in range(1, 10)] == [
        *(0.75 * seconds for seconds in (0.5, 1, 2, 4, 8, 8, 8, 8)),
        None,
    ]
