"""Runs of one small case on models behind the local server, through the real engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.engine.making import Made, make
from tests.providers.server import Api, Server, base_url_of
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import RetryPolicy
from workbench.trajectory.events import RequestFailed, RetryScheduled

SILENCE_S = 0.25
TWICE = RetryPolicy(attempts=2, first_wait_s=0.001, max_requested_wait_s=0.001)


def spec_of(server: Server, api: Api, **settings: Any) -> ModelSpec:
    spec = ModelSpec(f"{api} model", api, "test-model", base_url_of(server, api), read_timeout_s=20.0)
    return replace(spec, **settings)


async def run_on(endpoints: Endpoints, spec: ModelSpec, retries: RetryPolicy = TWICE, **environment: str) -> Made:
    return await make(endpoints.open(spec, environment), retries)


async def run_alone(spec: ModelSpec, retries: RetryPolicy = TWICE, **environment: str) -> Made:
    endpoints = Endpoints(Secrets())
    try:
        return await run_on(endpoints, spec, retries, **environment)
    finally:
        await endpoints.close()


def failures(made: Made) -> list[str]:
    return [event.payload.error for event in made.events if isinstance(event.payload, RequestFailed)]


def retries_of(made: Made) -> list[RetryScheduled]:
    return [event.payload for event in made.events if isinstance(event.payload, RetryScheduled)]
