"""The tools of a request in the form of an API, serialised once for many requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from workbench.providers.model import ModelError
from workbench.providers.wire.repairs import unwrapped
from workbench.providers.wire.tool_names import ToolNames
from workbench.trajectory.messages import JsonValue, ToolCall, ToolDefinition
from workbench.trajectory.typed_json import json_text

REMEMBERED_OFFERS = 8
"""How many sets of tools are cached as JSON: those of suites that run at the same time."""

_TOOL_NUMBER = re.compile(r"\btools(?:\.|\[|/|['\"], ?| -> )(\d+)\b")
_NAMED = re.compile(r"\b(?:function|tool)s?(?: name)?:? ?['\"`]([^'\"`]+)['\"`]", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([^'\"`]+)['\"`]")

ToolShape = Callable[[ToolDefinition, str], dict[str, Any]]
"""A tool in the form of an API, under the name that the API accepts."""


class Offer:
    """The tools of a request: their accepted names, and all of them as JSON."""

    def __init__(self, tools: tuple[ToolDefinition, ...], shape: ToolShape) -> None:
        self.tools = tools
        self.names = ToolNames(tool.name for tool in tools)
        self.json = json_or_error([shape(tool, self.names.accepted(tool.name)) for tool in tools]) if tools else None

    def tool_at(self, error_text: str) -> str | None:
        """Returns the tool that an error complains about: by its number among the tools, or by its name in quotes."""
        for name in _NAMED.findall(error_text):
            if self.names.offers(name):
                return self.names.ours(name)
        for number in _TOOL_NUMBER.findall(error_text):
            if int(number) < len(self.tools):
                return self.tools[int(number)].name
        quoted = {name for name in _QUOTED.findall(error_text) if self.names.offers(name)}
        return self.names.ours(quoted.pop()) if len(quoted) == 1 else None


class Offers:
    """The latest offers of one model."""

    def __init__(self, shape: ToolShape) -> None:
        self._shape = shape
        self._latest: list[Offer] = []

    def of(self, tools: tuple[ToolDefinition, ...]) -> Offer:
        """Returns the offer of these tools. Raises ModelError when a schema holds what JSON cannot express."""
        for offer in self._latest:
            if offer.tools == tools:
                return offer
        offer = Offer(tools, self._shape)
        self._latest = [offer, *self._latest[: REMEMBERED_OFFERS - 1]]
        return offer


def object_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Returns a tool's schema in a form that all APIs accept: for an object, with properties even when there are
    none."""
    full = {"type": "object", **{key: value for key, value in schema.items() if key != "type" or value is not None}}
    return full if full["type"] != "object" or "properties" in full else {**full, "properties": {}}


def arguments_to_send(call: ToolCall) -> dict[str, JsonValue]:
    """Returns a call's arguments as they go back to the model. Broken ones are put into an object as text, because
    servers parse what they receive."""
    return dict(call.arguments) if call.problem is None else {"unparsed_arguments": call.raw or ""}


def arguments_text(call: ToolCall) -> str:
    """Returns a call's arguments as text, as they go back to the model: as the model wrote them, in a code fence for
    example. What the endpoint repeated goes back once."""
    if call.problem is None and call.raw and unwrapped(call.raw) is not None:
        return call.raw
    return json_or_error(arguments_to_send(call))


def body_text(fields: dict[str, Any], offer: Offer) -> bytes:
    """Returns a request's body with the tools of the offer. Raises ModelError when a field holds what JSON cannot
    express."""
    text = json_or_error(fields)
    if offer.json is not None:
        text = f'{text[:-1]},"tools":{offer.json}}}'
    return text.encode()


def json_or_error(value: object) -> str:
    try:
        return json_text(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(
            f"a request cannot be written as JSON: {error}; look at params, schemas and arguments"
        ) from None
