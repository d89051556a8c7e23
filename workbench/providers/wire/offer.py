"""The tools of a request in the form of an API, serialised once for many requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workbench.config.models import ModelSpec
from workbench.dataclasses import json_text
from workbench.limits import MAX_TOOL_NAME_CHARS
from workbench.providers.model import ModelError
from workbench.providers.wire.repairs import unwrapped
from workbench.trajectory.events import JsonValue, ToolCall, ToolDefinition

# Converts names to those that model APIs accept: ASCII letters, digits, `_` and `-`, at most 64 characters for a
# tool.

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]+")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def accepted_names(names: Iterable[str], longest: int | None = None) -> dict[str, str]:
    """Returns each name with an accepted one, unique among them; the same names in the same order give the same result.
    Accepted names stay as they are."""
    wanted = list(dict.fromkeys(names))
    given = {name: name for name in wanted if accepted_name(name, longest) == name}
    taken = set(given)
    for name in wanted:
        if name in given:
            continue
        base = candidate = accepted_name(name, longest)
        number = 1
        while candidate in taken:
            number += 1
            ending = f"_{number}"
            candidate = (base if longest is None else base[: longest - len(ending)]) + ending
        taken.add(candidate)
        given[name] = candidate
    return given


def accepted_name(name: str, longest: int | None = None) -> str:
    """Returns the name with `_` in place of every character that is not accepted, cut to `longest`."""
    if _ACCEPTED.fullmatch(name) and (longest is None or len(name) <= longest):
        return name
    return _REFUSED.sub("_", name)[:longest] or "unnamed"


class ToolNames:
    """The names of the offered tools as an API accepts them, and back."""

    def __init__(self, names: Iterable[str]) -> None:
        self._accepted = accepted_names(names, MAX_TOOL_NAME_CHARS)
        self._ours = {accepted: name for name, accepted in self._accepted.items()}

    def accepted(self, name: str) -> str:
        """Returns the API's name of a tool; a tool that is not offered (an invented one, an earlier one) gets an
        accepted name too."""
        return self._accepted.get(name) or accepted_name(name, MAX_TOOL_NAME_CHARS)

    def ours(self, accepted: str) -> str:
        """Returns the suite's name for an accepted name; a name that the model invented is unchanged."""
        return self._ours.get(accepted, accepted)

    def offers(self, accepted: str) -> bool:
        """Returns whether a tool of that accepted name is offered."""
        return accepted in self._ours


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


# The parameters of a model's settings: which of them an API has, and what happens to the others.


def sent_params(
    spec: ModelSpec, api: str, *, lacking: Mapping[str, str] | None = None, renamed: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the parameters to send, and one sentence for each that is not sent. `lacking` are parameters of other
    APIs that this one lacks, with the replacement (or nothing); `renamed` are those that it has under a different name.
    Any other is sent as written."""
    sent: dict[str, Any] = {}
    notices: list[str] = []
    for name, value in spec.params.items():
        field = (renamed or {}).get(name, name)
        if lacking is not None and name in lacking:
            instead = f", write {lacking[name]} instead" if lacking[name] else ""
            notices.append(f"params.{name} is not sent to {spec.name}: the {api} API has no such parameter{instead}")
        elif field != name and field in spec.params:
            notices.append(f"params.{name} is not sent to {spec.name}: params.{field} says the same")
        else:
            sent[field] = value
    return sent, tuple(notices)


def whole_seed(params: Mapping[str, Any]) -> int | None:
    """Returns the seed among the parameters that are sent, if it is a whole number."""
    seed = params.get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None
