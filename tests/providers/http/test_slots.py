"""How many requests an endpoint computes at a time, and that waiting for a slot is no model's latency."""

from __future__ import annotations

import asyncio
import heapq
import random
from itertools import count

import pytest

from tests.engine.making import Clock
from tests.providers.http.runs import run_on, spec_of
from tests.providers.server import Answer, Pause, Request, Server, said
from tests.providers.server.formats import sse
from tests.sampled_rows import first_of
from workbench.config.secrets import Secrets
from workbench.providers.http import endpoints as module
from workbench.providers.http.endpoints import Endpoints, RequestInFlight, RequestsInFlight
from workbench.trajectory.events import PromptProgress, ResponseFinished

# Limits reported by the server


@pytest.mark.parametrize("total", [1, 3])
async def test_no_more_requests_are_in_flight_than_the_server_has_slots(total: int) -> None:
    told: list[str] = []
    endpoints = Endpoints(Secrets(), on_notice=told.append)
    with Server(lambda _: Answer(said("openai", "Rain.").pieces, before=(Pause(0.01),)), slots=total) as server:
        spec = spec_of(server, "openai")
        other = spec_of(server, "openai", name="other", model="other-model")
        await asyncio.gather(*(run_on(endpoints, each) for each in (spec, other) for _ in range(6)))
        await endpoints.close()
    assert server.most_at_once <= total
    slots_ = "1 slot" if total == 1 else f"{total} slots"
    assert told == [f"{server.url}/v1 has {slots_}, so no more requests are sent to it at a time"]
    assert all(request.json["return_progress"] is True for request in server.requests)


async def test_an_endpoint_that_tells_nothing_is_asked_once_and_keeps_the_default() -> None:
    told: list[str] = []
    endpoints = Endpoints(Secrets(), on_notice=told.append)
    with Server(lambda _: said("openai", "Rain.")) as server:
        await asyncio.gather(*(run_on(endpoints, spec_of(server, "openai")) for _ in range(9)))
        await endpoints.close()
    assert told == []
    assert "return_progress" not in server.requests[0].json


async def test_more_slots_than_requests_are_not_worth_a_word() -> None:
    told: list[str] = []
    endpoints = Endpoints(Secrets(), on_notice=told.append)
    with Server(lambda _: said("openai", "Rain."), slots=8) as server:
        await run_on(endpoints, spec_of(server, "openai"))
        await endpoints.close()
    assert told == []


# Known waits


def progress(took_ms: float) -> bytes:
    reading = {"total": 40, "cache": 0, "processed": 0, "time_ms": took_ms}
    return sse({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}], "prompt_progress": reading})


@pytest.mark.parametrize("how", ["progress", "timings"])
async def test_waiting_at_the_endpoint_is_named_and_is_no_latency(how: str) -> None:
    pieces = said("openai", "Rain.").pieces
    timings = sse({"choices": [], "timings": {"prompt_n": 40, "prompt_ms": 1.0}})
    waiting = (progress(0.0), *pieces) if how == "progress" else (*pieces[:-1], timings, *pieces[-1:])
    endpoints = Endpoints(Secrets())
    with Server([Answer((Pause(0.3), *waiting))], slots=1) as server:
        made = await run_on(endpoints, spec_of(server, "openai"))
        await endpoints.close()
    (finished,) = [event.payload for event in made.events if isinstance(event.payload, ResponseFinished)]
    assert finished.waited_ms >= 290
    assert finished.first_token_ms is not None and finished.first_token_ms < 250
    assert finished.latency_ms < 250
    (round_,) = made.trajectory.rounds
    assert round_.waited_ms == finished.waited_ms
    assert made.trajectory.loop_ms < 250
    if how == "progress":
        assert [e.payload for e in made.events if isinstance(e.payload, PromptProgress)] == [
            PromptProgress(1, 0, 40, 0.0)
        ]


# Limits inferred from waits


def simulated(
    computed: int, at_once: int, requests: int, seed: int, noise: float = 0.2, streams: bool = True
) -> list[int]:
    """Return the limits found for a server that computes `computed` requests at a time. Each request is first read,
    then answered in pieces or at once."""
    clock, drawn, lowered = Clock(step=0.0), random.Random(seed), list[int]()
    allowed = [at_once]

    def lower(slots: int) -> None:
        lowered.append(slots)
        allowed[0] = slots

    flights = RequestsInFlight(lower, clock)
    events: list[tuple[float, int, str, RequestInFlight]] = []
    numbers, queue, computing, flying, sent = count(), list[RequestInFlight](), 0, 0, 0

    def around(seconds: float) -> float:
        return seconds * drawn.uniform(1 - noise, 1 + noise)

    while sent < requests or flying:
        while sent < requests and flying < allowed[0]:
            queue.append(flights.begin())
            sent, flying = sent + 1, flying + 1
        while queue and computing < computed:
            flight, reading = queue.pop(0), around(1.0)
            computing += 1
            end = clock.now + reading + around(3.0)
            first = clock.now + reading if streams else end
            heapq.heappush(events, (first, next(numbers), "first", flight))
            heapq.heappush(events, (end, next(numbers), "end", flight))
        at, _, what, flight = heapq.heappop(events)
        clock.now = at
        if what == "first":
            flights.first_token(flight)
        else:
            flights.end(flight)
            computing, flying = computing - 1, flying - 1
    return lowered


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("computed", first_of([1, 2, 4], 1))
def test_a_server_that_computes_few_at_a_time_is_sent_no_more(computed: int, streams: bool) -> None:
    found = [simulated(computed, 8, 40, seed, streams=streams) for seed in range(30)]
    last = [limits[-1] if limits else 8 for limits in found]
    # Four of eight without streaming look much like eight, so half of them are detected.
    assert sum(limit == computed for limit in last) >= (27 if streams or computed < 4 else 10)
    assert all(limit in (computed, 8) for limit in last)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.05, 0.5, 0.95])
def test_a_server_that_computes_all_at_a_time_is_never_slowed_down(noise: float) -> None:
    found = [simulated(8, 8, 200, seed, noise, streams) for seed in range(100) for streams in (True, False)]
    assert sum(bool(limits) for limits in found) <= 1


def test_the_wait_of_those_in_flight_is_known_once_the_slots_are() -> None:
    clock, waits = Clock(step=0.0), dict[int, float]()
    flights = RequestsInFlight(lambda _slots: None, clock)
    flying = [flights.begin() for _ in range(8)]
    for number, flight in enumerate(flying):
        clock.now += 1.0
        flights.first_token(flight)
        clock.now += 3.0
        waits[number] = flights.waited_ms(flight, None)
        flights.end(flight)
    assert waits[0] == 0.0
    assert waits[7] == 28_000.0


async def test_a_real_endpoint_with_one_slot_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_SLOT_DELAY_S", 0.02)
    told: list[str] = []
    endpoints = Endpoints(Secrets(), on_notice=told.append)
    ahead = [0]

    def answer(_request: Request) -> Answer:
        ahead[0] += 1
        return Answer(said("openai", "Rain.").pieces, before=(Pause(0.03 * min(ahead[0], 8)),))

    with Server(answer) as server:
        spec = spec_of(server, "openai")
        await asyncio.gather(*(run_on(endpoints, spec) for _ in range(10)))
        await endpoints.close()
    why = "first tokens came later the more requests were in flight"
    # A busy machine adds delays, so the rest may be a little more than one.
    few = [f"{number} at a time" for number in ("1 request", "2 requests", "3 requests")]
    assert told[:1] in [[f"test-model at {server.url}/v1 is sent {each} from now on, because {why}"] for each in few]
