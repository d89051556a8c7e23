"""Runs on unreliable endpoints: retries, waits for other runs, and counts."""

from __future__ import annotations

import asyncio
import queue
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest

from tests.cli.suites import WEATHER
from tests.engine.making import Clock, finish_of, make
from tests.programs import begin, program_of
from tests.providers.http.runs import TWICE, failures, retries_of, run_on, spec_of
from tests.providers.server import (
    APIS,
    Answer,
    Api,
    Call,
    Request,
    Server,
    Signal,
    Tell,
    document,
    error_document,
    said,
    serve,
)
from workbench.config.secrets import Secrets
from workbench.engine.events import BatchDone, BatchEvent, RequestDelayed, RunDone, RunEvent
from workbench.engine.plan import plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import RetryPolicy
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import RequestStarted, RetryScheduled

OSLO = Call("get_weather", {"city": "Oslo"})


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    found: Api = request.param
    return found


def busy(api: Api, retry_after: str = "30") -> Answer:
    return document(error_document(api, "slow down"), 429, {"retry-after": retry_after})


@dataclass
class SleepingClock(Clock):
    """Time passes by sleeping, too."""

    slept: list[int] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds))
        self.now += seconds


async def test_a_busy_endpoint_is_asked_again_and_the_wait_is_nobodys_latency(api: Api) -> None:
    clock = SleepingClock()
    endpoints = Endpoints(Secrets(), clock=clock, sleep=clock.sleep)
    with serve(busy(api), said(api, calls=[OSLO]), said(api, "Rain.")) as server:
        model = endpoints.open(spec_of(server, api), {})
        made = await make(model, RetryPolicy(sleep=clock.sleep), clock)
        await endpoints.close()
    assert finish_of(made).reason == "answered"
    assert made.trajectory.final_answer == "Rain."
    (retry,) = retries_of(made)
    assert (retry.round, retry.attempt, retry.wait_ms) == (1, 2, 30_000.0)
    assert "asks for fewer requests (429: slow down)" in retry.reason
    assert failures(made) == [retry.reason]
    assert clock.slept == [30]
    assert made.trajectory.model_latency_ms < 1000


async def test_all_runs_of_a_model_wait_when_its_endpoint_asks_for_a_pause_and_no_others_do(api: Api) -> None:
    asked, over = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds > 1:
            asked.set()
            await over.wait()

    clock = Clock()
    endpoints = Endpoints(Secrets(), clock=clock, sleep=sleep)
    patient = RetryPolicy(sleep=sleep)

    def answer(request: Request) -> Answer:
        return said(api, "Rain.") if over.is_set() or request.json["model"] != "test-model" else busy(api)

    with Server(answer) as limited, Server(lambda request: said("openai", "Sun.")) as free:
        held = asyncio.create_task(run_on(endpoints, spec_of(limited, api, name="limited"), patient))
        await asked.wait()
        other = asyncio.create_task(run_on(endpoints, spec_of(limited, api, name="limited"), patient))
        passed = await asyncio.gather(
            *(run_on(endpoints, spec_of(free, "openai", name="free"), patient) for _ in range(5))
        )
        assert [finish_of(made).reason for made in passed] == ["answered"] * 5
        assert len(limited.requests) == 1
        another = spec_of(limited, api, name="another", model="another-model")
        assert finish_of(await run_on(endpoints, another, patient)).reason == "answered"
        assert len(limited.requests) == 2
        assert not held.done()
        assert not other.done()
        clock.now += 30
        over.set()
        assert [finish_of(made).reason for made in await asyncio.gather(held, other)] == ["answered"] * 2
        assert len(limited.requests) == 4
        await endpoints.close()


async def test_an_endpoint_that_hangs_holds_up_nobody_else(api: Api) -> None:
    endpoints = Endpoints(Secrets())
    go_on = Signal()
    with (
        serve(Answer(said(api, "Late.").pieces, before=(go_on,))) as slow,
        Server(lambda request: said("openai", "Sun.")) as free,
    ):
        waiting = asyncio.create_task(run_on(endpoints, spec_of(slow, api, name="slow")))
        passed = await asyncio.gather(*(run_on(endpoints, spec_of(free, "openai", name="free")) for _ in range(5)))
        assert [finish_of(made).reason for made in passed] == ["answered"] * 5
        assert not waiting.done()
        go_on.set()
        assert finish_of(await waiting).reason == "answered"
        await endpoints.close()


async def test_a_run_that_is_stopped_while_it_waits_gives_its_place_to_the_next(api: Api) -> None:
    endpoints = Endpoints(Secrets())
    came, go_on = Signal(), Signal()
    answers = [Answer(said(api, "One.").pieces, before=(Tell(came), go_on)), said(api, "Two.")]
    with serve(*answers) as server:
        spec = spec_of(server, api, concurrency=1)
        first, stopped, last = (asyncio.create_task(run_on(endpoints, spec)) for _ in range(3))
        await asyncio.wrap_future(came.future)
        stopped.cancel()
        assert finish_of(await stopped).reason == "stopped"
        go_on.set()
        assert [finish_of(await task).reason for task in (first, last)] == ["answered"] * 2
        assert server.most_at_once == 1
        assert not any(isinstance(event.payload, RequestStarted) for event in (await stopped).events)
        await endpoints.close()


def test_a_slow_model_holds_up_no_other_model_of_a_batch_at_the_same_address(tmp_path: Path) -> None:
    events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    session = Runtime(events.put, program_of(tmp_path))
    suite = parse_suite(WEATHER, Path("weather.toml"))
    go_on = Signal()

    def answer(request: Request) -> Answer:
        pieces = said("openai", "Rain in Oslo.").pieces
        return Answer(pieces, before=(go_on,) if request.json["model"] == "slow" else ())

    def next_models(number: int) -> list[str]:
        done = (
            event.result.model for event in iter(lambda: events.get(timeout=30), None) if isinstance(event, RunDone)
        )
        return [model.partition("@")[0] for model in islice(done, number)]

    with Server(answer) as server:
        models = [f"openai:{name}@{server.url}/v1" for name in ("slow", "quick")]
        begin(session, plan_runs([suite], models=models, repeats=4), concurrency=1)
        assert next_models(4) == ["openai:quick"] * 4
        go_on.set()
        assert next_models(4) == ["openai:slow"] * 4
        session.close()


def test_a_batch_on_several_endpoints_ends_each_run_by_what_its_own_endpoint_does(tmp_path: Path) -> None:
    events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    session = Runtime(events.put, program_of(tmp_path), retries=TWICE)
    suite = parse_suite(WEATHER, Path("weather.toml"))
    with (
        serve(busy("openai", "0"), said("openai", calls=[OSLO]), said("openai", "Rain in Oslo.")) as first,
        serve(said("anthropic", calls=[OSLO]), said("anthropic", "Rain in Oslo.")) as second,
        serve(*[document({"error": "out of memory"}, 500)] * 2) as third,
    ):
        models = (
            f"openai:test-model@{first.url}/v1",
            f"anthropic:test-model@{second.url}",
            f"openai-responses:test-model@{third.url}/v1",
        )
        begin(session, plan_runs([suite], models=models), trusted=False)
        results = {}
        while not isinstance(event := events.get(timeout=30), BatchDone):
            if isinstance(event, RunDone):
                results[event.result.model] = event.result
        session.close()
    assert [results[model].status for model in models] == ["passed", "passed", "error"]
    assert results[models[0]].trajectory.rounds[0].errors != ()
    assert f"{third.url}/v1 failed (500: out of memory)" in (results[models[2]].error or "")


def test_a_run_whose_endpoint_told_another_one_to_wait_says_for_how_long(tmp_path: Path) -> None:
    events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    session = Runtime(events.put, program_of(tmp_path))
    suite = parse_suite(WEATHER, Path("weather.toml"))
    with serve(busy("openai", "30")) as server:
        (first,) = plan_runs([suite], models=[f"openai:test-model@{server.url}/v1"])
        (second,) = plan_runs([suite], models=[f"openai:test-model@{server.url}/v1"])
        begin(session, [first], trusted=False)
        while True:
            event = events.get(timeout=30)
            if isinstance(event, RunEvent) and isinstance(event.event.payload, RetryScheduled):
                break
        begin(session, [second], trusted=False)
        said: list[BatchEvent] = []
        while not said or not isinstance(said[-1], RequestDelayed):
            said.append(events.get(timeout=30))
        session.close()
    put_off = said[-1]
    assert isinstance(put_off, RequestDelayed)
    assert put_off.run_id == second.run_id
    assert 0 < put_off.wait_s <= 30
    while not events.empty():
        said.append(events.get())
    of_second = [event.event.payload for event in said if isinstance(event, RunEvent)]
    assert not any(isinstance(what, RequestStarted) for what in of_second)
    assert [event.result.status for event in said if isinstance(event, RunDone)] == ["stopped", "stopped"]
