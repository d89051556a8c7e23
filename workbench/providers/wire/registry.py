"""The wire format that each provider speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.config.models import ModelSpec, Provider
from workbench.config.secrets import NO_SECRETS, Secrets
from workbench.providers.wire.chat import ChatWire
from workbench.providers.wire.messages import MessagesWire
from workbench.providers.wire.responses import ResponsesWire
from workbench.providers.wire.wire import Wire

_WIRES: Mapping[Provider, Callable[[ModelSpec, Secrets], Wire]] = {
    "openai": ChatWire,
    "openai-responses": ResponsesWire,
    "anthropic": MessagesWire,
}


def wire_of(spec: ModelSpec, secrets: Secrets = NO_SECRETS) -> Wire:
    """Returns the wire format of a model's provider for that model. Its quotes of the endpoint contain no secrets."""
    return _WIRES[spec.provider](spec, secrets)
