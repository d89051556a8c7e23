"""The endpoints of a session: their models, rate limits, connections and slots."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, nullcontext
from dataclasses import field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workbench.config.clouds import Api
from workbench.config.models import DEFAULT_CONCURRENCY, PRESETS, ModelSpec
from workbench.config.request_settings import split_address, with_query
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.config.variables import with_variables
from workbench.dataclasses import dataclass
from workbench.limits import MAX_PAUSES
from workbench.numerals import count_text
from workbench.providers.http.answers import read_answer
from workbench.providers.http.checks import CheckResult, check, list_models
from workbench.providers.http.clients import Client, Clients, RequestAccess
from workbench.providers.http.errors import EndpointErrors, shown_url
from workbench.providers.http.key_command import KeyCommand, KeyCommandError
from workbench.providers.http.rate_limits import RateLimiter, RequestTurn
from workbench.providers.model import (
    FIRST_TOKEN_EVENTS,
    AnswerFinished,
    AnswerTooLargeError,
    HttpRequest,
    Model,
    ModelError,
    ModelRequest,
)
from workbench.providers.wire.chat import ChatWire
from workbench.providers.wire.messages import MessagesWire
from workbench.providers.wire.responses import ResponsesWire
from workbench.providers.wire.wire import Wire, as_dict, joined_states
from workbench.trajectory.events import (
    AnswerPaused,
    CallStarted,
    Message,
    ModelEvent,
    PromptProgress,
    TextDelta,
    TextWasReasoning,
    ToolDefinition,
)
from workbench.trajectory.media import Media, size_text

if TYPE_CHECKING:
    from workbench.providers.http.rate_limits import Leases


_WIRES: Mapping[Api, Callable[[ModelSpec, Secrets], Wire]] = {
    "chat": ChatWire,
    "responses": ResponsesWire,
    "messages": MessagesWire,
}


def wire_of(spec: ModelSpec, secrets: Secrets = NO_SECRETS) -> Wire:
    return _WIRES[spec.api](spec, secrets)


MIN_WAIT_MS = 100.0
"""The shortest wait that is reported; shorter waits may be delays of the network."""

MIN_SLOT_DELAY_S = 0.3
"""The least delay that proves a limited number of slots, in seconds.

The first tokens of late requests must come this much later than those of early requests, and take twice as long."""
_MAX_SAMPLES = 32
_MIN_PAIRS = 10
_MIN_ORDERED_SHARE = 0.8
"""In pairs of requests, the request with more requests ahead should wait longer. This is the least surplus of such
pairs, as a share of all pairs."""
_MAX_DIFFERENT_RATIO = 0.8
"""Two times differ if the shorter time is below this share of the longer time."""
_MAX_CONCURRENT_RATIO = 1.5
"""Requests within this multiple of the shortest time were computed at once."""


class ReportedSlots:
    """The slots of an endpoint: the number of requests that it computes at a time, as it reports.

    At most this number of requests is sent to the endpoint at a time."""

    def __init__(self, on_notice: Callable[[str], object]) -> None:
        self.total: int | None = None
        self._on_notice = on_notice
        self._gate: asyncio.Semaphore | None = None
        self._finding = asyncio.Lock()
        self._is_found = False

    @property
    def is_llama_cpp(self) -> bool:
        """Whether the endpoint is a llama.cpp server. No other server reports its slots in this form."""
        return self.total is not None

    async def find(self, spec: ModelSpec, client: Client, allowed: int) -> None:
        """Ask the endpoint for its number of slots, unless this was done before.

        Well-known hosted endpoints are not asked. `allowed` is the number of concurrent requests in the settings. If it
        exceeds the slots, the user gets a notice. If the endpoint does not report the number, the slots stay
        unknown."""
        if self._is_found and not self._finding.locked():
            return
        async with self._finding:
            # The endpoint is asked only once for all of its models, even if it reports no slots.
            if self._is_found:
                return
            self._is_found = True
            if _may_report_slots(spec, client):
                self.total = await _reported_slots(client)
            if self.total is None:
                return
            self._gate = asyncio.Semaphore(self.total)
            if self.total < allowed:
                slots = "1 slot" if self.total == 1 else f"{count_text(self.total)} slots"
                self._on_notice(f"{shown_url(spec.base_url)} has {slots}, so no more requests are sent to it at a time")

    async def acquire(self) -> Callable[[], None]:
        """Wait for a slot if the slots are known, and return a function that releases it."""
        if self._gate is None:
            return _nothing
        await self._gate.acquire()
        return self._gate.release


def _nothing() -> None:
    pass


_HOSTED = frozenset(urlsplit(preset.base_url).hostname for preset in PRESETS if not preset.is_local)


def _may_report_slots(spec: ModelSpec, client: Client) -> bool:
    # Hosted APIs and servers behind a proxy are not llama.cpp servers, so they get no requests to addresses that they
    # do not know.
    if spec.cloud is not None:
        return False
    return client.proxy is None and urlsplit(spec.base_url).hostname not in _HOSTED


async def _reported_slots(client: Client) -> int | None:
    """Return the number of slots that a llama.cpp server reports; `None` for any other server."""
    # The path `/props` is not below `/v1`: https://github.com/ggml-org/llama.cpp/tree/master/tools/server
    try:
        properties = json.loads(await client.get_side_request(f"{str(client.base_url).removesuffix('/v1')}/props"))
    except client.errors:
        return None
    except (ValueError, RecursionError, TimeoutError):
        return None
    slots = as_dict(properties).get("total_slots")
    if not isinstance(slots, int) or isinstance(slots, bool) or slots <= 0:
        return None
    return slots


@dataclass(slots=True, eq=False)
class RequestInFlight:
    """A request that has been sent and not yet fully answered.

    `ahead` is the number of earlier requests that were in flight when this request was sent, and `ends_s` are the times
    when they ended, in order. `first_s` is the time of the first token. `computing_s` is the time when the endpoint
    began to compute, as it reported. Times are monotonic seconds."""

    sent_s: float
    ahead: int
    first_s: float | None = None
    computing_s: float | None = None
    ends_s: list[float] = field(default_factory=list)


class RequestsInFlight:
    """The requests in flight to one model at an endpoint.

    The times of requests that wait at the endpoint show how many requests it computes at a time. This number is
    estimated, and `lower` is called with it whenever it decreases. `clock` returns monotonic seconds."""

    def __init__(self, lower: Callable[[int], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._lower = lower
        self._clock = clock
        self._under_way: list[RequestInFlight] = []
        self._streaming = self._most_streaming = 0
        self._seen: deque[tuple[int, float]] = deque(maxlen=_MAX_SAMPLES)
        self._slots: int | None = None

    def begin(self) -> RequestInFlight:
        flight = RequestInFlight(self._clock(), len(self._under_way))
        self._under_way.append(flight)
        return flight

    def first_token(self, flight: RequestInFlight) -> None:
        if flight.first_s is None:
            flight.first_s = self._clock()
            self._streaming += 1
            self._most_streaming = max(self._most_streaming, self._streaming)

    def computing(self, flight: RequestInFlight, took_ms: float) -> None:
        """Record that the endpoint has been computing a request for `took_ms` milliseconds."""
        if flight.computing_s is None:
            flight.computing_s = self._clock() - took_ms / 1000

    def end(self, flight: RequestInFlight) -> None:
        now_s = self._clock()
        at = self._under_way.index(flight)
        for later in self._under_way[at + 1 :]:
            later.ends_s.append(now_s)
        del self._under_way[at]
        if flight.first_s is not None:
            self._streaming -= 1
            self._seen.append((flight.ahead, flight.first_s - flight.sent_s))
            self._update_estimate()

    def waited_ms(self, flight: RequestInFlight, prompt_ms: float | None) -> float:
        """Return how long a request waited at the endpoint for other requests, in milliseconds; 0 if unknown.

        `prompt_ms` is the time that the endpoint took to process the prompt, as it reported."""
        if flight.first_s is None:
            return 0.0
        # The endpoint's own reports take precedence. Without a report, the wait follows from the number of slots, if
        # the number is known. A slot was free as soon as enough of the earlier requests had ended.
        if flight.computing_s is not None:
            until_s = flight.computing_s
        elif prompt_ms is not None:
            until_s = flight.first_s - prompt_ms / 1000
        elif self._slots is not None and self._slots <= flight.ahead < self._slots + len(flight.ends_s):
            until_s = flight.ends_s[flight.ahead - self._slots]
        else:
            return 0.0
        waited_ms = (min(until_s, flight.first_s) - flight.sent_s) * 1000
        if waited_ms < MIN_WAIT_MS:
            return 0.0
        return round(waited_ms, 3)

    def _update_estimate(self) -> None:
        found = estimated_slots(self._seen)
        if found is None:
            return
        # Answers that streamed at the same time were computed at the same time.
        slots = max(found, self._most_streaming)
        if slots < max(ahead for ahead, _ in self._seen) + 1 and (self._slots is None or slots < self._slots):
            self._slots = slots
            self._seen.clear()
            self._lower(slots)


def estimated_slots(samples: deque[tuple[int, float]]) -> int | None:
    """Estimate how many requests an endpoint computes at a time; `None` if the times do not show it.

    `samples` has a pair for each finished request: the number of requests ahead of it, and the seconds to its first
    token."""
    # These fast tests come first, because comparing all pairs after each request would take longer than reading its
    # answer.
    if not samples:
        return None
    waits_s = [first_s for _, first_s in samples]
    if max(waits_s) - min(waits_s) < MIN_SLOT_DELAY_S:
        return None
    middle = median(ahead for ahead, _ in samples)
    early = [first_s for ahead, first_s in samples if ahead < middle]
    late = [first_s for ahead, first_s in samples if ahead >= middle]
    if not early or median(late) < max(2 * median(early), median(early) + MIN_SLOT_DELAY_S):
        return None
    # If requests wait for each other, first tokens come later the more requests are ahead. As in Kendall's rank
    # correlation, pairs of requests in this order are counted against pairs in the opposite order.
    pairs = []
    for one, other in combinations(samples, 2):
        if one[0] != other[0] and min(one[1], other[1]) < _MAX_DIFFERENT_RATIO * max(one[1], other[1]):
            pairs.append((one[1] - other[1]) * (one[0] - other[0]))
    if len(pairs) < _MIN_PAIRS:
        return None
    rising = sum(pair > 0 for pair in pairs)
    falling = sum(pair < 0 for pair in pairs)
    if rising - falling < _MIN_ORDERED_SHARE * len(pairs):
        return None
    # A request whose first token came after about the shortest time did not wait: the server computed it at the same
    # time as all requests ahead of it. The largest number of requests computed at the same time is the number of slots.
    shortest = min(first_s for _, first_s in samples)
    return max(ahead + 1 for ahead, first_s in samples if first_s <= _MAX_CONCURRENT_RATIO * shortest)


class EndpointModel:
    """One model at one HTTP endpoint.

    A model may have several names in the settings; they share one rate limiter and one list of requests in flight. All
    models of an endpoint share its slots. `access` has the values of the key, the headers and the query."""

    def __init__(
        self,
        spec: ModelSpec,
        access: RequestAccess,
        wire: Wire,
        limiter: RateLimiter,
        clients: Clients,
        errors: EndpointErrors,
        slots: ReportedSlots,
        flights: RequestsInFlight,
    ) -> None:
        self.name = spec.name
        self.seed = wire.seed
        self.notices = wire.notices
        self.spec = spec
        self.access = access
        self._wire = wire
        self._limiter = limiter
        self._clients = clients
        self._errors = errors
        self._slots = slots
        self._flights = flights
        self._client: Client | None = None

    async def start(self) -> None:
        """Import the HTTP library, create the client, and ask for the endpoint's slots.

        Raises ModelError."""
        client = await self._connected()
        # Run the command that prints the key now, because the time of the start does not count as time of a run.
        if self.access.command is not None:
            await self.access.command.key()
        await self._slots.find(self.spec, client, self._limiter.allowed)
        if self._slots.is_llama_cpp:
            self._wire.expect_llama_cpp()

    async def _connected(self) -> Client:
        if self._client is None:
            self._client = await self._clients.client(self.spec, self.access, self._errors)
        return self._client

    def accepts_tool(self, tool: ToolDefinition, *, trusted: bool) -> bool:
        """Return whether a tool that model providers run can be offered to this model.

        The user must have allowed providers to run the tool (`trusted`). The tool must be defined for the model's API,
        or the endpoint must offer the tool by itself."""
        return trusted and (not tool.provider or self._wire.api in tool.provider)

    def accepts_media(self, media: Media) -> bool:
        """Return whether the model's settings and its API accept an image or a sound."""
        if media.is_image:
            return self.spec.accepts_images
        return self.spec.audio and self._wire.api == "chat"

    def with_pause_callback(self, on_pause: Callable[[float], object]) -> Model:
        """Return this model for a single run.

        `on_pause` is called with the length in seconds of each pause that delays a request of the run."""
        return ModelWithPauses(self, on_pause)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which one request is made. Entering it waits until the limits allow the request."""
        return self.turn_with_pauses(lambda _: None)

    def turn_with_pauses(self, on_pause: Callable[[float], object]) -> AbstractAsyncContextManager[None]:
        """Return the context in which one request is made, as `turn` does.

        `on_pause` is called with the length in seconds of each pause that delays the request."""
        return _RequestTurn(self, self._limiter.turn(on_pause), self._slots)

    async def http_request(self, request: ModelRequest) -> HttpRequest:
        """Return the HTTP request that `stream` would send.

        Raises ModelError."""
        client = await self._connected()
        body = self._wire.body(_with_short_media(request))
        url, query = f"{client.base_url}{self._wire.path}", dict(self.spec.query)
        if client.signer is not None:
            url = client.signer.sample_request.url
            query = split_address(url)[1] | query
        # Variables in the query are shown by name, like variables in headers.
        url = with_query(shown_url(url), query.items(), safe="${}")
        return HttpRequest("POST", url, client.headers_without_secrets(self.spec), json.loads(body))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Yield the events of the answer to a request.

        If the provider pauses the answer, the part so far is sent back until the answer is complete. Raises ModelError
        for every failure of the endpoint, and AnswerTooLargeError for too many pauses."""
        so_far = _PausableAnswer(request)
        while (asked := so_far.next_request) is not None:
            client = await self._connected()
            began = False
            flight = self._flights.begin()
            try:
                response = await client.post(self._wire.path, self._wire.body(asked), self.spec.read_timeout_s)
                began = True
                try:
                    async with aclosing(read_answer(response, self._wire.reader(asked), self._errors)) as arrivals:
                        async for events in arrivals:
                            for event in events:
                                if isinstance(event, AnswerFinished):
                                    so_far.end(self._with_wait(event, flight))
                                else:
                                    self._record_progress(event, flight)
                                    so_far.add(event)
                                    yield event
                finally:
                    response.close()
            except (AnswerTooLargeError, KeyCommandError):
                raise
            except ModelError as error:
                raise self._errors.of_reading(error) from error
            except RecursionError:
                raise self._errors.error("answers with JSON that is too deeply nested: check the server") from None
            except client.errors as error:
                raise self._failed(error, asked, has_begun=began) from error
            finally:
                self._flights.end(flight)
            if so_far.next_request is not None:
                yield AnswerPaused(request.round, so_far.pauses)
        assert so_far.whole is not None, "otherwise its reader raised an error"
        yield so_far.whole

    def _failed(self, error: Exception, request: ModelRequest, *, has_begun: bool) -> ModelError:
        """Convert an error of the client to a ModelError.

        `has_begun` means that at least the headers of the response had arrived. If the endpoint asked for a pause, all
        further requests to the model are paused."""
        tool_at = partial(self._wire.tool_at, request)
        has_media = any(message.media for message in request.messages)
        failed = self._errors.of_exception(
            error, path=self._wire.path, has_begun=has_begun, tool_at=tool_at, has_media=has_media
        )
        # If an endpoint asks one request to wait, it would refuse the other requests to this model too.
        if failed.retryable and failed.retry_after_s is not None:
            self._limiter.pause(failed.retry_after_s)
        return failed

    def _record_progress(self, event: ModelEvent, flight: RequestInFlight) -> None:
        if isinstance(event, FIRST_TOKEN_EVENTS):
            self._flights.first_token(flight)
        elif isinstance(event, PromptProgress):
            self._flights.computing(flight, event.took_ms)

    def _with_wait(self, end: AnswerFinished, flight: RequestInFlight) -> AnswerFinished:
        """Return the last event of an answer with the time that its request waited at the endpoint."""
        if waited_ms := self._flights.waited_ms(flight, end.prompt_ms):
            return replace(end, waited_ms=waited_ms)
        return end


class _PausableAnswer:
    """An answer that the provider may pause, and the request that continues it."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._text: list[str] = []
        self._calls = 0
        self.pauses = 0
        self.whole: AnswerFinished | None = None
        """The end of the answer so far."""
        self.next_request: ModelRequest | None = request
        """The next request; `None` if the answer is complete."""

    def add(self, event: ModelEvent) -> None:
        if isinstance(event, TextDelta):
            self._text.append(event.text)
        elif isinstance(event, TextWasReasoning):
            self._text.clear()
        elif isinstance(event, CallStarted):
            self._calls += 1

    def end(self, part: AnswerFinished) -> None:
        """End the current part of the answer, and set `next_request` if the provider paused the answer here.

        Raises AnswerTooLargeError for too many pauses."""
        self.whole = part if self.whole is None else _joined(self.whole, part)
        self.next_request = None
        if part.paused:
            self.pauses += 1
            if self.pauses > MAX_PAUSES:
                raise AnswerTooLargeError(MAX_PAUSES.reached())
            so_far = Message("assistant", "".join(self._text), provider_state=self.whole.provider_state)
            messages = (*self._request.messages, so_far)
            calls_before = self._request.calls_before + self._calls
            self.next_request = replace(self._request, messages=messages, calls_before=calls_before)


class _RequestTurn:
    """The context of one request to a model: it waits for the limits, then for a slot of the endpoint."""

    def __init__(self, model: EndpointModel, turn: RequestTurn, slots: ReportedSlots) -> None:
        self._model = model
        self._turn = turn
        self._slots = slots
        self._release = _nothing

    async def __aenter__(self) -> None:
        # Models such as a judge are started here, at their first request. The start does not count as latency.
        await self._model.start()
        await self._turn.__aenter__()
        try:
            self._release = await self._slots.acquire()
        except BaseException:
            await self._turn.__aexit__()
            raise

    async def __aexit__(self, *_error: object) -> None:
        self._release()
        await self._turn.__aexit__()


def _with_short_media(request: ModelRequest) -> ModelRequest:
    messages = []
    for message in request.messages:
        media = [replace(each, data=f"({size_text(each.size)})") for each in message.media]
        messages.append(replace(message, media=tuple(media)))
    return replace(request, messages=tuple(messages))


def _joined(first: AnswerFinished, second: AnswerFinished) -> AnswerFinished:
    usage = second.usage or first.usage
    if first.usage is not None and second.usage is not None:
        usage = first.usage + second.usage
    return AnswerFinished(
        second.stop_reason,
        usage,
        joined_states(first.provider_state, second.provider_state),
        (*first.deviations, *second.deviations),
        first.prompt_ms,
        first.waited_ms + second.waited_ms,
    )


class ModelWithPauses:
    """An endpoint's model for one run, which reports the pauses that delay the run."""

    def __init__(self, model: EndpointModel, on_pause: Callable[[float], object]) -> None:
        self._model = model
        self._on_pause = on_pause
        self.name, self.seed, self.notices = model.name, model.seed, model.notices

    async def start(self) -> None:
        await self._model.start()

    def accepts_tool(self, tool: ToolDefinition, *, trusted: bool) -> bool:
        return self._model.accepts_tool(tool, trusted=trusted)

    def accepts_media(self, media: Media) -> bool:
        return self._model.accepts_media(media)

    def turn(self) -> AbstractAsyncContextManager[None]:
        return self._model.turn_with_pauses(self._on_pause)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        return self._model.stream(request)

    async def http_request(self, request: ModelRequest) -> HttpRequest:
        return await self._model.http_request(request)


class Endpoints:
    """The endpoints of a session, on one event loop.

    Each model at a base URL has one rate limiter. All models with the same base URL and key share one connection pool.

    `clock` returns monotonic seconds and `sleep` waits seconds, for the rate limiters. `starting` returns a context
    that is entered while a model starts. `on_endpoint_pause` is called with base URL, model and seconds when an
    endpoint asks for a pause. If there are `leases`, they limit requests in place of the settings. `on_notice` is
    called with a sentence when an endpoint gets fewer concurrent requests than the settings allow."""

    def __init__(
        self,
        secrets: Secrets,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        starting: Callable[[str], AbstractContextManager[object]] = lambda _what: nullcontext(),
        on_endpoint_pause: Callable[[str, str, float], object] = lambda _url, _model, _seconds: None,
        leases: Leases | None = None,
        on_notice: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._secrets = secrets
        self._leases = leases
        self._clock = clock
        self._sleep = sleep
        self._on_endpoint_pause = on_endpoint_pause
        self._limiters: dict[tuple[str, str], RateLimiter] = {}
        self._on_notice = on_notice
        self._slots: dict[str, ReportedSlots] = {}
        self._flights: dict[tuple[str, str], RequestsInFlight] = {}
        self._models: dict[str, EndpointModel] = {}
        self._commands: dict[tuple[tuple[str, ...], Path | None, frozenset[tuple[str, str]]], KeyCommand] = {}
        self._clients = Clients(starting, secrets)

    def open(self, spec: ModelSpec, environment: Mapping[str, str]) -> EndpointModel:
        """Return a model at its endpoint, without connecting yet.

        Raises ModelError when the variable of the key is not set."""
        # A model is reused only if its settings, key and headers are unchanged.
        access = self._access(spec, environment)
        known = self._models.get(spec.name)
        if known is not None and known.spec == spec and known.access == access:
            return known
        limiter = self._limiter(spec.endpoint, spec.model)
        limiter.set_limits(spec.name, spec.concurrency or DEFAULT_CONCURRENCY, spec.requests_per_minute)
        model = EndpointModel(
            spec,
            access,
            wire_of(spec, self._secrets),
            limiter,
            self._clients,
            EndpointErrors(spec, self._secrets),
            self._slots_of(spec),
            self._flights_of(spec, limiter),
        )
        self._models[spec.name] = model
        return model

    def pause(self, endpoint: str, model: str, seconds: float) -> None:
        """Pause the requests to a model, because its endpoint asked another process for a pause."""
        self._limiter(endpoint, model).pause_silently(seconds)

    def _limiter(self, endpoint: str, model: str) -> RateLimiter:
        if self._leases is not None:
            return self._leases.limiter(endpoint, model)
        if (endpoint, model) not in self._limiters:
            on_endpoint_pause = partial(self._on_endpoint_pause, endpoint, model)
            self._limiters[endpoint, model] = RateLimiter(self._clock, self._sleep, on_endpoint_pause)
        return self._limiters[endpoint, model]

    def _slots_of(self, spec: ModelSpec) -> ReportedSlots:
        if spec.endpoint not in self._slots:
            self._slots[spec.endpoint] = ReportedSlots(self._on_notice)
        return self._slots[spec.endpoint]

    def _flights_of(self, spec: ModelSpec, limiter: RateLimiter) -> RequestsInFlight:
        place = spec.endpoint, spec.model
        if place not in self._flights:

            def lower(slots: int) -> None:
                limiter.lower_to(slots)
                requests = "1 request" if slots == 1 else f"{slots} requests"
                self._on_notice(
                    f"{spec.model} at {shown_url(spec.base_url)} is sent {requests} at a time from now on, because "
                    "first tokens came later the more requests were in flight"
                )

            self._flights[place] = RequestsInFlight(lower, self._clock)
        return self._flights[place]

    async def check(self, spec: ModelSpec, environment: Mapping[str, str]) -> CheckResult:
        """Check whether the endpoint answers, accepts the key and has the model, without a request to the model.

        The result also describes failures; no error is raised."""
        errors = EndpointErrors(spec, self._secrets)
        try:
            client = await self._clients.client(spec, self._access(spec, environment), errors)
        except ModelError as error:
            return CheckResult(False, str(error))
        return await check(spec, client, errors)

    async def list_models(self, spec: ModelSpec, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of the models that an endpoint lists.

        Raises ModelError."""
        errors = EndpointErrors(spec, self._secrets)
        client = await self._clients.client(spec, self._access(spec, environment), errors)
        return await list_models(spec, client, errors)

    async def close(self) -> None:
        await self._clients.close()

    def _access(self, spec: ModelSpec, environment: Mapping[str, str]) -> RequestAccess:
        """Return the key, headers and query of requests. Raises ModelError for a variable that is not set."""

        def filled(settings: Mapping[str, str], kind: str) -> tuple[tuple[str, str], ...]:
            values = {}
            for name, written in settings.items():
                values[name] = with_variables(
                    written, lambda variable: self._value_of(variable, spec, environment)
                ).strip()
                if not (values[name].isascii() and values[name].isprintable()):
                    raise ModelError(
                        f"{spec.name}: the variables of its {kind} {name} contain characters that a {kind} cannot "
                        "have: copy their values again"
                    )
            return tuple(sorted(values.items()))

        headers = {name.lower(): written for name, written in spec.headers.items()}
        return RequestAccess(
            self._key_of(spec, environment),
            filled(headers, "header"),
            filled(spec.query, "query"),
            self._command_of(spec, environment),
            self._variables_of(spec, environment),
        )

    def _value_of(self, variable: str, spec: ModelSpec, environment: Mapping[str, str]) -> str:
        value = environment.get(variable, "").strip()
        if not value:
            raise ModelError(
                f"{spec.name} needs the variable {variable}, which is not set: set it in the environment or in a "
                "file .env next to the suites"
            )
        self._secrets.add(variable, value)
        return value

    def _command_of(self, spec: ModelSpec, environment: Mapping[str, str]) -> KeyCommand | None:
        """Return the command that prints a model's key; `None` if no command is set.

        Models with the same command share one object."""
        if not spec.key_command:
            return None
        folder = None
        if spec.file is not None:
            folder = spec.file.absolute().parent
        if spec.origin == "user":
            # The user's own command is run without asking. So it must not get the variables of a `.env` beside a suite,
            # which could make it start another program, for example with LD_PRELOAD.
            environment = os.environ
        place = spec.key_command, folder, frozenset(environment.items())
        if place not in self._commands:
            self._commands[place] = KeyCommand(spec.key_command, folder, environment, self._secrets, self._clock)
        return self._commands[place]

    def _variables_of(self, spec: ModelSpec, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the environment variables that hold a cloud model's credentials, as pairs of name and value.

        Keys among the values are registered as secrets."""
        if spec.place is None:
            return ()
        source, given = spec.place.source, {}
        for name in source.variables:
            if value := environment.get(name, "").strip():
                given[name] = value
                if name in source.secret_variables:
                    self._secrets.add(name, value)
        return tuple(given.items())

    def _key_of(self, spec: ModelSpec, environment: Mapping[str, str]) -> str | None:
        if spec.problem is not None:
            raise ModelError(spec.problem)
        variable = spec.api_key_env
        if variable is None:
            return None
        key = _given_key(spec, environment)
        if not key and variable in environment:
            raise ModelError(
                f"{spec.name} needs a key, and {variable} is empty: give it a value, or remove it from the "
                "environment, where even an empty one wins over .env"
            )
        if not key:
            raise ModelError(
                f"{spec.name} needs a key, and {variable} is not set: set it in the environment or in a file .env "
                "next to the suites"
            )
        self._secrets.add(variable, key)
        if not (key.isascii() and key.isprintable()):
            raise ModelError(f"{variable} contains characters that a key cannot have: copy the key again")
        return key


def _given_key(spec: ModelSpec, environment: Mapping[str, str]) -> str | None:
    if spec.api_key_env is None:
        return None
    return environment.get(spec.api_key_env, "").strip()
