"""Sends one request to a model behind an endpoint, without an engine."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import AnswerFinished, Model, ModelRequest
from workbench.trajectory.events import Message, ModelEvent, TextDelta, ToolDefinition

TOOLS = (ToolDefinition("get_weather"), ToolDefinition("send"))
REQUEST = ModelRequest(1, "Be brief.", (Message("user", "Weather in Oslo?"),), TOOLS)

Said = list[ModelEvent | AnswerFinished]


async def ask(
    spec: ModelSpec, environment: Mapping[str, str] | None = None, endpoints: Endpoints | None = None
) -> Said:
    """Return the model's answer. Closes the connections unless `endpoints` is given."""
    own = endpoints or Endpoints(Secrets())
    try:
        return await ask_model(own.open(spec, environment or {}))
    finally:
        if endpoints is None:
            await own.close()


async def ask_model(model: Model) -> Said:
    async with model.turn():
        return [event async for event in model.stream(REQUEST)]


def text_of(said: Said) -> str:
    return "".join(event.text for event in said if isinstance(event, TextDelta))
