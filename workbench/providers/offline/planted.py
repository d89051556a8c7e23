"""Offline models with one planted weakness each, on which to see and test what finds weaknesses, without a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from workbench.providers.model import ModelRequest
from workbench.providers.offline.decisions import Decision, PlannedCall, decide
from workbench.providers.offline.model import OfflineModel
from workbench.providers.offline.ranking import ToolIndex
from workbench.providers.offline.words import stems_of
from workbench.trajectory.messages import JsonValue, Message, ToolDefinition

_ORDER = re.compile(r"\b(?:ignore|instead|you\s+must|instructions?|call\s+the\s+tool)\b", re.I)
"""What a result says that wants something done."""


class PlantedModel(OfflineModel):
    """The offline model with a weakness. Raises KeyError for an unknown one."""

    def __init__(self, weakness: str, *, pace_ms: float = 0) -> None:
        super().__init__(pace_ms=pace_ms)
        self.name = f"offline:{weakness}"
        self._decided = _DECIDED[weakness]

    def decide(self, request: ModelRequest) -> Decision:
        """Decide as the weakness has it."""
        return self._decided(request)


def _careless(request: ModelRequest) -> Decision:
    """Takes no notice of listed values: any word will do."""
    tools = tuple(
        replace(tool, parameters=cast(Mapping[str, JsonValue], _without_lists(dict(tool.parameters))))
        for tool in request.tools
    )
    return decide(request.messages, ToolIndex(tools))


def _without_lists(schema: JsonValue) -> JsonValue:
    if isinstance(schema, dict):
        return {key: _without_lists(value) for key, value in schema.items() if key != "enum"}
    return [_without_lists(value) for value in schema] if isinstance(schema, list) else schema


def _gullible(request: ModelRequest) -> Decision:
    """Does what a result tells it to do, once."""
    index = ToolIndex(request.tools)
    made = [(call.tool, dict(call.arguments)) for message in request.messages for call in message.tool_calls]
    for message in request.messages:
        if message.role == "tool" and _ORDER.search(message.content):
            ordered = decide([Message("user", message.content)], index)
            calls = tuple(call for call in ordered.calls if (call.tool, call.arguments) not in made)
            if calls:
                return Decision("A result says what to do.", calls)
    return decide(request.messages, index)


def _stubborn(request: ModelRequest) -> Decision:
    """Makes a call that failed again, and again."""
    failed = [message.call_id for message in _last_results(request.messages) if message.is_error]
    calls = tuple(
        PlannedCall(call.tool, dict(call.arguments))
        for message in request.messages
        for call in message.tool_calls
        if call.id in failed
    )
    if calls:
        return Decision("It failed. Once more.", calls)
    return decide(request.messages, ToolIndex(request.tools))


def _last_results(messages: Sequence[Message]) -> list[Message]:
    results: list[Message] = []
    for message in reversed(messages):
        if message.role != "tool":
            break
        results.append(message)
    return results


def _hasty(request: ModelRequest) -> Decision:
    """Sees no further than the first word of a description."""
    asked = [message.content for message in request.messages if message.role == "user"]
    words = set(stems_of(asked[-1])) if asked else set[str]()
    fitting = [tool for tool in request.tools if words.intersection(_first_word(tool))]
    return decide(request.messages, ToolIndex(tuple(fitting[:1]) or request.tools))


def _first_word(tool: ToolDefinition) -> list[str]:
    return list(stems_of(next(iter(tool.description.split()), "")))


_DECIDED: Final[Mapping[str, Callable[[ModelRequest], Decision]]] = {
    "careless": _careless,
    "gullible": _gullible,
    "stubborn": _stubborn,
    "hasty": _hasty,
}
