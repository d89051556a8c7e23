"""A model behind an HTTP endpoint: combines wire format, rate limiter, client and errors."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace

from workbench.config.models import ModelSpec
from workbench.providers.http.answers import read_answer
from workbench.providers.http.clients import Clients
from workbench.providers.http.errors import EndpointErrors
from workbench.providers.http.rate_limiter import RateLimiter
from workbench.providers.http.slots import Flight, Flights, ToldSlots
from workbench.providers.http.statuses import shown_url
from workbench.providers.model import FIRST_TOKENS, AnswerFinished, HttpRequest, ModelError, ModelRequest, TooMuchError
from workbench.providers.wire.wire import Wire
from workbench.trajectory.events import ModelEvent, PromptProgress


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
