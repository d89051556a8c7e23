"""All endpoints of a session: rate limits for each model, connection pools for each endpoint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from workbench.config.models import DEFAULT_CONCURRENCY, ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.check import CheckResult, check, list_models
from workbench.providers.http.clients import Clients
from workbench.providers.http.errors import EndpointErrors
from workbench.providers.http.model import EndpointModel, ModelWithPauses
from workbench.providers.http.rate_limiter import RateLimiter
from workbench.providers.http.slots import Flights, ToldSlots
from workbench.providers.http.statuses import shown_url
from workbench.providers.model import Model, ModelError
from workbench.providers.wire.registry import wire_of

if TYPE_CHECKING:
    from workbench.providers.http.leases import Leases


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
