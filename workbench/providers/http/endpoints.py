"""All endpoints of a session: rate limits for each model, connection pools for each endpoint."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from workbench.config.models import DEFAULT_CONCURRENCY, ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.answers import read_answer
from workbench.providers.http.check import CheckResult, check, list_models
from workbench.providers.http.clients import Clients
from workbench.providers.http.errors import EndpointErrors, shown_url
from workbench.providers.http.rate_limits import RateLimiter
from workbench.providers.http.slots import Flight, Flights, ToldSlots
from workbench.providers.model import (
    FIRST_TOKENS,
    AnswerFinished,
    HttpRequest,
    Model,
    ModelError,
    ModelRequest,
    TooMuchError,
)
from workbench.providers.wire.registry import wire_of
from workbench.providers.wire.wire import Wire
from workbench.trajectory.events import ModelEvent, PromptProgress

if TYPE_CHECKING:
    from workbench.providers.http.rate_limits import Leases

# A model behind an HTTP endpoint: combines wire format, rate limiter, client and errors.


class EndpointModel:
    """One model at one endpoint. All names of a model share its rate limiter and its flights, all models of an endpoint
    share its clients and slots. `key` is the value of the API key, `None` when the model needs none."""

    def __init__(
        self,
        spec: ModelSpec,
        key: str | None,
        wire: Wire,
        limiter: RateLimiter,
        clients: Clients,
        errors: EndpointErrors,
        slots: ToldSlots,
        flights: Flights,
    ) -> None:
        self.name = spec.name
        self.seed = wire.seed
        self.notices = wire.notices
        self.spec = spec
        self.key = key
        self._wire = wire
        self._limiter = limiter
        self._clients = clients
        self._errors = errors
        self._slots = slots
        self._flights = flights

    async def start(self) -> None:
        """Import what speaks HTTP, make the client, and ask for the endpoint's slots. Raises ModelError."""
        client = await self._clients.client(self.spec, self.key, self._errors)
        await self._slots.find(self.spec, client, self._limiter.allowed)
        if self._slots.is_llama_cpp:
            self._wire.expect_llama_cpp()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait until the endpoint may be asked again."""
        return self.turn_reporting(lambda _: None)

    @asynccontextmanager
    async def turn_reporting(self, on_pause: Callable[[float], object]) -> AsyncGenerator[None]:
        """As `turn`; `on_pause` is called with the seconds for which the endpoint accepts no request, where that delays
        this one. A model that was not started is started here, where time does not count as the model's."""
        await self.start()
        async with self._limiter.turn(on_pause), self._slots.held():
            yield

    async def http_request(self, request: ModelRequest) -> HttpRequest:
        """Return what `stream` would send for a request. Raises ModelError."""
        client = await self._clients.client(self.spec, self.key, self._errors)
        body = self._wire.body(request)
        headers = client.headers_without_secrets(self.spec.api_key_env)
        return HttpRequest("POST", shown_url(f"{client.base_url}{self._wire.path}"), headers, json.loads(body))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request. Raises ModelError for everything that can go wrong at an endpoint."""
        client = await self._clients.client(self.spec, self.key, self._errors)
        path = self._wire.path
        began = False
        flight = self._flights.begin()
        try:
            response = await client.post(path, self._wire.body(request), self.spec.read_timeout_s)
            began = True
            try:
                async with aclosing(read_answer(response, self._wire.reader(request), self._errors)) as events:
                    async for event in events:
                        yield self._timed(event, flight)
            finally:
                response.close()
        except TooMuchError:
            raise
        except ModelError as error:
            raise self._errors.of_reading(error) from error
        except RecursionError:
            raise self._errors.error("answers with JSON too deeply nested: look at what the server sends") from None
        except client.errors as error:
            failed = self._errors.of_exception(
                error, path=path, began=began, tool_at=lambda said: self._wire.tool_at(request, said)
            )
            if failed.retryable and failed.retry_after_s is not None:
                self._limiter.hold(failed.retry_after_s)
            raise failed from error
        finally:
            self._flights.end(flight)

    def _timed(self, event: ModelEvent | AnswerFinished, flight: Flight) -> ModelEvent | AnswerFinished:
        """Return an event, the last one with the time for which the request waited at the endpoint."""
        if isinstance(event, FIRST_TOKENS):
            self._flights.first_token(flight)
        elif isinstance(event, PromptProgress):
            self._flights.computing(flight, event.took_ms)
        elif isinstance(event, AnswerFinished):
            return replace(event, waited_ms=self._flights.waited_ms(flight, event.prompt_ms))
        return event


class ModelWithPauses:
    """An endpoint's model for one run, which reports the pauses it waits for."""

    def __init__(self, model: EndpointModel, on_pause: Callable[[float], object]) -> None:
        self._model = model
        self._on_pause = on_pause
        self.name, self.seed, self.notices = model.name, model.seed, model.notices

    async def start(self) -> None:
        """Start the model."""
        await self._model.start()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for the model's turn, reporting pauses."""
        return self._model.turn_reporting(self._on_pause)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AnswerFinished]:
        """Answer a request with the model."""
        return self._model.stream(request)

    async def http_request(self, request: ModelRequest) -> HttpRequest:
        """Return what the model would send."""
        return await self._model.http_request(request)


class Endpoints:
    """The endpoints of a session: one rate limiter for each model at each base URL, and one connection pool for each
    base URL and key, shared by all models there. Use it on one event loop.

    `clock` returns monotonic seconds and `sleep` waits seconds, for the rate limiters. `starting` wraps the start of a
    model, such as imports. `on_hold` is called with base URL, model and seconds when an endpoint asks all requests to
    wait. With `leases`, these limit requests, and not the settings. `share` is how many processes use the endpoints,
    `tell` is called with a sentence once where an endpoint is sent fewer requests at a time than the settings allow.
    """

    def __init__(
        self,
        secrets: Secrets,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        starting: Callable[[str], AbstractContextManager[None]] = lambda _what: nullcontext(),
        on_hold: Callable[[str, str, float], object] = lambda _url, _model, _seconds: None,
        leases: Leases | None = None,
        share: int = 1,
        tell: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._secrets = secrets
        self._leases = leases
        self._clock = clock
        self._sleep = sleep
        self._on_hold = on_hold
        self._limiters: dict[tuple[str, str], RateLimiter] = {}
        self._share = share
        self._tell = tell
        self._slots: dict[str, ToldSlots] = {}
        self._flights: dict[tuple[str, str], Flights] = {}
        self._models: dict[str, EndpointModel] = {}
        self._clients = Clients(starting)

    def open(
        self, spec: ModelSpec, environment: Mapping[str, str], on_pause: Callable[[float], object] | None = None
    ) -> Model:
        """Returns the model behind its endpoint; nothing is connected or imported before its first request.
        `on_pause` is called with the seconds for which a request is delayed at the endpoint's request.

        Raises ModelError when the variable of its key is not set.
        """
        model = self._opened(spec, environment)
        return ModelWithPauses(model, on_pause) if on_pause is not None else model

    def _opened(self, spec: ModelSpec, environment: Mapping[str, str]) -> EndpointModel:
        known = self._models.get(spec.name)
        if known is not None and known.spec == spec and known.key == _given_key(spec, environment):
            return known
        key = self._key_of(spec, environment)
        limiter = self._limiter(spec.base_url, spec.model)
        limiter.limit(spec.name, spec.concurrency or DEFAULT_CONCURRENCY, spec.requests_per_minute)
        model = EndpointModel(
            spec,
            key,
            wire_of(spec, self._secrets),
            limiter,
            self._clients,
            EndpointErrors(spec, self._secrets),
            self._slots_of(spec),
            self._flights_of(spec, limiter),
        )
        self._models[spec.name] = model
        return model

    def hold(self, base_url: str, model: str, seconds: float) -> None:
        """Let no request through to a model for this time: another process was asked to wait."""
        self._limiter(base_url, model).hold_too(seconds)

    def _limiter(self, base_url: str, model: str) -> RateLimiter:
        if self._leases is not None:
            return self._leases.limiter(base_url, model)
        if (base_url, model) not in self._limiters:
            on_hold = partial(self._on_hold, base_url, model)
            self._limiters[base_url, model] = RateLimiter(self._clock, self._sleep, on_hold)
        return self._limiters[base_url, model]

    def _slots_of(self, spec: ModelSpec) -> ToldSlots:
        if spec.base_url not in self._slots:
            self._slots[spec.base_url] = ToldSlots(self._share, self._tell)
        return self._slots[spec.base_url]

    def _flights_of(self, spec: ModelSpec, limiter: RateLimiter) -> Flights:
        place = spec.base_url, spec.model
        if place not in self._flights:

            def lower(slots: int) -> None:
                limiter.lower_to(slots)
                requests = "1 request" if slots == 1 else f"{slots} requests"
                self._tell(
                    f"{spec.model} at {shown_url(spec.base_url)} is sent {requests} at a time from now on: the more"
                    " were in flight, the later first tokens came"
                )

            self._flights[place] = Flights(lower, self._clock)
        return self._flights[place]

    async def check(self, spec: ModelSpec, environment: Mapping[str, str]) -> CheckResult:
        """Check whether the endpoint answers, accepts the key and has the model, without asking the model. Raises
        nothing that an endpoint or a setting can cause."""
        errors = EndpointErrors(spec, self._secrets)
        try:
            client = await self._clients.client(spec, self._key_of(spec, environment), errors)
        except ModelError as error:
            return CheckResult(False, str(error))
        return await check(spec, client, errors)

    async def list_models(self, spec: ModelSpec, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of the models that an endpoint lists. Raises ModelError."""
        errors = EndpointErrors(spec, self._secrets)
        client = await self._clients.client(spec, self._key_of(spec, environment), errors)
        return await list_models(spec, client, errors)

    async def close(self) -> None:
        """Close all connections."""
        await self._clients.close()

    def _key_of(self, spec: ModelSpec, environment: Mapping[str, str]) -> str | None:
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
    """Returns the value of a model's key, empty where its variable is not set; `None` when it needs no key."""
    return environment.get(spec.api_key_env, "").strip() if spec.api_key_env is not None else None
